package engine

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// crew is executors without a fetcher, within a bubble of testing/synctest. Its tasks run until the test lets them go.
type crew struct {
	*exec.Executors
	t     *testing.T
	lane  *lane.Lane
	ways  map[*lane.Claim]chan lane.Ending // a running task receives from it how to end
	beats chan struct{}                    // heartbeats that the lane has asked for

	list    sync.Mutex // protects the following
	started []string   // tokens, in order
}

// The ways in which a task ends.
var (
	endDone   = lane.Ending{}
	endSeenTo = lane.Ending{Outcome: lifecycle.OutcomeRetry}
	endGoexit = lane.Ending{Outcome: lifecycle.Outcomes}
)

// inCrew runs a test with n executors that are idle.
func inCrew(t *testing.T, n, prefetch int, test func(*crew)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, n, prefetch)
		c.Start()
		synctest.Wait()
		test(c)
		synctest.Wait()
		for _, leave := range c.ways {
			close(leave)
		}
		c.Stop()
		c.Sound.Wait()
		if got := c.count(); got != "0 busy, 0 idle" {
			t.Errorf("after the stop: %s", got)
		}
	})
}

// newCrew returns executors that have not been started.
func newCrew(t *testing.T, n, prefetch int) *crew {
	t.Helper()
	c := &crew{t: t, beats: make(chan struct{}, 1), ways: map[*lane.Claim]chan lane.Ending{}}
	c.Executors = exec.New(n, prefetch, time.Minute, c)
	c.lane = c.newLane("q")
	return c
}

// noSource is that of a Redis that is away.
type noSource struct{ Source }

func (noSource) Conn(context.Context, string) (redis.Conn, error) { return nil, io.EOF }

func (noSource) Slot(string) int { return 0 }

func (c *crew) newLane(name string) *lane.Lane {
	l := lane.New(redisstore.NewStore(noSource{}, "", name), "w", false)
	finish.New(l, c.Executors,
		&finish.Decider{Events: &events.Listeners{}, Log: loop.NewJournal((&logText{}).logger())})
	l.Beat = c.beats
	c.beaten(l)
	return l
}

// beaten confirms a heartbeat.
func (c *crew) beaten(l *lane.Lane) {
	now := time.Now()
	l.Confirmed.Store(&now)
}

// runTask is the function with which executors run a task.
func (c *crew) Execute(task *lane.Claim) (done bool) {
	c.list.Lock()
	c.started = append(c.started, task.Lane.Store.Name+task.Token)
	leave := c.ways[task]
	c.list.Unlock()
	e := <-leave
	if e.Outcome == endGoexit.Outcome {
		runtime.Goexit()
	}
	return e.Outcome != endSeenTo.Outcome
}

// tasks claims n tasks of a lane.
func (c *crew) tasks(l *lane.Lane, n int) []*lane.Claim {
	claims := claimed(l, n)
	c.list.Lock()
	defer c.list.Unlock()
	for _, task := range claims {
		c.ways[task] = make(chan lane.Ending, 1)
	}
	return claims
}

// suspects claims n tasks with that many deaths.
func (c *crew) suspects(l *lane.Lane, n int, deaths uint8) []*lane.Claim {
	claims := c.tasks(l, n)
	for _, task := range claims {
		task.Suspicion = deaths
	}
	return claims
}

// claimed is a batch of n claims, as if the lane had claimed it.
func claimed(l *lane.Lane, n int) []*lane.Claim {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.LastBatch++
	b := lane.NewBatch(l, l.LastBatch, make([]any, n))
	l.Batches[b.Number] = b
	l.OpenCount += n
	return b.Claims
}

// end ends a task that runs.
func (c *crew) end(task *lane.Claim, how lane.Ending) {
	c.ways[task] <- how
	synctest.Wait()
}

// begun checks which tasks have started, in any order, and forgets them.
func (c *crew) begun(what string, want ...*lane.Claim) {
	c.t.Helper()
	synctest.Wait()
	var tokens []string
	for _, task := range want {
		tokens = append(tokens, task.Lane.Store.Name+task.Token)
	}
	c.list.Lock()
	defer c.list.Unlock()
	slices.Sort(tokens)
	slices.Sort(c.started)
	if !slices.Equal(c.started, tokens) {
		c.t.Errorf("%s: %v started, expected %v", what, c.started, tokens)
	}
	c.started = nil
}

// count describes how many executors are in which state.
func (c *crew) count() string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return fmt.Sprintf("%d busy, %d idle", c.Busy, c.Idle)
}

// woken reports whether the fetcher or a finisher has been woken, once nothing moves in the bubble any more.
func woken(c chan struct{}) bool {
	synctest.Wait()
	return signalled(c)
}

