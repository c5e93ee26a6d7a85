package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// heard collects events.
type heard struct {
	mu     sync.Mutex
	events []delayed.Event
}

func (h *heard) listen(e delayed.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// of returns the events of some kinds, all if none is given.
func (h *heard) of(kinds ...event.Kind) []delayed.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.events),
		func(e delayed.Event) bool { return len(kinds) > 0 && !slices.Contains(kinds, e.Kind) })
}

func (h *heard) names(kinds ...event.Kind) []string {
	var names []string
	for _, e := range h.of(kinds...) {
		names = append(names, e.Kind.String())
	}
	return names
}

// listened makes a worker whose events are collected.
func (b *bench) listened(cfg delayed.WorkerConfig, fns ...any) (*delayed.Worker, *heard) {
	b.T.Helper()
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		b.T.Fatal(err)
	}
	if len(fns) > 0 {
		if err := w.Register(fns...); err != nil {
			b.T.Fatal(err)
		}
	}
	h := &heard{}
	if err := w.OnEvent(h.listen); err != nil {
		b.T.Fatal(err)
	}
	return w, h
}

func TestEventsOfAWorker(t *testing.T) {
	b := newBench(t)
	w, h := b.listened(b.config())
	s := b.start(w)
	w.Pause()
	w.Resume()
	w.Quiet()
	s.mustStop()
	got := h.names(event.WorkerStarted, event.WorkerPaused, event.WorkerResumed, event.WorkerQuiet,
		event.WorkerStopping,
		event.WorkerStopped)
	want := []string{
		"worker started", "worker paused", "worker resumed", "worker quiet", "worker stopping",
		"worker stopped",
	}
	if !slices.Equal(got, want) {
		t.Errorf("expected %q, found %q", want, got)
	}
	for _, e := range h.of() {
		if e.At.IsZero() {
			t.Errorf("%s without a time", e.Kind)
		}
	}
	for _, e := range h.of(event.WorkerStopping, event.WorkerStopped) {
		if e.Reason != "context" || e.Err != nil {
			t.Errorf("%s: expected reason %q and no error, found %q and %v", e.Kind, "context", e.Reason, e.Err)
		}
	}
	if reason := w.Status().StopReason; reason != "context" {
		t.Errorf("status: expected reason %q, found %q", "context", reason)
	}
}

// TestListenersCannotHarmTheWorker has one panic, one end its goroutine and one hang.
func TestListenersCannotHarmTheWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, h := b.listened(b.config())
	hang := make(chan struct{})
	defer close(hang)
	for _, harm := range []func(delayed.Event){
		func(e delayed.Event) {
			if e.Kind == event.WorkerStarted {
				panic("no")
			}
		},
		func(e delayed.Event) {
			if e.Kind == event.WorkerPaused {
				runtime.Goexit()
			}
		},
		func(e delayed.Event) {
			if e.Kind == event.WorkerStopped {
				<-hang
			}
		},
	} {
		if err := w.OnEvent(harm); err != nil {
			t.Fatal(err)
		}
	}
	s := b.start(w)
	w.Pause()
	w.Resume()
	s.mustStop()
	want := []string{"worker started", "worker paused", "worker resumed", "worker stopping", "worker stopped"}
	if got := h.names(event.WorkerStarted, event.WorkerPaused, event.WorkerResumed, event.WorkerStopping,
		event.WorkerStopped); !slices.Equal(got, want) {
		t.Errorf("expected %q, found %q", want, got)
	}
	for _, text := range []string{"a listener panicked", "a listener for events has not returned"} {
		if !strings.Contains(b.log.String(), text) {
			t.Errorf("the log lacks %q:\n%s", text, b.log)
		}
	}
}

