package delayedprom_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/godelayed/delayed"
	delayedprom "github.com/godelayed/delayed/contrib/prometheus"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

// bench is a queue "mail" of its own, behind a prefix, so that nobody else's queues are in its registry.
type bench struct {
	*redistest.Bench
	rdb *delayed.Store
	q   *delayed.Queue
	ins *inspect.Inspector
}

const queueName = "mail"

func newBench(t *testing.T, server *redistest.Server) *bench {
	t.Helper()
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &bench{Bench: redistest.NewBench(t, server)}
	b.rdb = rdb.WithPrefix(b.Name + ":")
	b.Name += ":" + queueName
	b.q = delayed.NewQueue(queueName, b.rdb)
	b.ins, err = inspect.New(b.rdb, inspect.Config{})
	b.Must(err)
	return b
}

// work runs a worker until the test ends.
func (b *bench) work(fns ...any) {
	b.T.Helper()
	log := new(redistest.Log)
	w, err := delayed.NewWorker(b.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{queueName}, Concurrency: 4, HeartbeatLife: 10 * time.Second,
		Grace: 5 * time.Second, CancelGrace: time.Second, Logger: log.Logger(),
		Backoff: func(int) time.Duration { return time.Hour },
	})
	b.Must(err)
	b.Must(w.Register(fns...))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	b.T.Cleanup(func() {
		cancel()
		if err := redistest.Await(b.Bench, "the worker's end", done); err != nil {
			b.T.Errorf("%v\n%s", err, log)
		}
	})
}

// delay enqueues a call.
func (b *bench) delay(fn any, args []any, opts ...delayed.Option) {
	b.T.Helper()
	_, err := b.q.With(opts...).Delay(fn, args...)
	b.Must(err)
}

// known waits until n queues are registered.
func (b *bench) known(n int) {
	b.T.Helper()
	b.Until("the queues are known", func() bool {
		names, err := b.ins.Names(context.Background())
		b.Must(err)
		return len(names) == n
	})
}

// register returns a registry with a collector.
func (b *bench) register(cfg delayedprom.Config) *prometheus.Registry {
	b.T.Helper()
	reg := prometheus.NewPedanticRegistry()
	b.Must(reg.Register(delayedprom.New(b.ins, cfg)))
	return reg
}

// series are the values of a scrape, by name and labels: `delayed_tasks{queue="mail",state="retry"}`. A histogram is
// its number of observations, and so is a summary.
type series map[string]float64

// scrape returns all values, and the sums of histograms and summaries.
func scrape(tb testing.TB, reg prometheus.Gatherer) (values, sums series) {
	tb.Helper()
	families, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	values, sums = series{}, series{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := nameOf(f, m)
			switch {
			case m.GetGauge() != nil:
				values[name] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				values[name] = m.GetCounter().GetValue()
			case m.GetSummary() != nil:
				values[name], sums[name] = float64(m.GetSummary().GetSampleCount()), m.GetSummary().GetSampleSum()
			default:
				h := m.GetHistogram()
				values[name], sums[name] = float64(h.GetSampleCount()), h.GetSampleSum()
				for i, b := range h.GetBucket()[1:] {
					if b.GetCumulativeCount() < h.GetBucket()[i].GetCumulativeCount() {
						tb.Errorf("%s: the counts of its buckets do not rise: %v", name, h)
					}
				}
			}
		}
	}
	return values, sums
}

func nameOf(f *dto.MetricFamily, m *dto.Metric) string {
	var labels []string
	for _, l := range m.GetLabel() {
		labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
	}
	if len(labels) == 0 {
		return f.GetName()
	}
	return f.GetName() + "{" + strings.Join(labels, ",") + "}"
}

// Functions that tests delay.

var (
	welcome = delayed.Func(func(int) {}, delayed.Name("mail.Welcome"))
	fails   = delayed.Func(func(int) error { return errors.New("mailbox full") }, delayed.Name("mail.Fails"))
	sleeps  = delayed.Func(func(d time.Duration) { <-time.After(d) }, delayed.Name("mail.Sleeps"))
)
