package delayed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redistest"
)

// watched is a crew with a watchdog whose clock stands until the test moves it.
type watched struct {
	*crew
	dog    *watchdog
	log    *logText
	limits map[*claim]time.Duration
	events []string
	drains int
}

// inWatched runs a test with n executors, spare further ones, handlers that may be late by 30 s, and reports after 30
// min.
func inWatched(t *testing.T, n, spare int, test func(*watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{crew: newCrew(t, n, 0), log: &logText{}, limits: map[*claim]time.Duration{}}
		w.reserve(spare)
		w.dog = &watchdog{
			exec: w.executors, limit: func(c *claim, _ time.Duration) time.Duration { return w.limits[c] },
			after:   30 * time.Second,
			longRun: longRun, log: loop.NewJournal(w.log.logger()), drain: func() { w.drains++ },
			told: map[*claim]bool{},
			emit: func(e Event) { w.events = append(w.events, fmt.Sprint(e.Kind, " ", e.Reason, " ", e.Duration)) },
		}
		w.start()
		synctest.Wait()
		test(w)
		synctest.Wait()
		for _, leave := range w.ways {
			close(leave)
		}
		w.stop()
		w.over.Wait()
		w.late.Wait()
		if got := w.count(); got != "0 busy, 0 idle" || len(w.spare)+w.n != n+spare {
			t.Errorf("after the stop: %s, %d spare beside %d", got, len(w.spare), w.n)
		}
	})
}

// limited are n tasks whose handlers have a limit.
func (w *watched) limited(n int, limit time.Duration) []*claim {
	tasks := w.tasks(w.lane, n)
	stubborn, err := function.New(func() {}, function.Spec{Name: "stubborn", Named: true})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range tasks {
		c.fn, c.msg.Path, w.limits[c] = stubborn, stubborn.Path(), limit
	}
	return tasks
}

// pass lets time pass.
func (w *watched) pass(d time.Duration) {
	w.t.Helper()
	time.Sleep(d) //nolint:forbidigo // of the bubble's clock
}

// looks expects how long the watchdog sleeps after its look, and how many handlers it has reported so far.
func (w *watched) looks(what string, wait time.Duration, reports int) {
	w.t.Helper()
	synctest.Wait()
	if got := w.dog.look(time.Now()); got != wait {
		w.t.Errorf("%s: sleeps for %v, expected %v", what, got, wait)
	}
	synctest.Wait()
	if n := strings.Count(w.log.String(), "function=stubborn"); n != reports || len(w.events) != reports {
		w.t.Errorf("%s: %d reports and events %v, expected %d\n%s", what, n, w.events, reports, w.log)
	}
}

func TestStuckHandlersAreReplaced(t *testing.T) {
	inWatched(t, 2, 1, func(w *watched) {
		tasks := w.limited(5, 10*time.Second)
		w.limits[tasks[1]] = time.Minute
		w.looks("nobody runs", 30*time.Second, 0)
		w.add(tasks)
		w.begun("as many as fit", tasks[:2]...)
		w.looks("they have just begun", 30*time.Second, 0)
		w.pass(30 * time.Second)
		w.looks("one is late, but not stuck", 10*time.Second, 0)
		w.pass(10 * time.Second)
		w.looks("one is stuck", 30*time.Second, 1)
		w.begun("another task runs in its place", tasks[2])
		if got := w.count(); got != "2 busy, 0 idle" || len(w.running()) != 3 {
			t.Errorf("%s, %d run", got, len(w.running()))
		}
		if text := w.log.String(); !strings.Contains(text, "ignores that its context has ended") ||
			!strings.Contains(text, "limit=10s") ||
			!strings.Contains(text, "ran=40s") || !strings.Contains(text, "(*crew).runTask") {
			t.Error(text)
		}
		w.looks("it is reported once", 30*time.Second, 1)
		w.end(tasks[2], endDone)
		w.begun("the replacement goes on", tasks[3])
		w.end(tasks[0], endDone)
		if stuck, _ := w.replace(0, tasks[0]); stuck {
			t.Error("what has returned is stuck")
		}
		w.begun("the executor of the stuck one ends")
		if !slices.Equal(w.lane.done, []*claim{tasks[2], tasks[0]}) || len(w.spare) != 1 || w.drains != 0 {
			t.Errorf("%d are done, %d spare, stopped %d times", len(w.lane.done), len(w.spare), w.drains)
		}
		w.end(tasks[1], endDone)
		w.begun("the other one goes on", tasks[4])
		w.pass(40 * time.Second)
		w.looks("the next is stuck", 30*time.Second, 3)
		if got := strings.Join(w.events, ", "); w.drains != 1 || len(w.dog.fatal.Funcs) != 2 ||
			!strings.HasSuffix(got, "given up 40s") {
			t.Errorf("stopped %d times by %v, events %s", w.drains, w.dog.fatal, got)
		}
	})
}

