package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// TestExtendedPythonTasksAreHandedOn: no worker fails on them unless the queue has had plain ones, so they are parked
// only then, which the log reports once.
func TestExtendedPythonTasksAreHandedOn(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.PythonQueue = b.Name + "-py"
	cold, err := NewWorker(b.rdb, cfg)
	b.Must(err)
	for _, g := range cold.slotGroups {
		g.mover.Every = time.Hour
	}
	w := b.start(cold)
	enqueue := func(n int) {
		t.Helper()
		for range n {
			msg := wire.Message{Kind: wire.PyExtended, Path: "m:f", Meta: wire.Meta{ID: wire.NewTaskID()}}
			e := redisstore.Envelope{ID: msg.Meta.ID, Message: msg.Append(nil)}
			b.Must(b.q.store.Enqueue(t.Context(), []redisstore.Envelope{e}))
		}
	}
	enqueue(20)
	b.Until("they are handed on", func() bool { return b.Size("-py") == 20 })
	if form, err := redis.String(b.Conn.Do("GET", b.Name+"-py_mode")); form != "extended" || err != nil {
		t.Errorf("the queue for Python tasks is %q, %v: its producers may add what its workers cannot read", form, err)
	}
	if log := b.log.String(); strings.Contains(log, "parked") || b.counters()["parked"] > 0 {
		t.Errorf("found %v and\n%s", b.counters(), log)
	}

	b.Do("SET", b.Name+"-py_mode", "plain")
	enqueue(20)
	b.Until("they are parked", func() bool { return b.Size("_parked") == 20 })
	for range 3 {
		w.PokeMovers()
	}
	b.Idle()
	if parked, log := b.counters()["parked"], b.log.String(); parked != 20 || !strings.Contains(log, "task parked") ||
		!strings.Contains(log, "serve another queue") {
		t.Errorf("%d parkings of 20 tasks, and\n%s", parked, log)
	}
	b.Do("SET", b.Name+"-py_mode", "extended")
	w.PokeMovers()
	b.Until("they are handed on as well", func() bool { return b.Size("-py") == 40 })
}

func TestPythonModeUnknownDoesNotPark(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.PythonQueue = b.Name + "py"
	w, err := NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	msg := wire.Message{Kind: wire.PyExtended, Path: "a:b", Meta: wire.Meta{ID: "x"}}
	raw := msg.Append(nil)
	parsed, err := wire.Parse(raw, wire.WorkerLimits)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the worker is stopping
	e := w.receiver.ForwardPython(ctx, &lane.Claim{Lane: w.lanes[0], Raw: raw, Msg: parsed}, time.Now())
	if e.Outcome == lifecycle.OutcomePark {
		t.Error("Redis was not asked, and the task is parked as if it had answered")
	}
}
