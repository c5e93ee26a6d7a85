package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
)

// loner is a fetcher with a lone task, without Redis. It records the tasks that it would start.
type loner struct {
	*fetcher
	c *crew
}

// idleOwner is a worker that may claim. It counts how often its movers are to look.
type idleOwner struct{ looks int }

func (*idleOwner) mayClaim() bool { return true }

func (*idleOwner) readControl(context.Context, *lane) error { return nil }

func (o *idleOwner) pokeMovers() { o.looks++ }

// newLoner returns a fetcher that waits for two seconds at first.
func newLoner(c *crew, lanes ...*lane) *loner {
	l := &loner{c: c}
	n := len(lanes)
	l.fetcher = &fetcher{
		lanes: lanes, exec: c.executors, life: time.Minute, patience: 2 * time.Second, wakes: make(chan wakeUp, 1),
		returned: make(chan flight, 1), hasTasks: make([]bool, n), wasPaused: make([]bool, n),
		behind: make([]bool, n), mend: make([]bool, n),
		emptyAt: make([]time.Time, n),
		owner:   &idleOwner{}, receiver: &receiver{exec: c.executors, log: loop.NewJournal((&logText{}).logger())},
	}
	for range lanes {
		l.waiterOf = append(l.waiterOf, &waiter{})
	}
	l.suspects.patience = l.patience
	l.exec.held = true // what is started stays ready
	return l
}

// await makes a claim the lone task, which waits from now on.
func (l *loner) await(task *Claim) {
	l.exec.lone = task
	l.suspects.lone, l.suspects.started, l.suspects.since = task, false, time.Now()
	clear(l.hasTasks)
}

// over lets the fetcher work until there is no lone task any more, and returns how long that took.
func (l *loner) over() time.Duration {
	start := time.Now()
	for l.suspects.lone != nil {
		l.handleLone(l.c.t.Context())
	}
	return time.Since(start)
}

// free checks that the worker takes no suspect for as long as other tasks had to wait, and that it looks at all queues.
func (l *loner) free(what string, waited time.Duration) {
	l.c.t.Helper()
	if rest := time.Until(l.suspects.noneBefore); rest != waited {
		l.c.t.Errorf("%s: others come first for %v, expected %v", what, rest, waited)
	}
	for i, hot := range l.hasTasks {
		if !hot {
			l.c.t.Errorf("%s: queue %d is not looked at", what, i)
		}
	}
}

// deferred checks that a task was put back among the suspects.
func (l *loner) deferred(what string, task *Claim) {
	l.c.t.Helper()
	p := finisherOf(task.lane).pending
	if len(p) != 1 || p[0].claim != task || p[0].outcome != lifecycle.OutcomeDefer || l.exec.loneTask() != nil {
		l.c.t.Errorf("%s: %+v, expected that it is put back", what, p)
	}
	finisherOf(task.lane).pending = nil
	task.lane.settle(task)
}

// inLoner runs a test with a fetcher of two queues.
func inLoner(t *testing.T, test func(l *loner)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 4, 0)
		test(newLoner(c, c.lane, c.newLane("other")))
	})
}

// A worker waits in vain for twice as long each time, at most a minute, and for as long as at first once a task has run
// alone.
func TestPatienceForALoneTask(t *testing.T) {
	inLoner(t, func(l *loner) {
		busy := claimed(l.lanes[1], 1)
		for _, seconds := range []int{2, 4, 8, 16, 32, 60, 60} {
			want := time.Duration(seconds) * time.Second
			task := l.c.suspects(l.c.lane, 1, 9)[0]
			l.await(task)
			waited := l.over()
			if waited <= want || waited > want+2*settlePause || len(l.exec.ready) > 0 {
				l.c.t.Fatalf("it waited for %v and started %d, expected little more than %v", waited, len(l.exec.ready),
					want)
			}
			l.free("in vain", waited)
			l.deferred("in vain", task)
		}
		l.lanes[1].settle(busy...)
		task := l.c.suspects(l.c.lane, 1, 9)[0]
		l.await(task)
		l.handleLone(l.c.t.Context())
		if len(l.exec.ready) != 1 || l.exec.ready[0] != task || !l.suspects.started {
			l.c.t.Fatalf("%d started, expected the lone task", len(l.exec.ready))
		}
		<-time.After(7 * time.Second) // the task's work, by the time of the bubble
		l.exec.forgetLone(task)
		l.over()
		l.free("it has run", 7*time.Second)
		if l.suspects.patience != l.patience {
			l.c.t.Errorf("the next lone task is waited for %v, expected %v", l.suspects.patience, l.patience)
		}
	})
}

// A lone task that was lost while it waited does not start: another worker may have it.
func TestLostLoneTaskDoesNotStart(t *testing.T) {
	inLoner(t, func(l *loner) {
		task := l.c.suspects(l.c.lane, 1, 9)[0]
		l.await(task)
		task.lost.Store(true)
		l.handleLone(l.c.t.Context())
		if len(l.exec.ready) > 0 {
			l.c.t.Error("it has started")
		}
		l.deferred("lost", task)
	})
}

// A lone task does not start while a claim is under way, which may bring others.
func TestLoneTaskWaitsForClaims(t *testing.T) {
	inLoner(t, func(l *loner) {
		task := l.c.suspects(l.c.lane, 1, 9)[0]
		l.await(task)
		l.inFlight = 1
		l.handleLone(l.c.t.Context())
		if len(l.exec.ready) > 0 {
			l.c.t.Fatal("it starts beside what a claim brings")
		}
		l.inFlight = 0
		l.handleLone(l.c.t.Context())
		if len(l.exec.ready) != 1 {
			l.c.t.Error("it does not start")
		}
	})
}

// After a lone task, a worker takes suspects for a while only if it has nothing else to do, and never while it has as
// many as it may.
func TestWhenSuspectsAreTaken(t *testing.T) {
	for what, c := range map[string]struct {
		set  func(l *loner)
		want bool
	}{
		"idle":              {func(*loner) {}, true},
		"a task in hand":    {func(l *loner) { claimed(l.lanes[1], 1) }, false},
		"a claim":           {func(l *loner) { l.inFlight = 1 }, false},
		"a queue has tasks": {func(l *loner) { l.hasTasks[1] = true }, false},
		"enough suspects":   {func(l *loner) { l.exec.crowded = true }, false},
		"a lone task":       {func(l *loner) { l.await(l.c.suspects(l.c.lane, 1, 9)[0]) }, false},
		"their time again": {func(l *loner) {
			l.hasTasks[1], l.inFlight, l.suspects.noneBefore = true, 1, time.Now()
		}, true},
		"enough all the same": {func(l *loner) { l.exec.crowded, l.suspects.noneBefore = true, time.Now() }, false},
	} {
		inLoner(t, func(l *loner) {
			l.suspects.noneBefore = time.Now().Add(time.Minute)
			c.set(l)
			if got := l.takesSuspects(time.Now()); got != c.want {
				l.c.t.Errorf("%s: %v, expected %v", what, got, c.want)
			}
		})
	}
}
