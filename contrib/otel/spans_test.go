package delayedotel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/godelayed/delayed"
	delayedotel "github.com/godelayed/delayed/contrib/otel"
	"github.com/godelayed/delayed/internal/redistest"
)

var welcome = delayed.Func(func(int) {}, delayed.Name("mail.Welcome"))

func TestSpans(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	w := b.worker(welcome)
	b.start(w)
	ref, err := b.q.With(delayed.TaskID("order-42")).Delay(welcome, 1)
	b.Must(err)
	enqueue, run := b.ended("enqueue", 1)[0], b.ended("run", 1)[0]
	b.expectFrom(&run, &enqueue, true)
	if enqueue.Name != "enqueue "+b.Name || enqueue.SpanKind != oteltrace.SpanKindProducer {
		t.Errorf("found %s of kind %v", enqueue.Name, enqueue.SpanKind)
	}
	if run.Name != "run "+b.Name || run.SpanKind != oteltrace.SpanKindConsumer || run.Status.Code != codes.Unset {
		t.Errorf("found %s of kind %v, %v", run.Name, run.SpanKind, run.Status)
	}
	b.expectAttrs(&enqueue, map[string]string{
		"messaging.system": "delayed", "messaging.destination.name": b.Name, "messaging.operation.name": "enqueue",
		"messaging.operation.type": "send", "messaging.message.id": ref.ID(), "error.type": "",
		"messaging.delayed.function": "mail.Welcome", "messaging.batch.message_count": "",
	})
	b.expectAttrs(&run, map[string]string{
		"messaging.system": "delayed", "messaging.destination.name": b.Name, "messaging.operation.name": "run",
		"messaging.operation.type": "process", "messaging.message.id": "order-42", "error.type": "",
		"messaging.client.id": w.ID(), "messaging.delayed.function": "mail.Welcome", "messaging.delayed.attempt": "1",
		"messaging.delayed.max_retry": "25", "messaging.delayed.deaths": "", "messaging.delayed.outcome": "done",
	})
	if url := run.InstrumentationScope.SchemaURL; !strings.HasSuffix(url, "/1.43.0") {
		t.Errorf("schema %s", url)
	}
}

// TestNewTraces: runs are linked with their enqueues, but begin traces of their own.
func TestNewTraces(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{NewTraces: true})
	b.work(welcome)
	_, err := b.q.Delay(welcome, 1)
	b.Must(err)
	enqueue, run := b.ended("enqueue", 1)[0], b.ended("run", 1)[0]
	b.expectFrom(&run, &enqueue, false)
	if run.Parent.IsValid() {
		t.Errorf("the run has the parent %v", run.Parent)
	}
}

// TestRunWithinAnotherSpan: middleware that stands before begins a span, which stays the parent.
func TestRunWithinAnotherSpan(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	w, err := delayed.NewWorker(b.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{b.Name}, HeartbeatLife: 10 * time.Second, Logger: new(redistest.Log).Logger(),
	})
	b.Must(err)
	b.Must(w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
			ctx, span := b.trace.Tracer("test").Start(ctx, "outer span")
			defer span.End()
			return next(ctx, t)
		}
	}))
	b.Must(b.tel.Worker(w))
	b.Must(w.Register(welcome))
	b.start(w)
	_, err = b.q.Delay(welcome, 1)
	b.Must(err)
	enqueue, run, outer := b.ended("enqueue", 1)[0], b.ended("run", 1)[0], b.ended("outer", 1)[0]
	b.expectFrom(&run, &enqueue, false)
	if run.Parent.SpanID() != outer.SpanContext.SpanID() {
		t.Errorf("the run has the parent %v, expected %v", run.Parent.SpanID(), outer.SpanContext.SpanID())
	}
}

// TestEachAttemptHasASpan, all of them from one enqueue.
func TestEachAttemptHasASpan(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	flaky := delayed.Func(func(ctx context.Context) error {
		if n := delayed.TaskFromContext(ctx).Attempt(); n < 3 {
			return fmt.Errorf("attempt %d: %w", n, errTeapot)
		}
		return nil
	}, delayed.Name("flaky"))
	b.work(flaky)
	_, err := b.q.Delay(flaky)
	b.Must(err)
	enqueue := b.ended("enqueue", 1)[0]
	for i, run := range b.ended("run", 3) {
		b.expectFrom(&run, &enqueue, true)
		outcome, kind, code, text := "failed", "teapot", codes.Error, fmt.Sprintf("attempt %d: a teapot", i+1)
		if i == 2 {
			outcome, kind, code, text = "done", "", codes.Unset, ""
		}
		b.expectAttrs(&run, map[string]string{
			"messaging.delayed.attempt": fmt.Sprint(i + 1), "messaging.delayed.outcome": outcome, "error.type": kind,
		})
		if run.Status.Code != code || run.Status.Description != text {
			t.Errorf("attempt %d: status %+v", i+1, run.Status)
		}
	}
}

// teapot is an error with a class of its own.
type teapot struct{}

var errTeapot = teapot{}

