package engine

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redisstore"
)

func TestSpace(t *testing.T) {
	for _, tt := range []struct {
		name                        string
		n, busy, ahead, ready, come int
		want                        int
	}{
		{"all executors are free", 4, 0, 0, 0, 0, 4},
		{"some are busy", 4, 3, 0, 0, 0, 1},
		{"all are busy", 4, 4, 0, 0, 0, 0},
		{"what is ready has its executor", 4, 1, 0, 2, 0, 1},
		{"what is coming has its executor", 4, 1, 0, 0, 2, 1},
		{"what is ready and coming", 4, 0, 0, 2, 2, 0},
		{"more is there than may be", 4, 4, 0, 10, 5, 0},

		{"nothing is there ahead", 4, 4, 10, 0, 0, 10},
		{"half is there", 4, 4, 10, 5, 0, 5},
		{"more than half is there", 4, 4, 10, 6, 0, 0},
		{"half is coming", 4, 4, 10, 0, 5, 5},
		{"more than half is there or coming", 4, 4, 10, 3, 3, 0},
		{"all is there", 4, 4, 10, 10, 0, 0},
		{"half of an odd number", 4, 4, 9, 4, 0, 5},
		{"more than half of an odd number", 4, 4, 9, 5, 0, 0},
		{"one ahead", 4, 4, 1, 0, 0, 1},
		{"one ahead that is there", 4, 4, 1, 1, 0, 0},

		{"a free executor finds what is there", 4, 3, 10, 7, 0, 0},
		{"a free executor goes idle", 4, 3, 10, 0, 0, 11},
		{"a free executor goes idle unless something comes", 4, 3, 10, 0, 7, 0},

		{"a lot fits", 4, 4, exec.MaxAhead, exec.MaxAhead - exec.MaxAheadPerCall, 0, exec.MaxAheadPerCall},
		{"not quite a lot fits", 4, 4, exec.MaxAhead, exec.MaxAhead - exec.MaxAheadPerCall + 1, 0, 0},
		{
			"not quite a lot fits, for what is coming", 4, 4, exec.MaxAhead, 500,
			exec.MaxAhead - exec.MaxAheadPerCall - 499, 0,
		},
		{"one lot at a time", 4, 4, exec.MaxAhead, 0, 0, exec.MaxAheadPerCall},
		{"one lot beyond the free executors", 50, 10, exec.MaxAhead, 0, 0, 40 + exec.MaxAheadPerCall},
		{"one lot and what executors are free, all of it fixed", 4, 1, maxConcurrency, 0, 0, 3 + exec.MaxAheadPerCall},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &exec.Executors{
				N: tt.n, Busy: tt.busy, Ahead: tt.ahead, Ready: make([]*lane.Claim, tt.ready), Claiming: tt.come,
			}
			if got := e.Claimable(); got != tt.want {
				t.Errorf("space for %d, expected %d", got, tt.want)
			}
		})
	}
}

// expectRoom asks once how many tasks to claim.
func (c *crew) expectRoom(what string, n int, wait time.Duration, back ...*lane.Claim) {
	c.t.Helper()
	gotN, gotWait, gotBack := c.ClaimBudget()
	if gotN != n || gotWait != wait || !slices.Equal(gotBack, back) {
		c.t.Errorf("%s: room for %d, %v to wait, %d given back; expected %d, %v, %d", what, gotN, gotWait, len(gotBack),
			n, wait, len(back))
	}
}

// learned lets the crew measure handlers so short that it claims n tasks ahead.
func (c *crew) learned(n int) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Pace.Mean, c.Pace.Found, c.Pace.MeasuredAt = time.Millisecond, n, time.Now()
}

func TestRoom(t *testing.T) {
	inCrew(t, 2, 6, func(c *crew) {
		c.expectRoom("nothing was claimed", 8, 0)
		c.AddClaiming(8)
		c.expectRoom("eight are coming", 0, 0)
		tasks := c.tasks(c.lane, 8)
		c.Add(tasks)
		c.begun("two of eight", tasks[:2]...)
		// For the fetcher, the claim is over only when it calls arrived.
		c.expectRoom("eight are coming, and there", 0, 0)
		c.AddClaiming(-8)
		c.expectRoom("six are ready", 0, 0)
		for _, task := range tasks[:2] {
			c.end(task, endSeenTo)
		}
		c.expectRoom("four are ready", 0, 0)
		if woken(c.Changed) {
			t.Error("the fetcher is woken when there is room for two, expected it to wait for three")
		}
		c.end(tasks[2], endSeenTo)
		if !woken(c.Changed) {
			t.Error("the fetcher is not woken when there is room for three")
		}
		c.end(tasks[3], endSeenTo)
		if woken(c.Changed) {
			t.Error("the fetcher is woken twice")
		}
		c.expectRoom("two are ready", 4, 0)
		c.end(tasks[4], endSeenTo)
		if woken(c.Changed) {
			t.Error("the fetcher is woken although it does not wait for it")
		}
	})
}