// TestEventsOfTasks has one task for each way in which a run can end.
func TestEventsOfTasks(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		fn    func(ctx context.Context) error
		opts  []delayed.Option
		tune  func(*delayed.WorkerConfig)
		want  string
		check func(last delayed.Event) bool
	}{
		"done": {fn: func(context.Context) error { return nil }, want: "started done"},
		"retried": {
			fn: func(context.Context) error { return delayed.RetryIn(time.Hour, no) }, want: "started failed retried",
			check: func(e delayed.Event) bool { return e.Wait == time.Hour && errors.Is(e.Err, no) },
		},
		"archived": {
			fn: func(context.Context) error { return no }, opts: []delayed.Option{delayed.MaxRetry(0)},
			want:  "started failed archived",
			check: func(e delayed.Event) bool { return e.Reason == "failed" && errors.Is(e.Err, no) },
		},
		"a nil pointer as an error": {
			fn: func(context.Context) error { var e *nilError; return e }, opts: []delayed.Option{delayed.MaxRetry(0)},
			want: "started failed archived",
		},
		"discarded": {fn: func(context.Context) error { return delayed.Archive(no) }, want: "started failed archived"},
		"panicked": {
			fn: func(context.Context) error { panic(no) }, opts: []delayed.Option{delayed.MaxRetry(0)},
			want:  "started panicked failed archived",
			check: func(e delayed.Event) bool { return errors.Is(e.Err, no) },
		},
		"ended its goroutine": {
			fn:   func(context.Context) error { runtime.Goexit(); return nil },
			opts: []delayed.Option{delayed.MaxRetry(0)}, want: "started panicked failed archived",
		},
		"timed out": {
			fn:    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			opts:  []delayed.Option{delayed.Timeout(time.Millisecond), delayed.MaxRetry(0)},
			want:  "started timed out failed archived",
			check: func(e delayed.Event) bool { return errors.Is(e.Err, delayed.ErrTimeout) },
		},
		"dropped": {
			fn: func(context.Context) error { return delayed.Drop(no) }, want: "started dropped",
			check: func(e delayed.Event) bool { return errors.Is(e.Err, no) },
		},
		"dropped, with a result": {
			fn:   func(context.Context) error { return delayed.Drop(no) },
			opts: []delayed.Option{delayed.KeepResult(time.Hour)}, want: "started dropped",
		},
		"done, with a result": {
			fn: func(context.Context) error { return nil }, opts: []delayed.Option{delayed.KeepResult(time.Hour)},
			want: "started done",
		},
		"snoozed": {
			fn: func(context.Context) error { return delayed.Snooze(time.Hour) }, want: "started snoozed",
			check: func(e delayed.Event) bool { return e.Wait == time.Hour && e.Err == nil },
		},
		"no failure": {
			fn: func(context.Context) error { return no }, tune: func(cfg *delayed.WorkerConfig) {
				cfg.IsFailure, cfg.Backoff = func(error) bool { return false },
					func(int) time.Duration { return time.Hour }
			}, want: "started retried", check: func(e delayed.Event) bool { return e.Wait == time.Hour },
		},
		"expired": {
			fn:    func(context.Context) error { return nil },
			opts:  []delayed.Option{delayed.Deadline(time.Now().Add(-time.Hour))},
			want:  "expired archived",
			check: func(e delayed.Event) bool { return e.Reason == "expired" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			f := b.fn("f", c.fn)
			cfg := b.config()
			if c.tune != nil {
				c.tune(&cfg)
			}
			w, h := b.listened(cfg, f)
			s := b.start(w)
			ref := b.delayWith(b.q.With(c.opts...), f)
			kinds := strings.Fields(c.want)
			b.Until("it is over", func() bool { return slices.Contains(h.names(), "task "+kinds[len(kinds)-1]) })
			b.Idle()
			s.mustStop()
			var got []string
			var last delayed.Event
			for _, e := range h.of() {
				if e.Task == nil {
					continue
				}
				if e.Task.ID() != ref.ID() || e.Queue != b.Name || e.Task.Queue() != b.Name || e.Task.Attempt() != 1 {
					t.Errorf("%s of queue %q, task %q of %q, attempt %d", e.Kind, e.Queue, e.Task.ID(), e.Task.Queue(),
						e.Task.Attempt())
				}
				got, last = append(got, strings.TrimPrefix(e.Kind.String(), "task ")), e
			}
			if strings.Join(got, " ") != c.want || c.check != nil && !c.check(last) {
				t.Errorf("expected %s, found %q; the last is %+v", c.want, got, last)
			}
			if ran := strings.HasPrefix(c.want, "started"); ran != (last.Duration > 0) {
				t.Errorf("%s after %v", last.Kind, last.Duration)
			}
		})
	}
}

