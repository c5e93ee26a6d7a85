package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// A worker is connected as long as it runs and all its heartbeats are fresh.
func TestStatusConnected(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.Queues = Strict{b.Name, b.Name + ".second", b.Name + ".third"}
	w := b.work(cfg)
	w.mustStop()
	if s := w.Status(); s.Connected || s.Phase != phaseStopped {
		t.Errorf("stopped: %+v", s)
	}
	w.phase.Store(int32(phaseRunning))
	now, old := time.Now(), time.Now().Add(-cfg.HeartbeatLife)
	for i := range w.lanes {
		for j, l := range w.lanes {
			l.confirmed.Store(map[bool]*time.Time{true: &old, false: &now}[i == j])
		}
		if w.Status().Connected {
			t.Errorf("connected although the heartbeat on queue %d is old", i+1)
		}
	}
	w.lanes[len(w.lanes)-1].confirmed.Store(&now)
	if !w.Status().Connected {
		t.Error("not connected although all heartbeats are fresh")
	}
	w.phase.Store(int32(phaseStopped))
}

// Tasks come while idle workers stop. Whatever has become of their waits, nothing is left claimed, and all tasks run
// once.
func TestStopWhileTasksCome(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(int) { ran.Add(1) })
	const rounds, each = 40, 3
	for i := range rounds {
		w := b.work(b.config(), f)
		b.Until("the first look is over", func() bool { return w.lanes[0].newest() > 0 })
		stopped := make(chan error, 1)
		for j := range each {
			if j == 1 {
				go func() { stopped <- w.stop() }() // it may have claimed the first, or be about to
			}
			b.delay(f, i*each+j)
		}
		if err := await(b, "the worker's end", stopped); err != nil {
			t.Fatal(err)
		}
		if n := b.Size("_processing:" + w.ID()); n > 0 {
			t.Fatalf("the worker has left %d claims", n)
		}
	}
	w := b.work(b.config(), f)
	b.Until("all have run", func() bool { return ran.Load() == rounds*each })
	b.Idle()
	w.mustStop()
	if n := b.counters()["processed"]; n != rounds*each {
		t.Errorf("%d tasks were processed, expected %d", n, rounds*each)
	}
	b.Check(redistest.Invariants{Idle: true})
}
