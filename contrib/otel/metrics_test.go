package delayedotel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/godelayed/delayed"
	delayedotel "github.com/godelayed/delayed/contrib/otel"
	"github.com/godelayed/delayed/internal/wire"
)

// expectPoints checks the counts of a metric.
func (b *bench) expectPoints(want map[string]int64, name string, keys ...string) {
	b.T.Helper()
	if got := b.points(name, keys...); !maps.Equal(got, want) {
		b.T.Errorf("%s by %v: expected %v, found %v", name, keys, want, got)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	fails := delayed.Func(func() error { return errTeapot }, delayed.Name("fails"), delayed.MaxRetry(1))
	panics := delayed.Func(func() { panic("ouch") }, delayed.Name("panics"), delayed.MaxRetry(0))
	snoozes := delayed.Func(func() error { return delayed.Snooze(time.Hour) }, delayed.Name("snoozes"))
	unknown := delayed.Func(func() {}, delayed.Name("unknown"))
	stop := b.work(welcome, fails, panics, snoozes)
	_, err := b.q.DelayMany(t.Context(), delayed.Call(welcome, 1), delayed.Call(welcome, 2), delayed.Call(fails))
	b.Must(err)
	for _, fn := range []any{panics, snoozes, unknown} {
		_, err := b.q.Delay(fn)
		b.Must(err)
	}
	for range 2 {
		if _, err = b.q.With(delayed.TaskID("x"), delayed.In(time.Hour)).Delay(welcome, 3); err != nil {
			break
		}
	}
	if !errors.Is(err, delayed.ErrDuplicate) {
		t.Fatal(err)
	}
	b.ended("run", 6)
	b.Until("the unknown task is parked", func() bool { return b.Size("_parked") == 1 })
	b.Until("two tasks are archived", func() bool { return b.Size("_archived") == 2 })
	stop()
	const fn, outcome, kind = "messaging.delayed.function", "messaging.delayed.outcome", "error.type"
	sent := "enqueue/send/delayed/" + b.Name
	b.expectPoints(map[string]int64{sent + "/": 5, sent + "/duplicate": 1},
		"messaging.client.operation.duration", "messaging.operation.name", "messaging.operation.type",
		"messaging.system", "messaging.destination.name", kind)
	b.expectPoints(map[string]int64{
		"mail.Welcome/": 3, "mail.Welcome/duplicate": 1, "fails/": 1, "panics/": 1, "snoozes/": 1, "unknown/": 1,
	}, "messaging.client.sent.messages", fn, kind)
	runs := map[string]int64{"mail.Welcome/": 2, "fails/teapot": 2, "panics/panic": 1, "snoozes/": 1}
	b.expectPoints(runs, "messaging.process.duration", fn, kind)
	b.expectPoints(runs, "messaging.client.consumed.messages", fn, kind)
	b.expectPoints(map[string]int64{
		"run/process/delayed/" + b.Name: 6,
	}, "messaging.process.duration", "messaging.operation.name", "messaging.operation.type", "messaging.system",
		"messaging.destination.name")
	b.expectPoints(map[string]int64{
		"mail.Welcome/done": 2, "fails/failed": 2, "fails/retried": 1, "fails/archived": 1, "panics/panicked": 1,
		"panics/failed": 1, "panics/archived": 1, "snoozes/snoozed": 1, "unknown/parked": 1,
	}, "messaging.delayed.outcomes", fn, outcome)
	b.expectPoints(map[string]int64{"mail.Welcome": 2, "fails": 2, "panics": 1, "snoozes": 1},
		"messaging.delayed.wait.duration", fn)
	b.expectPoints(map[string]int64{}, "messaging.delayed.missed_events")
}

// TestWaitsOfOtherClocks counts the wait of a task whose producer has a fast clock, but not one that is unknown.
func TestWaitsOfOtherClocks(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	ahead := wire.Message{Kind: wire.GoExtended, Path: "fast", Meta: wire.Meta{
		ID: "x", EnqueuedAt: time.Now().Add(time.Hour).UnixMilli(),
	}}
	unknown := wire.Message{Kind: wire.GoPlain, Path: "unknown"}
	b.Do("RPUSH", b.Name, ahead.Append(nil), unknown.Append(nil))
	b.Do("RPUSH", b.Name+"_noti", 1, 1)
	stop := b.work(delayed.Func(func() {}, delayed.Name("fast")), delayed.Func(func() {}, delayed.Name("unknown")))
	b.ended("run", 2)
	stop()
	b.expectPoints(map[string]int64{"fast": 1}, "messaging.delayed.wait.duration", "messaging.delayed.function")
}

// TestCardinality: names beyond the bounds share a value, whoever chooses them.
func TestCardinality(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	var tasks []*delayed.Task
	for i := range 250 {
		tasks = append(tasks, delayed.NewGoTask(fmt.Sprint("f", i)))
	}
	_, err := b.q.DelayMany(t.Context(), tasks...)
	b.Must(err)
	functions := b.points("messaging.client.sent.messages", "messaging.delayed.function")
	if len(functions) != 201 || functions["_OTHER"] != 50 {
		t.Errorf("%d functions, %d of others", len(functions), functions["_OTHER"])
	}
	for i := range 120 {
		name := fmt.Sprint(b.Name, "-", i)
		q, err := delayed.OpenQueue(name, b.rdb, b.tel.Queue(name, delayed.QueueConfig{}))
		b.Must(err)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = q.DelayContext(canceled, welcome, 1)
	}
	queues := b.points("messaging.client.operation.duration", "messaging.destination.name")
	if len(queues) != 101 || queues["_OTHER"] != 21 {
		t.Errorf("%d queues, %d of others", len(queues), queues["_OTHER"])
	}
}

// TestBoundsOfHistograms: long runs are distinguished, and units are seconds.
func TestBoundsOfHistograms(t *testing.T) {
	t.Parallel()
	b := newBench(t, delayedotel.Config{})
	began := time.Now()
	const took = 20 * time.Millisecond
	takes := delayed.Func(func() { <-time.After(took) }, delayed.Name("takes"))
	stop := b.work(takes)
	_, err := b.q.Delay(takes)
	b.Must(err)
	b.ended("run", 1)
	stop()
	most := (time.Since(began) + time.Second).Seconds() // clocks of messages have milliseconds
	var all metricdata.ResourceMetrics
	b.Must(b.meter.Collect(t.Context(), &all))
	histograms := 0
	for _, m := range all.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
			histograms++
			p := h.DataPoints[0]
			if m.Unit != "s" || p.Sum > most || p.Bounds[0] > 0.001 ||
				m.Name == "messaging.process.duration" && p.Sum < took.Seconds() ||
				m.Name != "messaging.client.operation.duration" && p.Bounds[len(p.Bounds)-1] < 3600 {
				t.Errorf("%s in %s: sum %v, bounds %v", m.Name, m.Unit, p.Sum, p.Bounds)
			}
		}
		if m.Description == "" {
			t.Errorf("%s has no description", m.Name)
		}
	}
	if histograms < 2 {
		t.Errorf("%d histograms", histograms)
	}
}

func TestWorkerIsNil(t *testing.T) {
	b := newBench(t, delayedotel.Config{})
	if err := b.tel.Worker(nil); err == nil {
		t.Error("expected an error")
	}
	w := b.worker(welcome)
	b.start(w)()
	if err := b.tel.Worker(w); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("after Run: %v", err)
	}
}