func TestEventsOfTasksThatDoNotRun(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.PythonQueue = b.Name + "-py"
	w, h := b.listened(cfg)
	s := b.start(w)
	ref := b.delay(b.fn("unknown", func() {}))
	b.Do("RPUSH", b.Name, "rubbish")
	if _, err := b.q.Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil)); err != nil {
		t.Fatal(err)
	}
	b.Until("all are seen to", func() bool { return b.Size("_parked")+b.Size("_archived")+b.Size("-py") == 3 })
	s.mustStop()
	parked, archived, forwarded := h.of(event.TaskParked), h.of(event.TaskArchived), h.of(event.TaskForwarded)
	if len(parked) != 1 || parked[0].Task.ID() != ref.ID() || parked[0].Reason != "unknown function" ||
		parked[0].Task.MaxRetry() != 0 {
		t.Errorf("parked: %+v", parked)
	}
	if len(archived) != 1 || archived[0].Task != nil || archived[0].Reason != "undecodable" || archived[0].Err == nil ||
		archived[0].Queue != b.Name {
		t.Errorf("archived: %+v", archived)
	}
	if len(forwarded) != 1 || forwarded[0].Task.Path() != "m:f" {
		t.Errorf("forwarded: %+v", forwarded)
	}
}

// TestEventsTellHowLongATaskHasWaited also checks that arguments that do not fit count as a failure.
func TestEventsTellHowLongATaskHasWaited(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	m := wire.Message{Kind: wire.GoExtended, Path: b.Name + ".f", Payload: []byte{0xa1, 'x'}}
	m.Meta.ID, m.Meta.EnqueuedAt = "a", time.Now().Add(-time.Hour).UnixMilli()
	b.Do("RPUSH", b.Name, m.Append(nil))
	w, h := b.listened(b.config(), f)
	s := b.start(w)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	s.mustStop()
	if started := h.of(event.TaskStarted); len(started) != 1 || started[0].Wait < time.Hour-time.Minute ||
		started[0].Wait > time.Hour+time.Minute {
		t.Errorf("started: %+v", started)
	}
	var misfit *delayed.ArgumentError
	if failed := h.of(event.TaskFailed); len(failed) != 1 || !errors.As(failed[0].Err, &misfit) {
		t.Errorf("failed: %+v", failed)
	}
	if archived := h.of(event.TaskArchived); len(archived) != 1 || archived[0].Reason != "arguments" {
		t.Errorf("archived: %+v", archived)
	}
}

func TestEventOfATaskThatGoesBackWhenTheWorkerStops(t *testing.T) {
	b := newBench(t)
	running := make(chan struct{}, 1)
	f := b.fn("f", func(ctx context.Context) error { running <- struct{}{}; <-ctx.Done(); return ctx.Err() })
	cfg := b.config()
	cfg.Grace = -1
	w, h := b.listened(cfg, f)
	s := b.start(w)
	b.delay(f)
	await(b, "the task", running)
	s.mustStop()
	if events := h.of(event.TaskReleased, event.TaskFailed); len(events) != 1 || events[0].Kind != event.TaskReleased ||
		!errors.Is(events[0].Err, context.Canceled) {
		t.Errorf("found %+v", events)
	}
}

