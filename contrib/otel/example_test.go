package delayedotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/godelayed/delayed"
	delayedotel "github.com/godelayed/delayed/contrib/otel"
	"github.com/godelayed/delayed/internal/redistest"
)

// exampleTB lets the example, which has no testing.T, use the tests' server.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// redisURL stands for the address of a Redis server.
func redisURL() string { return redistest.Shared(exampleTB{}).URL() }

// Receipt sends a mail.
func Receipt(ctx context.Context, order int) error { return nil }

// A request enqueues a task; the task's run is a part of the request's trace. Exporters that send spans elsewhere take
// the place of the one in memory.
func Example() {
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	tel, err := delayedotel.New(delayedotel.Config{TracerProvider: provider})
	if err != nil {
		panic(err)
	}
	rdb, err := delayed.Dial(redisURL())
	if err != nil {
		panic(err)
	}
	defer rdb.Close()

	// The producer.
	q, err := delayed.OpenQueue("example-otel", rdb, tel.Queue("example-otel", delayed.QueueConfig{}))
	if err != nil {
		panic(err)
	}
	ctx, request := provider.Tracer("shop").Start(context.Background(), "POST /orders")
	if _, err := q.DelayContext(ctx, Receipt, 42); err != nil {
		panic(err)
	}
	request.End()

	// The worker, usually in another process.
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-otel"},
		Limits: delayed.WorkerLimits{MaxTasks: 1, StopWhenEmpty: true}, HeartbeatLife: 10 * time.Second,
		Logger: delayed.SlogLogger(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	if err := tel.Worker(w); err != nil {
		panic(err)
	}
	if err := w.Register(Receipt); err != nil {
		panic(err)
	}
	if err := w.Run(context.Background()); err != nil {
		panic(err)
	}

	names := map[string]string{request.SpanContext().SpanID().String(): "POST /orders"}
	for _, s := range exporter.GetSpans() {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	for _, s := range exporter.GetSpans() {
		if s.Parent.IsValid() {
			fmt.Printf("%s, child of %s\n", s.Name, names[s.Parent.SpanID().String()])
		}
	}
	// Output:
	// enqueue example-otel, child of POST /orders
	// run example-otel, child of enqueue example-otel
}
