package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
)

// loner is a fetcher with a lone task, without Redis. It records the tasks that it would start.
type loner struct {
	*fetch.Fetcher
	c *crew
}

// idleOwner is a worker that may claim. It counts how often its movers are to look.
type idleOwner struct{ looks int }

func (*idleOwner) MayClaim() bool { return true }

func (*idleOwner) ReadControl(context.Context, *lane.Lane) error { return nil }

func (o *idleOwner) PokeMovers() { o.looks++ }

// newLoner returns a fetcher that waits for two seconds at first.
func newLoner(c *crew, lanes ...*lane.Lane) *loner {
	l := &loner{c: c}
	var all []int
	for i := range lanes {
		all = append(all, i)
	}
	l.Fetcher = &fetch.Fetcher{
		Life: time.Minute, Patience: 2 * time.Second,
		Wakes:   make(chan fetch.WakeUp, 1),
		Waiters: []*fetch.Waiter{{Lanes: all}},
		Receiver: &fetch.Receiver{
			Decider: &finish.Decider{Log: loop.NewJournal((&logText{}).logger())},
			Lanes:   lanes, Exec: c.Executors, Owner: &idleOwner{},
		},
	}
	l.Prepare()
	l.quiet()
	l.Suspects.Patience = l.Patience
	l.Exec.Held = true // what is started stays ready
	return l
}

// await makes a claim the lone task, which waits from now on.
func (l *loner) await(task *lane.Claim) {
	l.Exec.Lone = task
	l.Suspects.Lone, l.Suspects.Started, l.Suspects.Since = task, false, time.Now()
	l.quiet()
}

// quiet lets no queue seem to have tasks.
func (l *loner) quiet() {
	for i := range l.Queues {
		l.Queues[i].HasTasks = false
	}
}

// over lets the fetcher work until there is no lone task any more, and returns how long that took.
func (l *loner) over() time.Duration {
	start := time.Now()
	for l.Suspects.Lone != nil {
		l.HandleLone(l.c.t.Context())
	}
	return time.Since(start)
}

// free checks that the worker takes no suspect for as long as other tasks had to wait, and that it looks at all queues.
func (l *loner) free(what string, waited time.Duration) {
	l.c.t.Helper()
	if rest := time.Until(l.Suspects.NoneBefore); rest != waited {
		l.c.t.Errorf("%s: others come first for %v, expected %v", what, rest, waited)
	}
	for i, q := range l.Queues {
		if !q.HasTasks {
			l.c.t.Errorf("%s: queue %d is not looked at", what, i)
		}
	}
}

// deferred checks that a task was put back among the suspects.
func (l *loner) deferred(what string, task *lane.Claim) {
	l.c.t.Helper()
	p := finisherOf(task.Lane).Pending
	if len(p) != 1 || p[0].Claim != task || p[0].Outcome != lifecycle.OutcomeDefer || l.Exec.LoneTask() != nil {
		l.c.t.Errorf("%s: %+v, expected that it is put back", what, p)
	}
	finisherOf(task.Lane).Pending = nil
	task.Lane.Settle(task)
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
		busy := claimed(l.Lanes[1], 1)
		for _, seconds := range []int{2, 4, 8, 16, 32, 60, 60} {
			want := time.Duration(seconds) * time.Second
			task := l.c.suspects(l.c.lane, 1, 9)[0]
			l.await(task)
			waited := l.over()
			if waited <= want || waited > want+2*lane.SettlePause || len(l.Exec.Ready) > 0 {
				l.c.t.Fatalf("it waited for %v and started %d, expected little more than %v", waited, len(l.Exec.Ready),
					want)
			}
			l.free("in vain", waited)
			l.deferred("in vain", task)
		}
		l.Lanes[1].Settle(busy...)
		task := l.c.suspects(l.c.lane, 1, 9)[0]
		l.await(task)
		l.HandleLone(l.c.t.Context())
		if len(l.Exec.Ready) != 1 || l.Exec.Ready[0] != task || !l.Suspects.Started {
			l.c.t.Fatalf("%d started, expected the lone task", len(l.Exec.Ready))
		}
		<-time.After(7 * time.Second) // the task's work, by the time of the bubble
		l.Exec.ForgetLone(task)
		l.over()
		l.free("it has run", 7*time.Second)
		if l.Suspects.Patience != l.Patience {
			l.c.t.Errorf("the next lone task is waited for %v, expected %v", l.Suspects.Patience, l.Patience)
		}
	})
}

// A lone task that was lost while it waited does not start: another worker may have it.
func TestLostLoneTaskDoesNotStart(t *testing.T) {
	inLoner(t, func(l *loner) {
		task := l.c.suspects(l.c.lane, 1, 9)[0]
		l.await(task)
		task.Lost.Store(true)
		l.HandleLone(l.c.t.Context())
		if len(l.Exec.Ready) > 0 {
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
		l.InFlight = 1
		l.HandleLone(l.c.t.Context())
		if len(l.Exec.Ready) > 0 {
			l.c.t.Fatal("it starts beside what a claim brings")
		}
		l.InFlight = 0
		l.HandleLone(l.c.t.Context())
		if len(l.Exec.Ready) != 1 {
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
		"a task in hand":    {func(l *loner) { claimed(l.Lanes[1], 1) }, false},
		"a claim":           {func(l *loner) { l.InFlight = 1 }, false},
		"a queue has tasks": {func(l *loner) { l.Queues[1].HasTasks = true }, false},
		"enough suspects":   {func(l *loner) { l.Exec.Crowded.Store(true) }, false},
		"a lone task":       {func(l *loner) { l.await(l.c.suspects(l.c.lane, 1, 9)[0]) }, false},
		"their time again": {func(l *loner) {
			l.Queues[1].HasTasks, l.InFlight, l.Suspects.NoneBefore = true, 1, time.Now()
		}, true},
		"enough all the same": {func(l *loner) {
			l.Exec.Crowded.Store(true)
			l.Suspects.NoneBefore = time.Now()
		}, false},
	} {
		inLoner(t, func(l *loner) {
			l.Suspects.NoneBefore = time.Now().Add(time.Minute)
			c.set(l)
			if got := l.TakesSuspects(time.Now()); got != c.want {
				l.c.t.Errorf("%s: %v, expected %v", what, got, c.want)
			}
		})
	}
}
