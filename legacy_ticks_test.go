package delayed_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/wire"
)

// TestPeriodicTasksOfLegacyQueues: ticks enqueue tasks that the queue's legacy workers can read: structs by position,
// and Python tasks without ids.
func TestPeriodicTasksOfLegacyQueues(t *testing.T) {
	t.Parallel()
	type point struct{ X, Y int }
	b := newBench(t)
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
	b.Must(err)
	f := b.fn("f", func(point) {})
	b.delayWith(q, f, point{1, 2})
	p := q.Periodic()
	python := delayed.NewPyTask("m:f", []any{1}, nil)
	b.Must(p.Set(t.Context(), delayed.Entry{Name: "go", Spec: "@yearly", Task: delayed.Call(f, point{1, 2})}))
	b.Must(p.Set(t.Context(), delayed.Entry{Name: "py", Spec: "@yearly", Task: python}))
	ref, err := p.RunNow(t.Context(), "go")
	b.Must(err)
	_, err = p.RunNow(t.Context(), "py")
	b.Must(err)
	var messages []wire.Message
	for _, raw := range b.List("") {
		m, err := wire.Parse([]byte(raw), wire.Default)
		b.Must(err)
		messages = append(messages, m)
	}
	if len(messages) != 3 || string(messages[1].Payload) != string(messages[0].Payload) ||
		messages[1].Meta.ID != ref.ID() || messages[2].Kind != wire.Py {
		t.Errorf("found %q", b.List(""))
	}
	if form := b.Do("GET", b.Name+"_mode"); fmt.Sprintf("%s", form) != "plain" {
		t.Errorf("the queue's form is %s", form)
	}
	overlap := delayed.Entry{Name: "x", Spec: "@yearly", Task: python, Overlap: delayed.OverlapSkip}
	if err := p.Set(t.Context(), overlap); err == nil {
		t.Error("an entry has an overlap policy although its tasks carry no ids")
	}
}

// TestOverlapOnALegacyQueue: the overlap ends with each task of the entry, so the next tick is enqueued.
func TestOverlapOnALegacyQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var runs atomic.Int64
	f := b.fn("f", func() { runs.Add(1) })
	cfg := b.config()
	cfg.Legacy = true
	cfg.Schedulers = []delayed.SchedulerConfig{{
		Queue: b.Name, Legacy: true, Owner: "o",
		Entries: []delayed.Entry{
			{Name: "e", Spec: "@every 1s", Task: delayed.Call(f), Overlap: delayed.OverlapSkip},
		},
	}}
	b.work(cfg, f)
	b.Until("it has run twice", func() bool { return runs.Load() == 2 })
}
