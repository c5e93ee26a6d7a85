package delayed_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/wire"
)

// What is set on a legacy queue is what code declares there: structs by position, Python tasks in the plain form.
func TestPeriodicSetOnALegacyQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	type name struct{ First, Last string }
	f := b.fn("f", func(name) {})
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
	b.Must(err)
	p := q.Periodic()
	call := delayed.Call(f, name{"Ada", "Lovelace"})
	b.Must(p.Set(bg, delayed.Entry{Name: "go", Spec: "@daily", Task: call}))
	b.Must(p.Set(bg, delayed.Entry{Name: "python", Spec: "@daily", Task: delayed.NewPyTask("m:f", nil, nil)}))
	want, _, _, err := delayed.Message(q, call, time.Now().UnixMilli())
	b.Must(err)
	if got := b.definition("go").Message; string(got) != string(want) {
		t.Errorf("the entry enqueues %x, expected %x", got, want)
	}
	msg, err := wire.Parse(b.definition("python").Message, wire.Default)
	if b.Must(err); msg.Kind != wire.Py {
		t.Errorf("the Python task has the form %v, expected the plain one", msg.Kind)
	}
}

// Runs of an entry are kept apart on a legacy queue too, although its plain messages have no place for a lock.
func TestPeriodicOverlapOnALegacyQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
	b.Must(err)
	p := q.Periodic()
	f := b.fn("f", func() {})
	entry := delayed.Entry{Name: "e", Spec: "@daily", Task: delayed.Call(f)}
	b.Must(p.Set(bg, entry))
	b.Must(p.Set(bg, delayed.Entry{Name: "e", Spec: "@daily", Overlap: delayed.OverlapSkip})) // keeps the task
	if _, err := p.RunNow(bg, "e"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.RunNow(bg, "e"); err == nil {
		t.Error("it was enqueued again although its task is not over")
	}
	cfg := b.config()
	cfg.Legacy = true
	b.work(cfg, f)
	b.Idle()
	if _, err := p.RunNow(bg, "e"); err != nil {
		t.Errorf("its task is over: %v", err)
	}
	b.Idle()
}
