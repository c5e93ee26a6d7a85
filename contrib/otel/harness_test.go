package delayedotel_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/godelayed/delayed"
	delayedotel "github.com/godelayed/delayed/contrib/otel"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		runChild()
		return
	}
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

// bench is a queue of its own with a Telemetry whose spans and metrics stay in memory.
type bench struct {
	*redistest.Bench
	rdb   *delayed.Store
	q     *delayed.Queue
	tel   *delayedotel.Telemetry
	spans *tracetest.InMemoryExporter
	meter *metric.ManualReader
	trace *trace.TracerProvider
}

func newBench(t *testing.T, cfg delayedotel.Config) *bench {
	t.Helper()
	server := redistest.Shared(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &bench{
		Bench: redistest.NewBench(t, server), rdb: rdb, spans: tracetest.NewInMemoryExporter(),
		meter: metric.NewManualReader(),
	}
	b.trace = trace.NewTracerProvider(trace.WithSyncer(b.spans))
	cfg.TracerProvider = b.trace
	cfg.MeterProvider = metric.NewMeterProvider(metric.WithReader(b.meter))
	b.tel, err = delayedotel.New(cfg)
	b.Must(err)
	b.q, err = delayed.OpenQueue(b.Name, rdb, b.tel.Queue(b.Name, delayed.QueueConfig{}))
	b.Must(err)
	return b
}

// work runs a worker with the Telemetry until the test ends, or stop is called.
func (b *bench) work(fns ...any) (stop func()) {
	b.T.Helper()
	return b.start(b.worker(fns...))
}

func (b *bench) worker(fns ...any) *delayed.Worker {
	b.T.Helper()
	w, err := delayed.NewWorker(b.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{b.Name}, Concurrency: 4, HeartbeatLife: 10 * time.Second,
		Logger:  new(redistest.Log).Logger(),
		Backoff: func(int) time.Duration { return time.Millisecond },
	})
	b.Must(err)
	b.Must(b.tel.Worker(w))
	b.Must(w.Register(fns...))
	return w
}

// start runs a worker. What it returns stops the worker, and returns when listeners have heard of everything.
func (b *bench) start(w *delayed.Worker) (stop func()) {
	b.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := redistest.Await(b.Bench, "the worker's end", done); err != nil {
			b.T.Error(err)
		}
	}
	b.T.Cleanup(stop)
	return stop
}

// ended waits until n spans have ended whose names begin with a word, and returns them in the order of their starts.
func (b *bench) ended(word string, n int) tracetest.SpanStubs {
	b.T.Helper()
	var found tracetest.SpanStubs
	b.Until("spans have ended", func() bool {
		found = slices.DeleteFunc(b.spans.GetSpans(), func(s tracetest.SpanStub) bool {
			return !strings.HasPrefix(s.Name, word+" ")
		})
		return len(found) >= n
	})
	slices.SortStableFunc(found, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	if len(found) != n {
		b.T.Fatalf("%d spans %q, expected %d", len(found), word, n)
	}
	return found
}

// attr returns the value of an attribute as text, "" if there is none.
func attr(attrs []attribute.KeyValue, key string) string {
	for _, kv := range attrs {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

// expectAttrs checks attributes: the given ones must be there, with these values; "" stands for none.
func (b *bench) expectAttrs(s *tracetest.SpanStub, want map[string]string) {
	b.T.Helper()
	for key, value := range want {
		if got := attr(s.Attributes, key); got != value {
			b.T.Errorf("%s: attribute %s: expected %q, found %q", s.Name, key, value, got)
		}
	}
}

// expectFrom checks that a run comes from an enqueue: it is linked with that, and its child if it is to be one.
func (b *bench) expectFrom(run, enqueue *tracetest.SpanStub, child bool) {
	b.T.Helper()
	if len(run.Links) != 1 || run.Links[0].SpanContext.SpanID() != enqueue.SpanContext.SpanID() ||
		run.Links[0].SpanContext.TraceID() != enqueue.SpanContext.TraceID() {
		b.T.Errorf("%s: expected a link with %v, found %v", run.Name, enqueue.SpanContext.SpanID(), run.Links)
	}
	same := run.SpanContext.TraceID() == enqueue.SpanContext.TraceID()
	if parent := run.Parent.SpanID() == enqueue.SpanContext.SpanID(); parent != child || same != child {
		b.T.Errorf("%s: child %v, in the same trace %v; expected %v", run.Name, parent, same, child)
	}
}

// points returns the counts of a metric by the values of some attributes: "a/b" → count. Those of a histogram are how
// many values it has.
func (b *bench) points(name string, keys ...string) map[string]int64 {
	b.T.Helper()
	var all metricdata.ResourceMetrics
	b.Must(b.meter.Collect(context.Background(), &all))
	counts := map[string]int64{}
	add := func(set attribute.Set, n int64) {
		var values []string
		for _, key := range keys {
			v, _ := set.Value(attribute.Key(key))
			values = append(values, v.String())
		}
		counts[strings.Join(values, "/")] += n
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, int64(p.Count))
				}
			default:
				b.T.Fatalf("%s is a %T", name, data)
			}
		}
	}
	return counts
}
