package delayedotel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/godelayed/delayed"
	delayedotel "github.com/godelayed/delayed/contrib/otel"
	"github.com/godelayed/delayed/internal/redistest"
)

// childVar makes the test binary a worker: its value is the URL of Redis and the name of the queue, in JSON.
const childVar = "DELAYEDOTEL_TEST_CHILD"

// childSpan is what the child tells of a span.
type childSpan struct {
	Name, Trace, Span, Parent, State string
	Links                            []string
}

var billed = delayed.Func(func(ctx context.Context, order int) {}, delayed.Name("bill"))

// runChild runs one task, which enqueues another one, and prints its spans.
func runChild() {
	var where [2]string
	if err := json.Unmarshal([]byte(os.Getenv(childVar)), &where); err != nil {
		panic(err)
	}
	spans := tracetest.NewInMemoryExporter()
	tel, err := delayedotel.New(delayedotel.Config{TracerProvider: trace.NewTracerProvider(trace.WithSyncer(spans))})
	if err != nil {
		panic(err)
	}
	rdb, err := delayed.Dial(where[0])
	if err != nil {
		panic(err)
	}
	q, err := delayed.OpenQueue(where[1], rdb, tel.Queue(where[1], delayed.QueueConfig{}))
	if err != nil {
		panic(err)
	}
	ship := delayed.Func(func(ctx context.Context, order int) error {
		_, err := q.DelayContext(ctx, billed, order)
		return err
	}, delayed.Name("ship"))
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{where[1]},
		Limits: delayed.WorkerLimits{StopWhenEmpty: true}, HeartbeatLife: 10 * time.Second,
		Logger: new(redistest.Log).Logger(),
	})
	if err != nil {
		panic(err)
	}
	if err := tel.Worker(w); err != nil {
		panic(err)
	}
	if err := w.Register(ship, billed); err != nil {
		panic(err)
	}
	if err := w.Run(context.Background()); err != nil {
		panic(err)
	}
	for _, s := range spans.GetSpans() {
		told := childSpan{
			Name: s.Name, Trace: s.SpanContext.TraceID().String(), Span: s.SpanContext.SpanID().String(),
			Parent: s.Parent.SpanID().String(), State: s.SpanContext.TraceState().String(),
		}
		for _, l := range s.Links {
			told.Links = append(told.Links, l.SpanContext.SpanID().String())
		}
		if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
			panic(err)
		}
	}
}

// TestAcrossProcesses: a request here, a task in a child process, and a task that this one enqueues, are one trace.
func TestAcrossProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	state, err := oteltrace.ParseTraceState("vendor=1")
	b.Must(err)
	remote := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: oteltrace.TraceID{1}, SpanID: oteltrace.SpanID{2}, TraceFlags: oteltrace.FlagsSampled,
		TraceState: state,
	})
	ctx := oteltrace.ContextWithRemoteSpanContext(t.Context(), remote)
	_, err = b.q.Enqueue(ctx, delayed.NewGoTask("ship", 42))
	b.Must(err)
	where, err := json.Marshal([2]string{redistest.Shared(t).URL(), b.Name})
	b.Must(err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s", childVar, where))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	b.Must(err)
	spans := map[string]childSpan{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var s childSpan
		b.Must(decoder.Decode(&s))
		if s.Trace != remote.TraceID().String() || s.State != "vendor=1" {
			t.Errorf("%+v is of another trace than %v", s, remote.TraceID())
		}
		spans[s.Name+" of "+s.Parent] = s
	}
	from := b.ended("enqueue", 1)[0].SpanContext.SpanID().String()
	for _, name := range []string{"run", "enqueue", "run"} {
		s := spans[name+" "+b.Name+" of "+from]
		if s.Span == "" || name == "run" && !slices.Equal(s.Links, []string{from}) {
			t.Fatalf("expected a span %s with the parent %s, and linked with it, among %+v", name, from, spans)
		}
		from = s.Span
	}
	if len(spans) != 3 {
		t.Errorf("%d spans of the child, expected 3: %+v", len(spans), spans)
	}
}
