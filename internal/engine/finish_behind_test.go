package engine

import (
	"errors"
	"testing"

	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// TestNoClaimsWithTooManyUnconfirmed: a worker whose ended tasks Redis does not confirm claims only so many,
// because all of them would run again if it died. It goes on once it can.
func TestNoClaimsWithTooManyUnconfirmed(t *testing.T) {
	const n = 6 * lane.MaxUnconfirmed
	b := newBench(t)
	f := b.fn("f", func(int) error { return Discard(errors.New("no luck")) })
	calls := make([]*Task, n)
	for i := range calls {
		calls[i] = Call(f, i)
	}
	for first := 0; first < n; first += redisstore.MaxBatchTasks {
		_, err := b.q.DelayMany(t.Context(), calls[first:first+redisstore.MaxBatchTasks]...)
		b.Must(err)
	}
	b.Do("SET", b.Name+"_archived", "of another type")
	w := b.work(b.config(), f)
	l := w.lanes[0]
	b.Until("the worker is behind", l.Behind)
	var started uint64
	for range 2 { // the second time after something that wakes the fetcher
		w.PokeMovers()
		b.Until("the mover has looked", w.slotGroups[0].mover.Checked.Load)
		b.Until("all claimed tasks have ended", func() (still bool) {
			still, started = w.exec.IdleState()
			return still
		})
	}
	// Those that were ready or about to be when it fell behind come on top.
	if most := uint64(lane.MaxUnconfirmed + exec.MaxAhead + b.config().Concurrency); started > most {
		t.Errorf("%d tasks were claimed, expected at most %d", started, most)
	}
	b.Do("DEL", b.Name+"_archived")
	b.Until("the worker goes on", func() bool { return b.Size("_archived") == n })
}

// TestFetcherIsToldThatRedisWas: once, and then it looks at the queue.
func TestFetcherIsToldThatRedisWas(t *testing.T) {
	r := newReceivingWorker(t, nil)
	f := finisherOf(r.l)
	r.l.Unconfirmed.Store(lane.MaxUnconfirmed)
	if r.fetcher.CheckBacklog(); !r.fetcher.Paused(0) {
		t.Fatal("the fetcher may claim")
	}
	for i, want := range []bool{true, false} {
		loop.Drain(r.exec.Changed)
		if f.Confirmed(1); signalled(r.exec.Changed) != want {
			t.Errorf("ending %d: expected that the fetcher is woken: %v", i+1, want)
		}
	}
	if r.fetcher.CheckBacklog(); r.fetcher.Paused(0) || !r.fetcher.Queues[0].HasTasks {
		t.Error("the fetcher does not look at the queue")
	}
}