func TestStuckHandlersThatLeave(t *testing.T) {
	inWatched(t, 1, 1, func(w *watched) {
		tasks := w.limited(3, time.Second)
		w.add(tasks)
		w.begun("the first", tasks[0])
		w.pass(31 * time.Second)
		w.looks("it is stuck", 30*time.Second, 1)
		w.begun("the next", tasks[1])
		w.end(tasks[0], endGoexit)
		w.begun("its executor ends with it")
		if got := w.count(); got != "1 busy, 0 idle" || len(w.spare) != 1 {
			t.Errorf("%s, %d spare", got, len(w.spare))
		}
		w.end(tasks[1], endDone)
		w.begun("the last", tasks[2])
		w.pass(31 * time.Second)
		w.looks("its place can be taken again", 30*time.Second, 2)
	})
}

// An executor that rests between two tasks ends as well when its place was taken.
func TestStuckHandlersBetweenRests(t *testing.T) {
	inWatched(t, 1, 1, func(w *watched) {
		w.rest = 5 * time.Second
		tasks := w.limited(3, time.Second)
		w.add(tasks)
		w.begun("the first", tasks[0])
		w.pass(31 * time.Second)
		w.looks("it is stuck", 30*time.Second, 1)
		w.begun("the next", tasks[1])
		w.end(tasks[0], endDone)
		w.end(tasks[1], endDone)
		w.begun("one rests, and one is gone")
		w.mu.Lock()
		if w.resting != 1 || len(w.spare) != 1 {
			t.Errorf("%d rest, %d spare", w.resting, len(w.spare))
		}
		w.mu.Unlock()
		w.pass(5 * time.Second)
		w.begun("the last", tasks[2])
	})
}

func TestTooManyStuckHandlers(t *testing.T) {
	for _, spare := range []int{0, 1, 2} {
		inWatched(t, 3, spare, func(w *watched) {
			tasks := w.limited(5, time.Second)
			w.add(tasks)
			w.begun("the first", tasks[:3]...)
			w.pass(31 * time.Second)
			w.looks("all are stuck", 30*time.Second, 3)
			w.begun("as many as are spare", tasks[3:3+spare]...)
			if w.drains != 1 || len(w.dog.fatal.Funcs) != 3 || len(w.dog.fatal.IDs) != 3 {
				t.Errorf("stopped %d times by %v", w.drains, w.dog.fatal)
			}
			w.looks("that is told once", 30*time.Second, 3)
			for _, c := range tasks[:3] {
				w.end(c, endDone)
			}
			if n := w.space(); n != 0 || w.n != spare {
				t.Errorf("room for %d, and %d executors, expected those that were spare", n, w.n)
			}
		})
	}
}

func TestLongHandlersWithoutLimitAreReported(t *testing.T) {
	inWatched(t, 1, 1, func(w *watched) {
		tasks := w.limited(2, 0)
		w.add(tasks)
		w.begun("the first", tasks[0])
		w.pass(longRun - 10*time.Second)
		w.looks("it runs for long", 10*time.Second, 0)
		w.pass(10 * time.Second)
		w.looks("it runs for very long", 30*time.Second, 1)
		w.begun("nothing takes its place")
		if text := w.log.String(); !strings.Contains(text, "give it a Timeout") || !strings.Contains(text, "runTask") ||
			w.events[0] != "task stuck long 30m0s" {
			t.Errorf("events %v\n%s", w.events, text)
		}
		w.beaten(w.lane)
		w.end(tasks[0], endDone)
		w.begun("it goes on as ever", tasks[1])
		w.looks("it is forgotten", 30*time.Second, 1)
		if len(w.dog.told) != 0 {
			t.Errorf("%d are remembered", len(w.dog.told))
		}
	})
}

// Many at once do not fill the log.
func TestManyStuckHandlers(t *testing.T) {
	inWatched(t, mostReports+5, mostReports+5, func(w *watched) {
		tasks := w.limited(mostReports+5, time.Second)
		w.add(tasks)
		w.begun("all", tasks...)
		w.pass(time.Minute)
		w.looks("all are stuck", 30*time.Second, mostReports)
		if !strings.Contains(w.log.String(), "handlers=5") || w.drains != 0 {
			t.Error(w.log.String())
		}
	})
}

// stuckOn blocks as a handler does that waits for something that never comes.
func stuckOn(leave chan struct{}) { <-leave }

func TestWorkerReplacesStuckHandlers(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 3), make(chan struct{})
	ends := make(chan error, 3)
	f := b.fn("f", func(ctx context.Context, i int) {
		entered <- i
		if i == 0 {
			<-ctx.Done()
			ends <- context.Cause(ctx)
			stuckOn(leave)
		}
	})
	cfg := b.config()
	cfg.Concurrency, cfg.StuckAfter = 1, 10*time.Millisecond
	w := b.work(cfg, f)
	b.delayWith(b.q.With(Timeout(10*time.Millisecond)), f, 0) // the others have all the time they need
	b.delay(f, 1)
	await(b, "the first task", entered)
	if err := await(b, "the end of its context", ends); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	await(b, "the task in its place", entered)
	b.Until("that is done", func() bool { return b.counters()["processed"] == 1 })
	if n := b.Size("_processing:" + w.ID()); n != 1 {
		t.Errorf("%d claims stand, expected that of the stuck task", n)
	}
	if text := b.log.String(); !strings.Contains(text, "delayed.stuckOn") ||
		!strings.Contains(text, "function="+b.Name+".f") || strings.Contains(text, "stuckOn(0x") {
		t.Error(text)
	}
	close(leave)
	b.Until("its end counts", func() bool { return b.counters()["processed"] == 2 })
	b.delay(f, 2)
	await(b, "the next task", entered)
	b.Idle()
	w.mustStop()
	b.Check(redistest.Invariants{Idle: true})
}