// TestEventsOfAHeartbeatThatIsLost deletes the heartbeat and the claim of the running task, as a sweeper would.
func TestEventsOfAHeartbeatThatIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	running := make(chan struct{}, 1)
	f := b.fn("f", func(ctx context.Context) { running <- struct{}{}; <-ctx.Done() })
	cfg := b.config()
	w, h := b.listened(cfg, f)
	s := b.start(w)
	ref := b.delay(f)
	await(b, "the task", running)
	b.Do("DEL", b.Name+"_processing:"+w.ID(), b.Name+"_worker:"+w.ID())
	b.Until("it is noticed", func() bool { return len(h.of(event.TaskLost)) > 0 })
	s.mustStop()
	if got := h.names(event.HeartbeatLost, event.HeartbeatRegained); !slices.Equal(got,
		[]string{"heartbeat lost", "heartbeat regained"}) {
		t.Errorf("found %q", got)
	}
	if lost := h.of(event.TaskLost); len(lost) != 1 || lost[0].Task.ID() != ref.ID() {
		t.Errorf("lost: %+v", lost)
	}
	if over := h.of(event.TaskDone, event.TaskFailed); len(over) > 0 {
		t.Errorf("the outcome of a lost task is told: %+v", over)
	}
}

// TestEachKindOfEventIsMade searches the source for all kinds: a kind that no code emits must not be documented.
func TestEachKindOfEventIsMade(t *testing.T) {
	files := []string{"internal/lifecycle/lifecycle.go"}
	for _, pattern := range []string{"internal/engine/*.go", "internal/engine/*/*.go"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	var source strings.Builder
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	text, err := os.ReadFile("event/kind.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`(?m)^\t((?:Task|Worker|Heartbeat|Queue)\w+) .*//`).
		FindAllStringSubmatch(string(text), -1)
	for _, m := range kinds {
		if !strings.Contains(source.String(), "event."+m[1]) {
			t.Errorf("nobody emits event.%s", m[1])
		}
	}
	if len(kinds) < 20 {
		t.Errorf("found only %d kinds", len(kinds))
	}
}

// TestEventOfATaskThatTookItsWorkerDown: the worker whose sweeper archives the task emits the event.
func TestEventOfATaskThatTookItsWorkerDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() {})
	message, ref, _, err := delayed.Message(b.q, delayed.Call(f), 1)
	b.Must(err)
	msg, err := parseForTest(string(message))
	b.Must(err)
	msg.Meta.Deaths, msg.Meta.DiedAt = lifecycle.MaxDeaths-1, time.Now().UnixMilli()
	msg.Meta.Extra = &wire.Extra{AloneDeaths: lifecycle.MaxDeaths - 1}
	redistest.Seed(t, b.Conn, b.Name, redistest.State{
		"_workers": redistest.Set{"dead"}, "_processing:dead": redistest.Hash{"1-1": string(msg.Append(nil))},
		"_claims:dead": redistest.Hash{"1": "1", "alone": "1-1"},
	})
	cfg := b.config()
	cfg.HeartbeatLife = shortestLife
	w, h := b.listened(cfg, f)
	s := b.start(w)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	s.mustStop()
	archived := h.of(event.TaskArchived)
	if len(archived) != 1 || archived[0].Reason != "deaths" || archived[0].Task.ID() != ref.ID() ||
		archived[0].Task.Deaths() != lifecycle.MaxDeaths || archived[0].Task.MaxRetry() != 0 ||
		archived[0].Queue != b.Name || archived[0].Task.Queue() != b.Name ||
		!strings.HasPrefix(archived[0].Task.String(), "task "+b.Name+".f "+ref.ID()) {
		t.Errorf("found %+v", archived)
	}
}

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
	b.Must(w.OnEvent(func(e delayed.Event) { first <- e.Kind }))
	b.Must(w.OnEvent(func(delayed.Event) { runtime.Goexit() }))
	b.Must(w.OnEvent(func(e delayed.Event) { last <- e.Kind }))
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