func (teapot) Error() string     { return "a teapot" }
func (teapot) ErrorType() string { return "teapot" }

// brokenError panics when it is asked for its text or compared.
type brokenError struct{}

func (*brokenError) Error() string   { panic("broken") }
func (*brokenError) Is(error) bool   { panic("broken") }
func (*brokenError) Unwrap() []error { panic("broken") }

// TestOutcomesOfRuns: what the span of a run says about how its handler ended.
func TestOutcomesOfRuns(t *testing.T) {
	t.Parallel()
	harmless := errors.New("harmless")
	const long = time.Hour
	for name, test := range map[string]struct {
		handler             any
		opts                []delayed.Option
		outcome, kind, text string
	}{
		"error":   {func() error { return errors.New("ouch") }, nil, "failed", "*errors.errorString", "ouch"},
		"panic":   {func() { panic("ouch") }, nil, "failed", "panic", "delayed: panic at"},
		"goexit":  {func() { runtime.Goexit() }, nil, "failed", "unwound", "ended"},
		"discard": {func() error { return delayed.Archive(errTeapot) }, nil, "failed", "teapot", "a teapot"},
		"discard plain": {
			func() error { return delayed.Archive(errors.New("x")) }, nil, "failed", "*errors.errorString", "x",
		},
		"drop":   {func() error { return delayed.Drop(errTeapot) }, nil, "dropped", "", ""},
		"snooze": {func() error { return delayed.Snooze(long) }, nil, "snoozed", "", ""},
		"retry in": {
			func() error { return delayed.RetryIn(long, harmless) }, nil, "failed", "*errors.errorString", "",
		},
		"no failure":   {func() error { return harmless }, nil, "retried", "", ""},
		"broken error": {func() error { return new(brokenError) }, nil, "failed", "_OTHER", ""},
		"hostile text": {
			func() error { return errors.New("\xff\x1b[31m" + strings.Repeat("é", 1000)) }, nil, "failed",
			"*errors.errorString", "\uFFFD\x1b[31mé",
		},
		"timeout": {
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			[]delayed.Option{delayed.Timeout(time.Millisecond)},
			"failed", "timeout", "context",
		},
		"arguments": {func(n int) {}, nil, "failed", "arguments", "argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, delayedotel.Config{IsFailure: func(err error) bool { return !errors.Is(err, harmless) }})
			b.work(delayed.Func(test.handler, delayed.Name("f")))
			_, err := b.q.With(append(test.opts, delayed.MaxRetry(0))...).Enqueue(t.Context(), delayed.NewGoTask("f"))
			b.Must(err)
			run := b.ended("run", 1)[0]
			b.expectAttrs(&run, map[string]string{"messaging.delayed.outcome": test.outcome, "error.type": test.kind})
			if (run.Status.Code == codes.Error) != (test.kind != "") ||
				!strings.Contains(run.Status.Description, test.text) || len(run.Status.Description) > 1024 {
				t.Errorf("status %v %q", run.Status.Code, run.Status.Description)
			}
		})
	}
}

// TestCanceledRun: a run that was canceled is no error.
func TestCanceledRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	started := make(chan struct{})
	waits := delayed.Func(func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}, delayed.Name("waits"))
	b.work(waits)
	ref, err := b.q.Delay(waits)
	b.Must(err)
	redistest.Await(b.Bench, "the handler", started)
	b.Must(ref.Cancel(t.Context()))
	run := b.ended("run", 1)[0]
	b.expectAttrs(&run, map[string]string{"messaging.delayed.outcome": "canceled", "error.type": ""})
}

// TestTasksWithoutTrace: runs of tasks of Python programs, of programs without this package, and of those whose headers
// are nonsense, begin traces.
func TestTasksWithoutTrace(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	plain := delayed.NewQueue(b.Name, b.rdb)
	_, err := plain.Delay(welcome, 1)
	b.Must(err)
	nonsense := []delayed.Option{delayed.Header("traceparent", "00-nonsense"), delayed.Header("tracestate", "\x1b")}
	_, err = plain.With(nonsense...).Delay(welcome, 2)
	b.Must(err)
	// ["mail.Welcome", [3]], as keakon's Python package enqueues it.
	b.Do("RPUSH", b.Name, "\x92\xacmail.Welcome\xc4\x02\x91\x03")
	b.Do("RPUSH", b.Name+"_noti", "1")
	b.work(welcome)
	traces := map[oteltrace.TraceID]bool{}
	for _, run := range b.ended("run", 3) {
		if run.Parent.IsValid() || len(run.Links) > 0 {
			t.Errorf("parent %v, links %v", run.Parent, run.Links)
		}
		traces[run.SpanContext.TraceID()] = true
	}
	if len(traces) != 3 {
		t.Errorf("%d traces, expected 3", len(traces))
	}
}