func TestRoomAheadIsWhatThePaceAllows(t *testing.T) {
	inCrew(t, 2, -1, func(c *crew) {
		c.expectRoom("nothing is known of the handlers", 2, 0)
		tasks := c.tasks(c.lane, 2)
		c.Add(tasks)
		c.begun("both", tasks...)
		c.expectRoom("all are busy", 0, 0)
		<-time.After(time.Millisecond)
		c.end(tasks[0], endDone)
		c.expectRoom("a handler took 1 ms", 11, 0)
		<-time.After(999 * time.Millisecond)
		c.end(tasks[1], endDone)
		c.expectRoom("another took 1 s", 2, 0)
	})
}

// A worker that has given tasks back claims nothing ahead for a while, so that other workers can take them.
func TestRestlessWorkerClaimsNothingAhead(t *testing.T) {
	for _, prefetch := range []int{-1, 10} {
		t.Run(fmt.Sprint("prefetch ", prefetch), func(t *testing.T) {
			inCrew(t, 2, prefetch, func(c *crew) {
				c.learned(10)
				c.expectRoom("before", 12, 0)
				c.StopAhead()
				c.expectRoom("from then on", 2, 0)
				<-time.After(exec.NoAheadTime - 1)
				c.expectRoom("at the end of the rest", 2, 0)
				<-time.After(1)
				c.expectRoom("after it", 12, 0)
			})
		})
	}
}

// A worker claims nothing while a task runs alone or waits until it can.
func TestNoRoomBesideALoneTask(t *testing.T) {
	inCrew(t, 3, 6, func(c *crew) {
		lone := c.suspects(c.lane, 1, 9)
		c.AdmitSuspect(lone[0])
		c.expectRoom("it has not started", 0, 0)
		c.Add(lone)
		c.begun("alone", lone...)
		<-time.After(time.Minute)
		c.expectRoom("it runs", 0, 0)
		woken(c.Changed)
		c.end(lone[0], endSeenTo)
		if !woken(c.Changed) {
			t.Error("it has ended, and the fetcher is not woken")
		}
		c.expectRoom("it has ended", 9, 0)
	})
}

func TestOverdueTasksGoBack(t *testing.T) {
	inCrew(t, 2, -1, func(c *crew) {
		busy := c.tasks(c.lane, 2)
		c.Add(busy)
		c.begun("both", busy...)
		c.learned(10)
		first := c.tasks(c.lane, 2)
		c.Add(first)
		c.expectRoom("they have just come, and there is room for more", 8, exec.OverdueTime)
		<-time.After(exec.OverdueTime - 1)
		later := c.tasks(c.lane, 4)
		c.Add(later)
		c.expectRoom("one moment is left to them", 0, 1)
		<-time.After(1)
		c.expectRoom("they are overdue", 0, exec.NoAheadTime, slices.Concat(first, later)...)
		c.learned(10)
		c.expectRoom("they are back, and the worker is restless", 0, 0)
		for _, task := range busy {
			c.end(task, endDone)
		}
		c.begun("what is back does not run")
	})
}

// The handlers before the stall were short. That says nothing about those that run now.
func TestOverdueTasksMakeThePaceForget(t *testing.T) {
	inCrew(t, 1, -1, func(c *crew) {
		busy := c.tasks(c.lane, 1)
		c.Add(busy)
		c.begun("one", busy...)
		c.learned(10)
		ahead := c.tasks(c.lane, 3)
		c.Add(ahead)
		<-time.After(exec.OverdueTime)
		c.expectRoom("three are overdue", 0, exec.NoAheadTime, ahead...)
		<-time.After(exec.NoAheadTime)
		c.expectRoom("the rest is over, and nothing is known", 0, 0)
	})
}

func TestNoTaskIsOverdueWhileAnExecutorIsFree(t *testing.T) {
	inCrew(t, 2, -1, func(c *crew) {
		tasks := c.tasks(c.lane, 3)
		c.Add(tasks[:1])
		c.begun("the first", tasks[0])
		c.Hold(true) // the free executor starts nothing for now, as when the heartbeat is old
		c.Add(tasks[1:])
		<-time.After(time.Hour)
		c.expectRoom("one executor is free", 0, exec.OverdueTime)
		c.beaten(c.lane)
		c.Hold(false)
		c.begun("it goes on", tasks[1])
		c.expectRoom("none is free", 0, exec.NoAheadTime, tasks[2])
	})
}

