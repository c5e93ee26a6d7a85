package delayed_test

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/redistest"
)

// exitingError is an error one of whose methods ends the goroutine.
type exitingError struct{ error }

func (exitingError) Unwrap() error {
	runtime.Goexit()
	return nil
}

// exitingHook is a hook of a logger that ends the goroutine that logs what becomes of a task.
type exitingHook struct{ exited *atomic.Int32 }

func (exitingHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h exitingHook) Fire(e *logrus.Entry) error {
	if e.Data["attempt"] != nil {
		h.exited.Add(1)
		runtime.Goexit()
	}
	return nil
}

// TestCallbacksThatEndTheirGoroutine: as FailNow of package testing does, each function that a program gives to a
// worker calls runtime.Goexit. The task ends as after a panic of that function, and the worker goes on.
func TestCallbacksThatEndTheirGoroutine(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	const exit = "runtime.Goexit"
	for name, c := range map[string]struct {
		cfg  func(cfg *delayed.WorkerConfig, b *bench)
		opts []delayed.FuncOption
		err  error
		says string // by the record of the task
	}{
		"IsFailure": {
			cfg: func(cfg *delayed.WorkerConfig, _ *bench) {
				cfg.IsFailure = func(error) bool { runtime.Goexit(); return true }
			}, err: failed, says: exit,
		},
		"Backoff": {
			cfg: func(cfg *delayed.WorkerConfig, _ *bench) {
				cfg.Backoff = func(int) time.Duration { runtime.Goexit(); return 0 }
			}, err: failed, says: exit,
		},
		"BackoffFunc": {
			opts: []delayed.FuncOption{
				delayed.BackoffFunc(func(int, error) time.Duration { runtime.Goexit(); return 0 }),
			}, err: failed, says: exit,
		},
		"method of the error":        {err: exitingError{failed}, says: exit},
		"method of an error to drop": {err: delayed.Drop(exitingError{failed}), says: ""},
		"method of an error to snooze": {
			err: errors.Join(exitingError{failed}, delayed.Snooze(time.Hour)), says: exit,
		},
		"Logger": {
			cfg: func(cfg *delayed.WorkerConfig, b *bench) {
				l := logrus.New()
				l.SetOutput(b.log)
				l.AddHook(exitingHook{new(atomic.Int32)})
				cfg.Logger = l
			}, err: failed, says: "failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cfg := b.config()
			cfg.Concurrency = 1
			if c.cfg != nil {
				c.cfg(&cfg, b)
			}
			fails := b.fn("fails", func() error { return c.err }, append(c.opts, delayed.MaxRetry(1))...)
			ran := make(chan bool, 1)
			works := b.fn("works", func() { ran <- true })
			w := b.work(cfg, fails, works)
			ref := b.delayWith(b.q.With(delayed.TaskID("t")), fails)
			if c.says != "" {
				b.Until("it is known what became of the task", func() bool {
					info, err := ref.Info(bg)
					return err == nil && strings.Contains(info.Error, c.says)
				})
			}
			b.delay(works)
			await(b, "the next task", ran)
			b.Until("no task is active", func() bool {
				ids, err := redis.Strings(b.Do("SMEMBERS", b.Name+"_workers"), nil)
				b.Must(err)
				for _, id := range ids {
					if b.Size("_processing:"+id) > 0 {
						return false
					}
				}
				return true
			})
			w.mustStop()
			b.Check(redistest.Invariants{})
		})
	}
}

// TestListenerThatEndsItsGoroutine: the other listeners hear the event all the same, and the log says what happened.
func TestListenerThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, err := delayed.NewWorker(b.rdb, b.config())
	b.Must(err)
	first, last := make(chan event.Kind, 100), make(chan event.Kind, 100)
	b.Must(w.Listen(func(e delayed.Event) { first <- e.Kind }))
	b.Must(w.Listen(func(delayed.Event) { runtime.Goexit() }))
	b.Must(w.Listen(func(e delayed.Event) { last <- e.Kind }))
	b.start(w).mustStop()
	for _, want := range []event.Kind{event.WorkerStarted, event.WorkerStopping, event.WorkerStopped} {
		if a, z := await(b, "an event", first), await(b, "an event", last); a != want || z != want {
			t.Errorf("heard %s and %s, expected %s", a, z, want)
		}
	}
	if text := b.log.String(); !strings.Contains(text, "a listener ended its goroutine by runtime.Goexit") {
		t.Errorf("the log says %s", text)
	}
}
