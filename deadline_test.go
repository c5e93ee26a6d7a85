package delayed_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

func TestWorkerConfigRefusesNegativeTimeout(t *testing.T) {
	_, err := delayed.NewWorker(newBench(t).rdb, delayed.WorkerConfig{Queues: delayed.Strict{"q"}, Timeout: -1})
	if err == nil || !strings.Contains(err.Error(),
		"WorkerConfig.Timeout is -1ns: expected a positive duration, or 0 for none") {
		t.Error(err)
	}
}

// The context of a handler ends when the task's time is over, with the right cause and deadline.
func TestTimeoutEndsTheContext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		worker time.Duration
		opts   []delayed.Option
	}{
		{"by the call", time.Hour, []delayed.Option{delayed.Timeout(50 * time.Millisecond)}},
		{"by the worker", 50 * time.Millisecond, nil},
		{"by a deadline", 0, nil},
		{
			"by the earlier one", 0,
			[]delayed.Option{delayed.Deadline(time.Now().Add(time.Hour)), delayed.Timeout(50 * time.Millisecond)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cause, deadline := make(chan error, 1), make(chan time.Time, 1)
			f := b.fn("f", func(ctx context.Context) error {
				end, _ := ctx.Deadline()
				deadline <- end
				child, stop := context.WithCancel(ctx)
				defer stop()
				<-child.Done()
				cause <- context.Cause(child)
				return ctx.Err()
			}, delayed.Backoff(time.Hour))
			cfg := b.config()
			cfg.Timeout = tt.worker
			b.work(cfg, f)
			before := time.Now()
			if tt.name == "by a deadline" {
				tt.opts = []delayed.Option{delayed.Deadline(before.Add(3 * time.Second))}
			}
			ref := b.delayWith(b.q.With(tt.opts...), f)
			if end := await(b, "the handler", deadline); end.Before(before) || end.After(before.Add(patience)) {
				t.Errorf("deadline %v", end)
			}
			if err := await(b, "the end of its context", cause); !errors.Is(err, delayed.ErrTimeout) {
				t.Errorf("cause %v, expected ErrTimeout", err)
			}
			b.Until("it is filed", func() bool { return b.Size("_retry")+b.Size("_archived") == 1 })
			if info := b.infoOf(ref); !strings.Contains(info, "handler took longer than") ||
				!strings.Contains(info, "deadline exceeded") {
				t.Errorf("info %q", info)
			}
			b.Check(redistest.Invariants{})
		})
	}
}

func TestTimedOutHandlers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result error
		opts   []delayed.FuncOption
		end    string
	}{
		{"an error is retried", errJudged, nil, "_retry"},
		{"an error is archived", errJudged, []delayed.FuncOption{delayed.ArchiveOnTimeout()}, "_archived"},
		{"success is success", nil, []delayed.FuncOption{delayed.ArchiveOnTimeout()}, ""},
		{
			"a snooze is a snooze", delayed.Snooze(time.Hour),
			[]delayed.FuncOption{delayed.ArchiveOnTimeout()},
			"_scheduled",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			asked := make(chan error, 2)
			opts := append([]delayed.FuncOption{
				delayed.Timeout(time.Millisecond),
				delayed.BackoffFunc(func(_ int, err error) time.Duration {
					asked <- err
					return time.Hour
				}),
			}, tt.opts...)
			f := b.fn("f", func(ctx context.Context) error { <-ctx.Done(); return tt.result }, opts...)
			// It takes no context, and so takes too long.
			g := b.fn("g", func() error { <-time.After(5 * time.Millisecond); return tt.result }, opts...)
			b.work(b.config(), f, g)
			b.delay(f)
			b.delay(g)
			if tt.end == "" {
				b.Until("they are done",
					func() bool { return b.counters()["processed"] == 2 && len(b.counters()) == 1 })
				return
			}
			b.Until("they are filed", func() bool { return b.Size(tt.end) == 2 })
			if tt.end != "_retry" {
				return
			}
			for range 2 {
				if err := await(b, "a question about an error", asked); !errors.Is(err, delayed.ErrTimeout) ||
					!errors.Is(err, errJudged) {
					t.Errorf("BackoffFunc was asked about %v", err)
				}
			}
		})
	}
}

// A task that is too late to start does not run, and uses up no attempt.
func TestExpiredTasksAreArchived(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []delayed.Option
		text string
	}{
		{"TTL", []delayed.Option{delayed.TTL(time.Millisecond)}, "it did not start in time: its TTL ended at 20"},
		{
			"TTL of a scheduled task",
			[]delayed.Option{delayed.TTL(2 * time.Millisecond), delayed.In(time.Millisecond)},
			"its TTL ended at",
		},
		{
			"deadline",
			[]delayed.Option{delayed.Deadline(time.Unix(1, 0))},
			"it did not start in time: its deadline was at 1970-01-01T00:00:01.000Z",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			ran := make(chan int, 10)
			f := b.fn("f", func(_ context.Context, i int) { ran <- i })
			ref := b.delayWith(b.q.With(tt.opts...), f, 1)
			inTime := b.q.With(delayed.TTL(time.Hour), delayed.Deadline(time.Now().Add(time.Hour)),
				delayed.RetryUntil(time.Unix(1, 0)))
			last := redistest.Time(t, b.Conn)
			b.Until("the time is over that it has to start", func() bool { return redistest.Time(t, b.Conn) > last+10 })
			b.delayWith(inTime, f, 2)
			b.work(b.config(), f)
			b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
			if n := await(b, "the other task", ran); n != 2 || len(ran) > 0 {
				t.Errorf("task %d has run", n)
			}
			if info := b.infoOf(ref); !strings.Contains(info, tt.text) || !strings.Contains(info, "expired") {
				t.Errorf("info %q, expected %q", info, tt.text)
			}
			b.Idle()
			b.Until("all is counted", func() bool {
				c := b.counters()
				return c["expired"] == 1 && c["archived"] == 1 && c["processed"] == 1 && len(c) == 3
			})
			b.Check(redistest.Invariants{})
		})
	}
}

// A retry that no worker could run in time is archived with what is known about the failure.
func TestRetryThatComesTooLate(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() { t.Error("it has run") })
	msg := wire.Message{Kind: wire.GoExtended, Path: b.Name + ".f", Meta: wire.Meta{
		ID: "late", Retried: 2, Extra: &wire.Extra{RetryUntil: 1_600_000_000_000, FirstFailed: 1_500_000_000_000},
	}}
	b.Do("RPUSH", b.Name, msg.Append(nil))
	b.Do("RPUSH", b.Name+"_noti", 1)
	w := b.work(b.config(), f)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	info, err := b.q.Ref("late").Info(t.Context())
	b.Must(err)
	if info.Attempts != 2 || info.Reason != "expired" || info.FirstFailed.UnixMilli() != 1_500_000_000_000 ||
		info.Worker != w.ID() || !strings.Contains(info.Error, "its RetryUntil was at 2020-09-13T12:26:40.000Z") {
		t.Errorf("info %+v, expected two attempts", info)
	}
	if b.counters()["expired"] != 1 {
		t.Errorf("counters %v", b.counters())
	}
}