func signalled(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestExecutorsWakeEachOther(t *testing.T) {
	inCrew(t, 8, 0, func(c *crew) {
		if got := c.count(); got != "0 busy, 8 idle" {
			t.Fatalf("at first: %s", got)
		}
		tasks := c.tasks(c.lane, 12)
		c.Add(tasks)
		c.begun("twelve tasks for eight executors", tasks[:8]...)
		if got := c.count(); got != "8 busy, 0 idle" {
			t.Errorf("all run: %s", got)
		}
		if n := len(c.Running()); n != 8 {
			t.Errorf("%d tasks run, expected 8", n)
		}
		c.end(tasks[3], endDone)
		c.end(tasks[0], endSeenTo)
		c.begun("two have ended", tasks[8:10]...)
		for _, task := range slices.Concat(tasks[1:3], tasks[4:10]) {
			c.end(task, endDone)
		}
		c.begun("two are left", tasks[10:]...)
		if got := c.count(); got != "2 busy, 6 idle" {
			t.Errorf("two are left: %s", got)
		}
		more := c.tasks(c.lane, 6)
		for _, task := range more {
			c.Add([]*lane.Claim{task})
		}
		c.begun("one at a time", more...)
		c.Add(nil)
		c.begun("nothing")
	})
}

// An executor that was woken for a task that is gone must not prevent that others are woken.
func TestExecutorsAreWokenInVain(t *testing.T) {
	inCrew(t, 3, 0, func(c *crew) {
		tasks := c.tasks(c.lane, 3)
		c.Mu.Lock()
		c.Ready = tasks
		c.WakeOne()
		c.TakeBackLocked(nil)
		c.Mu.Unlock()
		c.begun("they went back")
		c.Add(tasks)
		c.begun("they are there again", tasks...)
	})
}

func TestExecutorsThatAreHeld(t *testing.T) {
	inCrew(t, 3, 0, func(c *crew) {
		first := c.tasks(c.lane, 1)
		c.Add(first)
		c.begun("one", first...)
		c.Hold(true)
		if !woken(c.Changed) {
			t.Error("the fetcher is not woken that nothing may start")
		}
		tasks := c.tasks(c.lane, 4)
		c.Add(tasks)
		c.end(first[0], endDone)
		c.WakeAll()
		c.begun("held")
		if got := c.count(); got != "0 busy, 3 idle" {
			t.Errorf("held: %s", got)
		}
		c.Hold(false)
		if !woken(c.Changed) {
			t.Error("the fetcher is not woken that tasks may start")
		}
		c.begun("no longer held", tasks[:3]...)
	})
}

func TestExecutorsWaitForTheHeartbeat(t *testing.T) {
	inCrew(t, 3, 0, func(c *crew) {
		other := c.newLane("other")
		<-time.After(c.Life - c.Life/5)
		c.beaten(other)
		tasks, others := c.tasks(c.lane, 3), c.tasks(other, 1)
		c.Add(tasks)
		c.begun("the heartbeat is old")
		if len(c.beats) == 0 {
			t.Error("nobody has asked for a heartbeat")
		}
		c.Add(others)
		c.begun("the heartbeat of the other queue is fresh", others...)
		c.WakeAll()
		c.begun("woken without a heartbeat")
		// The executors may take a lost claim: they settle it without running it.
		tasks[1].Lost.Store(true)
		c.WakeAll()
		c.begun("one is lost", tasks[1])
		c.end(tasks[1], endSeenTo)
		c.end(others[0], endDone)
		c.beaten(c.lane)
		c.begun("nobody is woken yet")
		c.WakeAll()
		c.begun("after the heartbeat", tasks[0], tasks[2])
		if got := c.count(); got != "2 busy, 1 idle" {
			t.Errorf("after the heartbeat: %s", got)
		}
	})
}

// suspended changes a time as if the machine had been suspended for d after it: by the wall clock it is longer ago than
// by the monotonic one, which had stopped.
func suspended(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	before := at
	// The first word of a time that was read from both clocks holds the seconds of the wall clock, above 30 bits of
	// nanoseconds. There is no other way to set one clock only.
	*(*uint64)(unsafe.Pointer(&before)) -= uint64(d/time.Second) << 30
	if at.Sub(before) != 0 || at.UnixNano()-before.UnixNano() != d.Nanoseconds() {
		t.Fatalf("%v and %v: expected %v by the wall clock only", at, before, d)
	}
	return before
}

func TestFreshHeartbeat(t *testing.T) {
	l, life := &lane.Lane{}, 10*time.Second
	now := time.Now()
	if l.FreshAt(now, life) {
		t.Error("fresh before the first heartbeat")
	}
	for _, tt := range []struct {
		name string
		at   time.Time
		want bool
	}{
		{"just now", now, true},
		{"as old as it may be", now.Add(-8*time.Second + 1), true},
		{"too old", now.Add(-8 * time.Second), false},
		{"long ago", now.Add(-time.Hour), false},
		{"a machine that was suspended for a little while since", suspended(t, now, 7*time.Second), true},
		{"a machine that was suspended for too long since", suspended(t, now, 9*time.Second), false},
	} {
		l.Confirmed.Store(&tt.at)
		if got := l.FreshAt(now, life); got != tt.want {
			t.Errorf("%s: fresh is %v", tt.name, got)
		}
	}
}

func TestExecutorsSurviveGoexit(t *testing.T) {
	inCrew(t, 4, 0, func(c *crew) {
		tasks := c.tasks(c.lane, 12)
		c.Add(tasks[:4])
		c.begun("the first", tasks[:4]...)
		for _, task := range tasks[:3] {
			c.end(task, endGoexit)
		}
		if got := c.count(); got != "1 busy, 3 idle" {
			t.Errorf("three have left: %s", got)
		}
		if running := c.Running(); len(running) != 1 || running[0] != tasks[3] {
			t.Errorf("%d tasks run, expected the fourth only", len(running))
		}
		if n := len(doneOn(c.lane)); n != 0 {
			t.Errorf("%d of them are to be acknowledged", n)
		}
		c.Add(tasks[4:])
		c.begun("as many as before", tasks[4:7]...)
		c.end(tasks[5], endGoexit)
		c.end(tasks[7], endGoexit)
		c.begun("each that leaves is replaced", tasks[7], tasks[8])
		if got := c.count(); got != "4 busy, 0 idle" {
			t.Errorf("all run: %s", got)
		}
	})
}

// A handler that calls Goexit frees its place, also the place of a suspect, and the fetcher is woken.
func TestGoexitMakesRoom(t *testing.T) {
	inCrew(t, 1, 0, func(c *crew) {
		suspect := c.suspects(c.lane, 1, 2)
		c.AdmitSuspect(suspect[0])
		c.Add(suspect)
		c.begun("the suspect", suspect...)
		if n, _, _ := c.ClaimBudget(); n != 0 || c.LoneTask() == nil {
			t.Fatalf("room for %d beside the suspect", n)
		}
		c.end(suspect[0], endGoexit)
		if !woken(c.Changed) || c.LoneTask() != nil {
			t.Error("the suspect has left, and the fetcher is not woken")
		}
	})
}

func TestExecutorsStop(t *testing.T) {
	inCrew(t, 3, 0, func(c *crew) {
		tasks := c.tasks(c.lane, 5)
		c.Add(tasks)
		c.begun("the first", tasks[:3]...)
		c.Stop()
		c.end(tasks[0], endDone)
		c.end(tasks[1], endGoexit)
		c.begun("nothing starts any more")
		over := make(chan struct{})
		go func() { c.Sound.Wait(); close(over) }()
		if woken(over) {
			t.Fatal("over while a task runs")
		}
		if back := c.TakeBack(nil); !slices.Equal(back, tasks[3:]) {
			t.Errorf("%d tasks have not started, expected 2", len(back))
		}
		c.end(tasks[2], endDone)
		<-over
		if len(c.Running()) != 0 || !slices.Equal(doneOn(c.lane), []*lane.Claim{tasks[0], tasks[2]}) {
			t.Errorf("%d tasks run, and %d are done", len(c.Running()), len(doneOn(c.lane)))
		}
	})
}

// TestDoneIsTold ends tasks while the fetcher has nothing to claim, and while it has: the fetcher or a finisher must
// acknowledge them.
func TestDoneIsTold(t *testing.T) {
	t.Parallel()
	for _, hungry := range []bool{false, true} {
		c := newCrew(t, 1, 0)
		c.Mu.Lock()
		c.FetcherWaits, c.Busy = hungry, 1
		c.TaskEnded(c.tasks(c.lane, 1)[0], true, 0)
		c.Mu.Unlock()
		finisher, fetcher := len(finisherOf(c.lane).Wakes), len(c.Changed)
		if hungry && (finisher != 0 || fetcher != 1) || !hungry && finisher != 1 {
			t.Errorf("hungry %v: the finisher was woken %d times, the fetcher %d times", hungry, finisher, fetcher)
		}
	}
}

// TestStillness: executors are idle only if no task runs, is ready, is being claimed or waits to run alone.
func TestStillness(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(c *crew){
		"":           func(*crew) {},
		"busy":       func(c *crew) { c.Busy = 1 },
		"ready":      func(c *crew) { c.Ready = c.tasks(c.lane, 1) },
		"coming":     func(c *crew) { c.Claiming = 1 },
		"a lone one": func(c *crew) { c.Lone = c.tasks(c.lane, 1)[0] },
	} {
		c := newCrew(t, 1, 0)
		set(c)
		if still, _ := c.IdleState(); still != (name == "") {
			t.Errorf("%q: still %v", name, still)
		}
	}
}
