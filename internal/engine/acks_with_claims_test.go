package engine

import (
	"bytes"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
)

// isDone adds done claims to a lane, while no executor works.
func (c *crew) isDone(claims ...*lane.Claim) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, task := range claims {
		c.Busy++
		c.TaskEnded(task, true, 0)
	}
}

// inOffice runs a test with executors that do not start, and two lanes.
func inOffice(t *testing.T, test func(c *crew, one, two *lane.Lane)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 4, 0)
		test(c, c.lane, c.newLane("other"))
	})
}

// Every done claim must be known to the fetcher, whose next claim call acknowledges it, or to the lane's finisher.
func TestSomebodyIsToldOfWhatIsDone(t *testing.T) {
	t.Run("the finisher, when nobody claims", func(t *testing.T) {
		inOffice(t, func(c *crew, one, two *lane.Lane) {
			c.isDone(claimed(one, 1)...)
			if !woken(finisherOf(one).Wakes) || woken(finisherOf(two).Wakes) || woken(c.Changed) {
				t.Error("expected the lane's finisher to be woken, and nobody else")
			}
			c.isDone(claimed(one, 2)...)
			if woken(finisherOf(one).Wakes) {
				t.Error("the finisher is woken again although it has not taken the first")
			}
			if n := len(c.TakeDone(one)); n != 3 {
				t.Errorf("it takes %d, expected 3", n)
			}
			c.isDone(claimed(one, 1)...)
			if !woken(finisherOf(one).Wakes) {
				t.Error("the finisher is not woken again after it has taken what was done")
			}
		})
	})
	t.Run("nobody, while the fetcher claims from the lane", func(t *testing.T) {
		inOffice(t, func(c *crew, one, two *lane.Lane) {
			if done := c.TakeForClaim(one); len(done) != 0 {
				t.Errorf("%d are done at first", len(done))
			}
			claims := claimed(one, 3)
			c.isDone(claims...)
			if woken(finisherOf(one).Wakes) || woken(c.Changed) {
				t.Error("somebody is woken although the fetcher comes by")
			}
			if done := c.TakeForClaim(one); !slices.Equal(done, claims) {
				t.Errorf("the fetcher takes %d along, expected 3", len(done))
			}
			if done := c.TakeForClaim(one); len(done) != 0 {
				t.Errorf("the fetcher takes %d along a second time", len(done))
			}
			if woken(finisherOf(one).Wakes) {
				t.Error("the finisher is woken for what the fetcher has taken")
			}
		})
	})
	t.Run("the fetcher, when it waits for room", func(t *testing.T) {
		inOffice(t, func(c *crew, one, two *lane.Lane) {
			c.FetcherWaits = true
			c.isDone(claimed(one, 1)...)
			if !woken(c.Changed) || woken(finisherOf(one).Wakes) || c.AckLane != one {
				t.Error("expected the fetcher to be woken, and nobody else")
			}
			c.isDone(claimed(two, 1)...)
			if woken(c.Changed) || !woken(finisherOf(two).Wakes) {
				t.Error("expected the finisher of the other lane to be woken: the fetcher takes one lane's along")
			}
			c.LeaveToFinishers()
			if !woken(finisherOf(one).Wakes) || c.AckLane != nil {
				t.Error("the fetcher leaves off, and the finisher is not woken")
			}
		})
	})
	t.Run("the finisher, when the fetcher turns to another lane", func(t *testing.T) {
		inOffice(t, func(c *crew, one, two *lane.Lane) {
			c.TakeForClaim(one)
			c.isDone(claimed(one, 1)...)
			c.isDone(claimed(two, 1)...)
			if !woken(finisherOf(two).Wakes) {
				t.Error("the finisher of the other lane is not woken")
			}
			if done := c.TakeForClaim(two); len(done) != 1 || done[0].Lane != two {
				t.Errorf("the fetcher takes %d along, expected the one of this lane", len(done))
			}
			if !woken(finisherOf(one).Wakes) || woken(finisherOf(two).Wakes) {
				t.Error("expected the finisher of the lane that the fetcher left to be woken")
			}
			c.TakeForClaim(one)
			if woken(finisherOf(two).Wakes) {
				t.Error("a finisher is woken for nothing")
			}
		})
	})
	t.Run("nobody, when nothing is done", func(t *testing.T) {
		inOffice(t, func(c *crew, one, two *lane.Lane) {
			c.TakeForClaim(one)
			c.LeaveToFinishers()
			c.LeaveToFinishers()
			c.Busy = 1
			c.TaskEnded(claimed(one, 1)[0], false, 0) // failed: a finisher ends it in another way
			if woken(finisherOf(one).Wakes) || woken(c.Changed) || len(doneOn(one)) > 0 {
				t.Error("a finisher is woken for nothing")
			}
		})
	})
}

// One call acknowledges a limited number of claims. The others wait in order, after those whose call got no answer.
func TestWhatIsDoneIsTakenInOrder(t *testing.T) {
	inOffice(t, func(c *crew, one, _ *lane.Lane) {
		claims := claimed(one, redisstore.MaxTokens+20)
		c.isDone(claims...)
		first := c.TakeForClaim(one)
		if !slices.Equal(first, claims[:redisstore.MaxTokens]) {
			t.Fatalf("%d are taken, expected the first %d", len(first), redisstore.MaxTokens)
		}
		second := c.TakeDone(one)
		more := claimed(one, 2)
		c.isDone(more...)
		c.PutDone(one, first)
		if !slices.Equal(second, claims[redisstore.MaxTokens:]) || !slices.Equal(first, claims[:redisstore.MaxTokens]) {
			t.Error("what was taken has changed")
		}
		c.PutDone(one, second)
		want := slices.Concat(second, first, more)
		var got []*lane.Claim
		for range 3 {
			got = append(got, c.TakeDone(one)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d are taken, expected %d in order", len(got), len(want))
		}
	})
}

// The last task of a queue ends long after the fetcher has claimed last: no claim call comes that could acknowledge it.
func TestLastTaskIsAcknowledged(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 1), make(chan struct{})
	f := b.fn("f", func(i int) { entered <- i; <-leave })
	cfg := b.config()
	cfg.Concurrency, cfg.HeartbeatLife = 1, quietLife
	w := b.work(cfg, f)
	b.delay(f, 1)
	await(b, "the task", entered)
	b.starving(w)
	close(leave)
	b.Idle()
}

