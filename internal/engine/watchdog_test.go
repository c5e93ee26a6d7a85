package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/state"
)

// watched is a crew with a watchdog whose clock stops until the test moves it.
type watched struct {
	*crew
	dog    *exec.Watchdog
	log    *logText
	limits map[*lane.Claim]time.Duration
	events []string
	drains int
}

func (w *watched) TimeLimit(c *lane.Claim, _ time.Duration) time.Duration { return w.limits[c] }

func (w *watched) StopFor(state.Reason) { w.drains++ }

// inWatched runs a test with n executors, spare further ones, handlers that may be late by 30 s, and reports after 30
// min.
func inWatched(t *testing.T, n, spare int, test func(*watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{crew: newCrew(t, n, 0), log: &logText{}, limits: map[*lane.Claim]time.Duration{}}
		w.Reserve(spare)
		w.dog = &exec.Watchdog{
			Exec: w.Executors, Limits: w, Events: &events.Listeners{}, After: 30 * time.Second,
			LongAfter: exec.LongRun, Log: loop.NewJournal(w.log.logger()),
			Reported: map[*lane.Claim]bool{},
		}
		w.Worker = w
		w.dog.Events.Add(func(e events.Event) {
			w.events = append(w.events, fmt.Sprint(e.Kind == event.TaskStuck, " ", e.Reason, " ", e.Duration))
		})
		w.dog.Events.Start(w.dog.Log)
		defer w.dog.Events.Stop(time.Minute)
		w.Start()
		synctest.Wait()
		test(w)
		synctest.Wait()
		for _, leave := range w.ways {
			close(leave)
		}
		w.Stop()
		w.Sound.Wait()
		w.Stuck.Wait()
		if got := w.count(); got != "0 busy, 0 idle" || len(w.Spare)+w.N != n+spare {
			t.Errorf("after the stop: %s, %d spare beside %d", got, len(w.Spare), w.N)
		}
	})
}

// limited returns n tasks whose handlers have a time limit.
func (w *watched) limited(n int, limit time.Duration) []*lane.Claim {
	tasks := w.tasks(w.lane, n)
	stubborn, err := function.New(func() {}, function.Spec{Name: "stubborn", Named: true})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range tasks {
		c.Fn, c.Msg.Path, w.limits[c] = stubborn, stubborn.Path(), limit
	}
	return tasks
}

// pass lets time pass.
func (w *watched) pass(d time.Duration) {
	w.t.Helper()
	time.Sleep(d) //nolint:forbidigo // of the bubble's clock
}

// looks checks how long the watchdog sleeps after its look, and how many handlers it has reported so far.
func (w *watched) looks(what string, wait time.Duration, reports int) {
	w.t.Helper()
	synctest.Wait()
	if got := w.dog.Check(time.Now()); got != wait {
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
		w.Add(tasks)
		w.begun("as many as fit", tasks[:2]...)
		w.looks("they have just begun", 30*time.Second, 0)
		w.pass(30 * time.Second)
		w.looks("one is late, but not stuck", 10*time.Second, 0)
		w.pass(10 * time.Second)
		w.looks("one is stuck", 30*time.Second, 1)
		w.begun("another task runs in its place", tasks[2])
		if got := w.count(); got != "2 busy, 0 idle" || len(w.Running()) != 3 {
			t.Errorf("%s, %d run", got, len(w.Running()))
		}
		if text := w.log.String(); !strings.Contains(text, "ignores that its context has ended") ||
			!strings.Contains(text, "limit=10s") ||
			!strings.Contains(text, "ran=40s") || !strings.Contains(text, "(*crew).Execute") {
			t.Error(text)
		}
		w.looks("it is reported once", 30*time.Second, 1)
		w.end(tasks[2], endDone)
		w.begun("the replacement goes on", tasks[3])
		w.end(tasks[0], endDone)
		if stuck, _ := w.Replace(0, tasks[0]); stuck {
			t.Error("what has returned is stuck")
		}
		w.begun("the executor of the stuck one ends")
		if !slices.Equal(doneOn(w.lane), []*lane.Claim{tasks[2], tasks[0]}) || len(w.Spare) != 1 || w.drains != 0 {
			t.Errorf("%d are done, %d spare, stopped %d times", len(doneOn(w.lane)), len(w.Spare), w.drains)
		}
		w.end(tasks[1], endDone)
		w.begun("the other one goes on", tasks[4])
		w.pass(40 * time.Second)
		w.looks("the next is stuck", 30*time.Second, 3)
		if got := strings.Join(w.events, ", "); w.drains != 1 || len(w.dog.Fatal.Funcs) != 2 ||
			!strings.HasSuffix(got, "given up 40s") {
			t.Errorf("stopped %d times by %v, events %s", w.drains, w.dog.Fatal, got)
		}
	})
}