// TestDelayMany: one span for all, from which each run comes.
func TestDelayMany(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	other := delayed.Func(func() {}, delayed.Name("other"))
	b.work(welcome, other)
	_, err := b.q.DelayMany(t.Context(), delayed.Call(welcome, 1), delayed.Call(welcome, 2), delayed.Call(other))
	b.Must(err)
	enqueue := b.ended("enqueue", 1)[0]
	b.expectAttrs(&enqueue, map[string]string{
		"messaging.batch.message_count": "3", "messaging.message.id": "", "messaging.delayed.function": "",
	})
	for _, run := range b.ended("run", 3) {
		b.expectFrom(&run, &enqueue, true)
	}
}

// TestGroups: the run of a combined call comes from the last call.
func TestGroups(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	index := delayed.Func(func(ids ...int) {}, delayed.Name("index"))
	q := b.q.With(delayed.Group("g"), delayed.Gather(delayed.GatherPolicy{Grace: time.Hour, MaxSize: 2}))
	for i := range 2 {
		_, err := q.Delay(index, i)
		b.Must(err)
	}
	b.work(index)
	run := b.ended("run", 1)[0]
	b.expectFrom(&run, &b.ended("enqueue", 2)[1], true)
}

// TestErrorsOfEnqueues: they are in the span, with their class.
func TestErrorsOfEnqueues(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	q := b.q.With(delayed.TaskID("x"))
	_, err := q.Delay(welcome, 1)
	b.Must(err)
	if _, err := q.Delay(welcome, 1); !errors.Is(err, delayed.ErrDuplicate) {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.q.DelayContext(canceled, welcome, 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i, kind := range []string{"", "duplicate", "canceled"} {
		span := b.ended("enqueue", 3)[i]
		b.expectAttrs(&span, map[string]string{"error.type": kind})
		if (span.Status.Code == codes.Error) != (kind != "") || (span.Status.Description == "") != (kind == "") {
			t.Errorf("%q: status %v", kind, span.Status)
		}
	}
}

// TestOwnHooksOfAQueue: Around and Inject of the program are called within the span, and its headers take precedence.
func TestOwnHooksOfAQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	var seen []string
	q, err := delayed.OpenQueue(b.Name, b.rdb, b.tel.Queue(b.Name, delayed.QueueConfig{
		Around: func(
			ctx context.Context, tasks []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
		) {
			oteltrace.SpanFromContext(ctx).SetAttributes(attribute.String("test.around", "yes"))
			refs, err := enqueue(ctx)
			seen = append(seen, fmt.Sprint(len(tasks), len(refs), err))
		},
		Inject: func(context.Context) map[string]string {
			return map[string]string{"tenant": "a", "tracestate": "b=1"}
		},
	}))
	b.Must(err)
	headers := make(chan map[string]string, 1)
	shows := delayed.Func(func(ctx context.Context) { headers <- delayed.TaskFromContext(ctx).Headers() },
		delayed.Name("shows"))
	b.work(shows)
	_, err = q.Delay(shows)
	b.Must(err)
	enqueue := b.ended("enqueue", 1)[0]
	b.expectAttrs(&enqueue, map[string]string{"test.around": "yes"})
	if !slices.Equal(seen, []string{"1 1 <nil>"}) {
		t.Errorf("Around saw %q", seen)
	}
	got := redistest.Await(b.Bench, "the headers", headers)
	if got["tenant"] != "a" || got["tracestate"] != "b=1" ||
		!strings.Contains(got["traceparent"], enqueue.SpanContext.TraceID().String()) {
		t.Errorf("headers %q", got)
	}
}

// TestAroundThatDoesNotEnqueue: the span says so, and nothing counts as sent.
func TestAroundThatDoesNotEnqueue(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	q, err := delayed.OpenQueue(b.Name, b.rdb, b.tel.Queue(b.Name, delayed.QueueConfig{
		Around: func(context.Context, []*delayed.Task, func(context.Context) ([]*delayed.Ref, error)) {},
	}))
	b.Must(err)
	if _, err := q.Delay(welcome, 1); err == nil {
		t.Error("expected an error")
	}
	enqueue := b.ended("enqueue", 1)[0]
	b.expectAttrs(&enqueue, map[string]string{"error.type": "not_enqueued"})
	b.expectPoints(map[string]int64{"not_enqueued": 1}, "messaging.client.sent.messages", "error.type")
}

// TestBaggage travels, unless it is so large that a task could not have it.
func TestBaggage(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{
		Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	})
	found := make(chan int, 1)
	shows := delayed.Func(func(ctx context.Context) { found <- len(baggage.FromContext(ctx).Member("k").Value()) },
		delayed.Name("shows"))
	b.work(shows)
	for i, size := range []int{5, 6000} {
		member, err := baggage.NewMember("k", strings.Repeat("v", size))
		b.Must(err)
		bag, err := baggage.New(member)
		b.Must(err)
		_, err = b.q.DelayContext(baggage.ContextWithBaggage(t.Context(), bag), shows)
		b.Must(err)
		if got, want := redistest.Await(b.Bench, "the handler", found), []int{5, 0}[i]; got != want {
			t.Errorf("baggage of %d bytes: expected %d, found %d", size, want, got)
		}
		run := b.ended("run", i+1)[i]
		b.expectFrom(&run, &b.ended("enqueue", i+1)[i], true)
	}
}