var lineCount = regexp.MustCompile(` count=(\d+)`)

// linesAbout returns how many lines of a log contain a message, and how many tasks these lines stand for.
func linesAbout(log, message string) (lines, tasks int) {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, message) {
			continue
		}
		n := 1
		if m := lineCount.FindStringSubmatch(line); m != nil {
			n, _ = strconv.Atoi(m[1])
		}
		lines, tasks = lines+1, tasks+n
	}
	return lines, tasks
}

// TestFloodOfBadMessages: the worker logs thousands of bad messages with one line a second, and counts all of them.
func TestFloodOfBadMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 2000
	w := b.work(b.config(), b.fn("f", func() {}))
	unknown := b.fn("unknown", func() {})
	began := time.Now()
	for i := range n {
		b.Do("RPUSH", b.Name, fmt.Sprint("rubbish ", i))
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	calls := make([]*delayed.Task, 500)
	for i := range calls {
		calls[i] = delayed.Call(unknown)
	}
	if _, err := b.q.DelayMany(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	b.Until("all are seen to", func() bool { return b.Size("_archived") == n && b.Size("_parked") == len(calls) })
	w.mustStop()
	most := int(time.Since(began)/loop.LineInterval) + 2
	for message, want := range map[string]int{
		"it cannot be decoded":                   n,
		"task parked: this worker cannot run it": len(calls),
	} {
		if lines, tasks := linesAbout(b.log.String(), message); lines > most || tasks != want {
			t.Errorf("%q: %d lines about %d tasks, expected at most %d about %d", message, lines, tasks, most, want)
		}
	}
}

// TestFloodOfBadGroups: the worker logs groups whose lists have the wrong type with one line a second, however many
// there are.
func TestFloodOfBadGroups(t *testing.T) {
	b := newBench(t)
	const n = 300
	for i := range n {
		b.Do("HSET", fmt.Sprint(b.Name, "_group:", i), "a", "hash")
		b.Do("ZADD", b.Name+"_groups", 1, i)
	}
	index, calls := b.indexed("index")
	b.delayWith(b.q.With(delayed.Group("k"), soon), index, "a", 1)
	began := time.Now()
	w := b.work(b.config(), index)
	await(b, "the call of the good group", calls)
	b.Until("all were tried", func() bool { return b.Do("ZCOUNT", b.Name+"_groups", "-inf", 1) == int64(0) })
	w.mustStop()
	most := int(time.Since(began)/loop.LineInterval) + 2
	if lines, groups := linesAbout(b.log.String(), "cannot be put together"); lines > most || groups < n {
		t.Errorf("%d lines about %d groups, expected at most %d about %d", lines, groups, most, n)
	}
	for i := range n {
		b.Do("UNLINK", fmt.Sprint(b.Name, "_group:", i))
	}
	b.Do("UNLINK", b.Name+"_groups")
}

// TestLogOfManyLegacyWorkers: the worker logs the tasks of dead legacy workers with one line a second, and only the
// beginning of an extremely long id.
func TestLogOfManyLegacyWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 200
	for i := range n {
		worker := fmt.Sprint("legacy-", i, strings.Repeat("é", 100_000*(i%2)))
		b.Do("HSET", b.Name+"_processing", worker, fmt.Sprint("rubbish ", i))
	}
	cfg := b.config()
	cfg.HeartbeatLife = time.Second
	began := time.Now()
	w := b.work(cfg, b.fn("f", func() {}))
	b.Until("all are given back and archived", func() bool { return b.Size("_archived") == n })
	w.mustStop()
	most := int(time.Since(began)/loop.LineInterval) + 2
	if lines, tasks := linesAbout(b.log.String(), "gave back the task of a dead legacy worker"); lines > most ||
		tasks != n {
		t.Errorf("%d lines about %d tasks, expected at most %d about %d", lines, tasks, most, n)
	}
	for line := range strings.Lines(b.log.String()) {
		if len(line) > 2*loop.MaxLogField {
			t.Errorf("a line of %d bytes begins with %.200q", len(line), line)
		}
	}
}