func TestStuckHandlersThatLeave(t *testing.T) {
	inWatched(t, 1, 1, func(w *watched) {
		tasks := w.limited(3, time.Second)
		w.Add(tasks)
		w.begun("the first", tasks[0])
		w.pass(31 * time.Second)
		w.looks("it is stuck", 30*time.Second, 1)
		w.begun("the next", tasks[1])
		w.end(tasks[0], endGoexit)
		w.begun("its executor ends with it")
		if got := w.count(); got != "1 busy, 0 idle" || len(w.Spare) != 1 {
			t.Errorf("%s, %d spare", got, len(w.Spare))
		}
		w.end(tasks[1], endDone)
		w.begun("the last", tasks[2])
		w.pass(31 * time.Second)
		w.looks("its place can be taken again", 30*time.Second, 2)
	})
}

// A replaced executor also ends if it would rest before its next task.
func TestStuckHandlersBetweenRests(t *testing.T) {
	inWatched(t, 1, 1, func(w *watched) {
		w.Rest = 5 * time.Second
		tasks := w.limited(3, time.Second)
		w.Add(tasks)
		w.begun("the first", tasks[0])
		w.pass(31 * time.Second)
		w.looks("it is stuck", 30*time.Second, 1)
		w.begun("the next", tasks[1])
		w.end(tasks[0], endDone)
		w.end(tasks[1], endDone)
		w.begun("one rests, and one is gone")
		w.Mu.Lock()
		if w.Resting != 1 || len(w.Spare) != 1 {
			t.Errorf("%d rest, %d spare", w.Resting, len(w.Spare))
		}
		w.Mu.Unlock()
		w.pass(5 * time.Second)
		w.begun("the last", tasks[2])
	})
}

func TestTooManyStuckHandlers(t *testing.T) {
	for _, spare := range []int{0, 1, 2} {
		inWatched(t, 3, spare, func(w *watched) {
			tasks := w.limited(5, time.Second)
			w.Add(tasks)
			w.begun("the first", tasks[:3]...)
			w.pass(31 * time.Second)
			w.looks("all are stuck", 30*time.Second, 3)
			w.begun("as many as are spare", tasks[3:3+spare]...)
			if w.drains != 1 || len(w.dog.Fatal.Funcs) != 3 || len(w.dog.Fatal.IDs) != 3 {
				t.Errorf("stopped %d times by %v", w.drains, w.dog.Fatal)
			}
			w.looks("that is reported once", 30*time.Second, 3)
			for _, c := range tasks[:3] {
				w.end(c, endDone)
			}
			if n := w.Claimable(); n != 0 || w.N != spare {
				t.Errorf("room for %d, and %d executors, expected those that were spare", n, w.N)
			}
		})
	}
}

func TestLongHandlersWithoutLimitAreReported(t *testing.T) {
	inWatched(t, 1, 1, func(w *watched) {
		tasks := w.limited(2, 0)
		w.Add(tasks)
		w.begun("the first", tasks[0])
		w.pass(exec.LongRun - 10*time.Second)
		w.looks("it runs for long", 10*time.Second, 0)
		w.pass(10 * time.Second)
		w.looks("it runs for very long", 30*time.Second, 1)
		w.begun("nothing takes its place")
		if text := w.log.String(); !strings.Contains(text, "give it a Timeout") || !strings.Contains(text, "Execute") ||
			w.events[0] != "true long 30m0s" {
			t.Errorf("events %v\n%s", w.events, text)
		}
		w.beaten(w.lane)
		w.end(tasks[0], endDone)
		w.begun("it goes on as ever", tasks[1])
		w.looks("it is forgotten", 30*time.Second, 1)
		if len(w.dog.Reported) != 0 {
			t.Errorf("%d are remembered", len(w.dog.Reported))
		}
	})
}

// Many stuck handlers at once do not fill the log.
func TestManyStuckHandlers(t *testing.T) {
	inWatched(t, exec.MaxReports+5, exec.MaxReports+5, func(w *watched) {
		tasks := w.limited(exec.MaxReports+5, time.Second)
		w.Add(tasks)
		w.begun("all", tasks...)
		w.pass(time.Minute)
		w.looks("all are stuck", 30*time.Second, exec.MaxReports)
		if !strings.Contains(w.log.String(), "handlers=5") || w.drains != 0 {
			t.Error(w.log.String())
		}
	})
}