func TestWorkerStopsBecauseOfStuckHandlers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		grace time.Duration
		sound bool // the other handler finishes
	}{
		{"the others finish", time.Hour, true},
		{"others do not", 10 * time.Millisecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			entered, leave, leaveOther := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
			f := b.fn("f", func(context.Context, int) { stuckOn(leave) }, Timeout(10*time.Millisecond))
			other := b.fn("other", func(context.Context) { entered <- struct{}{}; <-leaveOther })
			cfg := b.config()
			cfg.Concurrency, cfg.StuckAfter, cfg.MaxStuck = 3, 10*time.Millisecond, 1
			cfg.Grace, cfg.CancelGrace = tt.grace, 10*time.Millisecond
			w, h := b.listened(cfg, f, other)
			b.delay(other)
			result := make(chan error, 1)
			go func() { result <- w.Run(t.Context()) }()
			await(b, "the other handler", entered)
			refs := []string{b.delay(f, 1).ID()}
			b.Until("it is stuck", func() bool { return strings.Contains(b.log.String(), refs[0]) })
			refs = append(refs, b.delay(f, 2).ID())
			b.Until("the worker stops", func() bool { return w.Status().State == WorkerStopping })
			if tt.sound {
				close(leaveOther)
			}
			err := await(b, "Run", result)
			var stuck *StuckError
			if !errors.As(err, &stuck) || len(stuck.Funcs) != 2 || stuck.Funcs[0] != b.Name+".f" ||
				w.Status().StopReason != "stuck" {
				t.Fatalf("Run: %v, stop reason %q", err, w.Status().StopReason)
			}
			slices.Sort(stuck.IDs)
			slices.Sort(refs)
			if !slices.Equal(stuck.IDs, refs) {
				t.Errorf("ids %v, expected %v", stuck.IDs, refs)
			}
			var running *StillRunningError
			if others := errors.As(err, &running); others == tt.sound || others &&
				!slices.Equal(running.Funcs, []string{b.Name + ".other"}) {
				t.Errorf("Run: %v", err)
			}
			if n := b.Size("_processing:" + w.ID()); n < 2 {
				t.Errorf("%d claims stand, expected those of the stuck tasks", n)
			}
			close(leave)
			if !tt.sound {
				close(leaveOther)
			}
			b.Until("the worker is gone", func() bool { return len(h.of(EventWorkerStopped)) == 1 })
			last := h.of(EventWorkerStopped)[0]
			if !errors.Is(last.Err, stuck) || last.Reason != "stuck" || w.Status().State != WorkerStopped {
				t.Errorf("the last event: %+v, expected the error that Run returns", last)
			}
			b.Check(redistest.Invariants{Idle: true})
			if n := b.counters()["processed"]; n != 3 {
				t.Errorf("processed %d, expected 3: late ends count", n)
			}
		})
	}
}

// Handlers that are stuck are no reason to wait longer for a stop, and are reported as those that still run.
func TestStopBesideAStuckHandler(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	f := b.fn("f", func() { entered <- struct{}{}; stuckOn(leave) })
	cfg := b.config()
	cfg.Timeout, cfg.StuckAfter, cfg.Grace, cfg.CancelGrace = time.Millisecond, time.Millisecond, 10*time.Millisecond,
		10*time.Millisecond
	w, err := NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	b.delay(f)
	await(b, "the handler", entered)
	b.Until("it is stuck", func() bool { return strings.Contains(b.log.String(), "handler is stuck") })
	cancel()
	var running *StillRunningError
	if err := await(b, "Run", result); !errors.As(err, &running) || len(running.Funcs) != 1 {
		t.Errorf("Run: %v", err)
	}
	close(leave)
	b.Until("the worker is gone", func() bool { return w.Status().State == WorkerStopped })
}

func TestMaxStuckDefaults(t *testing.T) {
	for _, tt := range []struct{ concurrency, given, want int }{
		{1, 0, 1},
		{5, 0, 1},
		{100, 0, 10},
		{100, 3, 3},
		{100, -1, 0},
	} {
		if got := (WorkerConfig{
			Concurrency: tt.concurrency,
			MaxStuck:    tt.given,
		}).withDefaults().MaxStuck; got != tt.want {
			t.Errorf("%d of %d: %d, expected %d", tt.given, tt.concurrency, got, tt.want)
		}
	}
	if err := (WorkerConfig{MaxStuck: maxConcurrency + 1}).withDefaults().check(""); err == nil ||
		!strings.Contains(err.Error(), "WorkerConfig.MaxStuck is 100001: expected at most 100000") {
		t.Error(err)
	}
}