func TestNoTaskIsOverdueWithAFixedPrefetch(t *testing.T) {
	inCrew(t, 2, 4, func(c *crew) {
		tasks := c.tasks(c.lane, 6)
		c.Add(tasks)
		c.begun("two of them", tasks[:2]...)
		<-time.After(time.Hour)
		c.expectRoom("four have waited for an hour", 0, 0)
		c.beaten(c.lane)
		c.end(tasks[0], endDone)
		c.begun("one executor is free", tasks[2])
	})
}

// starving waits until the fetcher of a worker waits for room and has left done claims to the finishers.
func (b *bench) starving(w *started) {
	b.T.Helper()
	b.Until("the fetcher waits for room and has left off", func() bool {
		w.exec.Mu.Lock()
		defer w.exec.Mu.Unlock()
		return w.exec.AckLane == nil && w.exec.FetcherWaits
	})
}

// claimsAhead lets a worker measure handlers so short that it claims n tasks ahead.
func (s *started) claimsAhead(n int) {
	s.exec.Mu.Lock()
	defer s.exec.Mu.Unlock()
	s.exec.Pace.Mean, s.exec.Pace.Found, s.exec.Pace.MeasuredAt = time.Millisecond, n, time.Now()
}

// A worker gives back tasks that it has claimed ahead in time, although the queue is empty and no handler ends.
func TestOverdueTasksOfAnEmptyQueueGoBack(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 2), make(chan struct{})
	f := b.fn("f", func(i int) {
		if i < 2 {
			entered <- i
			<-leave
		}
	})
	var released atomic.Int64
	rdb, _ := b.faulty(func(request []byte) faultnet.Fault {
		if calls(redisstore.Scripts["release"])(request) {
			released.Add(1)
		}
		return faultnet.None
	})
	cfg := b.config()
	cfg.Concurrency, cfg.HeartbeatLife = 2, quietLife
	b.work(cfg, f).mustStop() // so that Redis knows the scripts
	b.Must(b.q.Pause(t.Context()))
	w := b.workWith(rdb, cfg, f)
	defer close(leave)
	w.claimsAhead(10)
	if _, err := b.q.DelayMany(t.Context(), Call(f, 0), Call(f, 1), Call(f, 2), Call(f, 3)); err != nil {
		t.Fatal(err)
	}
	pending := b.List("")
	b.Must(b.q.Resume(t.Context()))
	await(b, "a task", entered)
	await(b, "a task", entered)
	start := time.Now()
	b.Until("two are back", func() bool { return released.Load() > 0 && b.Size("") == 2 })
	if took := time.Since(start); took > 3*time.Second {
		limits.Errorf(t, "given back after %v, expected %v", took, exec.OverdueTime)
	}
	if back := b.List(""); !slices.Equal(back, pending[2:]) {
		t.Errorf("%q are back, expected %q", back, pending[2:])
	}
	if n := b.Size("_processing:" + w.ID()); n != 2 {
		t.Errorf("%d are claimed, expected those two that run", n)
	}
}

// Two workers serve one queue. One has claimed short tasks ahead when its executors get stuck: the other runs them.
func TestShortTasksLeaveAWorkerThatIsStuck(t *testing.T) {
	b := newBench(t)
	const short = 10
	entered, leave, ran := make(chan struct{}, 4), make(chan struct{}), make(chan string, 4*short)
	functions := func(worker string) []*Function {
		return []*Function{
			b.fn("long", func() { entered <- struct{}{}; <-leave }),
			b.fn("short", func(int) { ran <- worker }),
		}
	}
	cfg := b.config()
	cfg.Concurrency, cfg.HeartbeatLife = 2, quietLife
	one, two := functions("one"), functions("two")
	b.Must(b.q.Pause(t.Context()))
	stuck := b.work(cfg, one...)
	defer close(leave)
	stuck.claimsAhead(short)
	tasks := []*Task{Call(one[0]), Call(one[0])}
	for i := range short {
		tasks = append(tasks, Call(one[1], i))
	}
	if _, err := b.q.DelayMany(t.Context(), tasks...); err != nil {
		t.Fatal(err)
	}
	b.Must(b.q.Resume(t.Context()))
	await(b, "a long task", entered)
	await(b, "a long task", entered)
	other := b.work(cfg, two...)
	start := time.Now()
	for range short {
		if who := await(b, "a short task", ran); who != "two" {
			t.Errorf("worker %s ran a short task, expected the one that is not stuck", who)
		}
	}
	if took := time.Since(start); took > 3*time.Second {
		limits.Errorf(t, "the short tasks waited for %v, expected about %v", took, exec.OverdueTime)
	}
	b.Until("what is left are the long tasks", func() bool {
		return b.Size("")+b.Size("_processing:"+other.ID()) == 0 && b.Size("_processing:"+stuck.ID()) == 2
	})
	if len(ran) > 0 {
		t.Errorf("%d short tasks ran twice", len(ran))
	}
}
