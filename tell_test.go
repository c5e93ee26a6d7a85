package delayed_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

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
		"discarded": {fn: func(context.Context) error { return delayed.Discard(no) }, want: "started failed archived"},
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
	more, err := filepath.Glob("internal/engine/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, more...)
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