// refusing returns a source on which calls of a script fail until times is negative: either Redis refuses them, as it
// does while it loads its data, or Redis executes them and the answers are lost.
func refusing(src delayed.Source, script *redisstore.Script, lost bool, times *atomic.Int32) delayed.Source {
	return redistest.Intercept(src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		if cmd != "EVALSHA" || args[0] != script.Sha || times.Add(-1) < 0 {
			return send()
		}
		if !lost {
			return nil, redis.Error("LOADING Redis is loading the dataset in memory")
		}
		if reply, err := send(); err != nil { // Redis does not know the script yet
			times.Add(1)
			return reply, err
		}
		return nil, errors.New("connection reset by peer")
	})
}

// TestEndingsAreToldAfterRefusals: Redis refuses the same call once, or several times in a row. In the end each task
// has ended once, the tasks after it have run, the worker holds no claims, and the log has two lines: one that the call
// fails, and one that it works again.
func TestEndingsAreToldAfterRefusals(t *testing.T) {
	t.Parallel()
	const tasks = 3
	for name, c := range map[string]struct {
		script *redisstore.Script
		opts   []delayed.Option
		err    error
		want   map[string]int // counters
	}{
		"ack": {redisstore.Scripts["ack"], nil, nil, map[string]int{"processed": 2 * tasks}},
		"complete": {
			redisstore.Scripts["complete"],
			[]delayed.Option{delayed.KeepResult(time.Hour)},
			nil,
			map[string]int{"processed": 2 * tasks},
		},
		"retry": {
			redisstore.Scripts["shelve"], nil, errors.New("no"),
			map[string]int{"processed": 2 * tasks, "failed": 2 * tasks, "retried": 2 * tasks},
		},
		"archive": {
			redisstore.Scripts["shelve"],
			[]delayed.Option{delayed.MaxRetry(0)},
			errors.New("no"),
			map[string]int{"processed": 2 * tasks, "failed": 2 * tasks, "archived": 2 * tasks},
		},
		"snooze": {redisstore.Scripts["shelve"], nil, delayed.Snooze(time.Hour), map[string]int{"snoozed": 2 * tasks}},
	} {
		for how, lost := range map[string]bool{"refused": false, "unanswered": true} {
			for _, times := range []int{1, 2, 4} {
				t.Run(name+" "+how+" "+strings.Repeat("I", times), func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					var left atomic.Int32
					left.Store(int32(times))
					rdb := delayed.FromSource(refusing(b.src, c.script, lost, &left))
					defer rdb.Close()
					var mu sync.Mutex
					ran := map[int]int{}
					f := b.fn("f", func(n int) error {
						mu.Lock()
						defer mu.Unlock()
						ran[n]++
						return c.err
					})
					cfg := b.config()
					cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife = 2, 1, time.Minute
					cfg.Backoff = func(int) time.Duration { return time.Hour }
					w := b.workWith(rdb, cfg, f)
					q := b.q.With(c.opts...)
					for n := range tasks {
						b.delayWith(q, f, n)
					}
					b.Until("the first have ended",
						func() bool { return left.Load() < 0 || name == "ack" && b.Size("") == 0 })
					for n := range tasks {
						b.delayWith(q, f, tasks+n)
					}
					b.Idle()
					w.mustStop()
					for n := range 2 * tasks {
						if ran[n] != 1 {
							t.Errorf("task %d ran %d times", n, ran[n])
						}
					}
					got := b.counters()
					for counter, n := range c.want {
						if got[counter] != n {
							t.Errorf("%d %s, expected %d, in %v", got[counter], counter, n, got)
						}
					}
					if got["lost"] != 0 {
						t.Errorf("%d claims are counted as lost", got["lost"])
					}
					filed := b.Size("_retry") + b.Size("_archived") + b.Size("_scheduled") + b.Size("_completed")
					if want := 2 * tasks; name != "ack" && filed != want {
						t.Errorf("%d tasks are filed, expected %d", filed, want)
					}
					failed := strings.Count(b.log.String(), "cannot report ended tasks to Redis")
					over := strings.Count(b.log.String(), "reporting ended tasks again")
					if name != "ack" && (failed != 1 || over != 1) {
						t.Errorf("the log tells %d times that it fails and %d times that it is over:\n%s", failed, over,
							b.log)
					}
				})
			}
		}
	}
}