// A paused worker makes no claim calls, so they acknowledge nothing.
func TestTasksThatEndDuringAPauseAreAcknowledged(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 2), make(chan struct{})
	f := b.fn("f", func(i int) { entered <- i; <-leave })
	cfg := b.config()
	cfg.Concurrency, cfg.HeartbeatLife = 2, quietLife
	w := b.work(cfg, f)
	b.delay(f, 1)
	b.delay(f, 2)
	await(b, "a task", entered)
	await(b, "a task", entered)
	b.starving(w)
	w.Pause()
	close(leave)
	b.Idle()
}

// An empty queue shares its worker with a full one: claim calls for the full one do not acknowledge its tasks.
func TestTaskOfAnEmptyQueueIsAcknowledgedBesideABusyOne(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 1), make(chan struct{})
	f := b.fn("f", func(i int) { entered <- i; <-leave })
	steps, started := make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	busy := b.fn("busy", func(int) {
		if ended.Load() {
			return
		}
		started <- struct{}{}
		<-steps
	})
	side := b.Name + "-side"
	cfg := b.config()
	cfg.Queues = Strict{b.Name, side}
	cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife = 2, -1, quietLife
	w := b.work(cfg, f, busy)
	b.delayWith(NewQueue(side, b.rdb), f, 1)
	await(b, "the task", entered)
	tasks := make([]*Task, 1000)
	for i := range tasks {
		tasks[i] = Call(busy, i)
	}
	if _, err := b.q.DelayMany(t.Context(), tasks...); err != nil {
		t.Fatal(err)
	}
	await(b, "the first task of the busy queue", started)
	close(leave)
	held := func() bool { return b.Int("HLEN", side+"_processing:"+w.ID()) > 0 }
	n := 0
	for ; n < len(tasks)/2 && held(); n++ {
		select {
		case steps <- struct{}{}:
		case <-started:
		}
	}
	if n == len(tasks)/2 {
		t.Error("not acknowledged although the busy queue has gone on for long")
	}
	ended.Store(true)
	close(steps)
	go func() {
		for range started { //nolint:revive // those that were about to start
		}
	}()
	b.Idle()
	close(started)
}

// arguments returns the arguments of a request that have been sent so far, the command first. n is their number once
// all are sent.
func arguments(request []byte) (n int, args []string) {
	lines := bytes.Split(request, []byte("\r\n"))
	n, _ = strconv.Atoi(string(bytes.TrimPrefix(lines[0], []byte("*"))))
	for i := 2; i < len(lines); i += 2 {
		args = append(args, string(lines[i]))
	}
	return n, args
}

// endsIn returns how many claims a call of claim.lua or ack.lua ends.
func endsIn(request []byte) int {
	n, args := arguments(request)
	keys, _ := strconv.Atoi(args[2])
	plain := 3 + keys + 3 // of ack: life, lost, pulse
	if calls(redisstore.Scripts["claim"])(request) {
		plain += 5
	}
	batches, _ := strconv.Atoi(args[plain])
	return n - plain - 1 - batches
}

// Under load no call only acknowledges: each claim call acknowledges the done claims.
func TestAcknowledgementsRideOnClaims(t *testing.T) {
	b := newBench(t)
	var claimCalls, ackCalls, rode, walked atomic.Int64
	rdb, _ := b.faulty(func(request []byte) faultnet.Fault {
		switch {
		case calls(redisstore.Scripts["claim"])(request):
			claimCalls.Add(1)
			rode.Add(int64(endsIn(request)))
		case calls(redisstore.Scripts["ack"])(request):
			ackCalls.Add(1)
			walked.Add(int64(endsIn(request)))
		}
		return faultnet.None
	})
	const n = 3000
	var ran atomic.Int64
	f := b.fn("f", func(int) { ran.Add(1) })
	cfg := b.config()
	// Nothing is claimed ahead: each task that ends is followed by a claim, however slow this machine is.
	cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife = 4, -1, quietLife
	b.work(cfg, f).mustStop() // so that Redis knows the scripts
	tasks := make([]*Task, n)
	for i := range tasks {
		tasks[i] = Call(f, i)
	}
	if _, err := b.q.DelayMany(t.Context(), tasks...); err != nil {
		t.Fatal(err)
	}
	w := b.workWith(rdb, cfg, f)
	b.Until("all have run", func() bool { return ran.Load() == n })
	b.Idle()
	w.mustStop()
	t.Logf("%d claims acknowledged %d tasks, %d calls of ack %d", claimCalls.Load(), rode.Load(), ackCalls.Load(),
		walked.Load())
	if rode.Load()+walked.Load() != n {
		t.Errorf("%d tasks were acknowledged, expected %d", rode.Load()+walked.Load(), n)
	}
	if walked.Load() > n/4 {
		t.Errorf("%d of %d tasks were acknowledged by calls of their own", walked.Load(), n)
	}
}