// TestCountersFollowRedis: counters belong to the day by Redis's clock, whatever the clocks of producers show.
func TestCountersFollowRedis(t *testing.T) {
	b := newBench(t)
	const ahead = 72 * time.Hour
	script := redisstore.Scripts["look"]
	rdb := delayed.FromSource(redistest.Intercept(b.src,
		func(_ string, args []any, send func() (any, error)) (any, error) {
			reply, err := send()
			if err == nil && len(args) > 0 && (args[0] == script.Sha || args[0] == script.Source) {
				values, _ := redis.Values(reply, nil)
				now, _ := redis.Int64(values[0], nil)
				values[0] = now + ahead.Milliseconds()
			}
			return reply, err
		}))
	ref := b.delayWith(delayed.NewQueue(b.Name, rdb).With(delayed.In(time.Hour)), b.fn("f", func() {}))
	if err := ref.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	days, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"_stats:*"))
	b.Must(err)
	today := "_stats:" + time.UnixMilli(redistest.Time(t, b.Conn)).Add(ahead).UTC().Format("20060102")
	if len(days) != 1 || days[0] != b.Name+today || b.Int("HGET", b.Name+today, "canceled") != 1 {
		t.Errorf("counters on %v, expected one cancellation on %s", days, today)
	}
}

// BenchmarkDrain drains a full queue: of messages without id, so small that Redis would store a short processing hash
// as one block of memory, and of ordinary tasks. server-us is the time that the server's thread spends in scripts for
// each task.
func BenchmarkDrain(b *testing.B) {
	for _, legacy := range []bool{true, false} {
		for _, concurrency := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("legacy=%v/concurrency=%d", legacy, concurrency), func(b *testing.B) {
				env := newBench(b)
				q, err := delayed.OpenQueue(env.Name, sharing(env.rdb, legacy), delayed.QueueConfig{})
				if err != nil {
					b.Fatal(err)
				}
				var ran atomic.Int64
				f := env.fn("f", func(int64, string) { ran.Add(1) })
				tasks := make([]*delayed.Task, b.N)
				for i := range tasks {
					tasks[i] = delayed.Call(f, 1_700_000_000_000+int64(i), "hello-task")
				}
				if _, err := q.DelayMany(b.Context(), tasks...); err != nil {
					b.Fatal(err)
				}
				cfg := env.config()
				cfg.Concurrency, cfg.HeartbeatLife = concurrency, time.Hour
				before := scriptTime(b, env)
				b.ResetTimer()
				w := env.work(cfg, f)
				env.Until("all have run", func() bool { return ran.Load() == int64(b.N) })
				env.Idle()
				b.StopTimer()
				b.ReportMetric(float64(scriptTime(b, env)-before)/float64(b.N), "server-us/task")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
				w.mustStop()
			})
		}
	}
}

// scriptTime returns the microseconds that the server has spent in scripts.
func scriptTime(b *testing.B, env *bench) int {
	b.Helper()
	info, err := redis.String(env.Conn.Do("INFO", "commandstats"))
	if err != nil {
		b.Fatal(err)
	}
	sum := 0
	for line := range strings.Lines(info) {
		if strings.HasPrefix(line, "cmdstat_eval") {
			_, rest, _ := strings.Cut(line, "usec=")
			text, _, _ := strings.Cut(rest, ",")
			n, err := strconv.Atoi(text)
			if err != nil {
				b.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}
