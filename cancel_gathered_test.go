package delayed_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestCancelGathered cancels calls that a group gathers, the first among them.
func TestCancelGathered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	index, calls := b.indexed("index")
	q := b.q.With(delayed.Group("k"), whenFull(6))
	var refs []*delayed.Ref
	for i := range 5 {
		refs = append(refs, b.delayWith(q, index, "a", i))
	}
	for _, i := range []int{0, 2, 3} {
		b.Must(refs[i].Cancel(t.Context()))
	}
	b.delayWith(q, index, "a", 5)
	w := b.work(b.config(), index)
	if got := await(b, "the call", calls); got != "a[1 4 5]" {
		t.Errorf("called with %s", got)
	}
	b.Idle()
	b.Until("the others are forgotten", func() bool { return b.revoked() == 0 })
	// Cancel all of them.
	q = b.q.With(delayed.Group("k"), whenFull(2))
	first := b.delayWith(q, index, "b", 1)
	b.Must(first.Cancel(t.Context()))
	waited := make(chan error, 1)
	go func() { waited <- b.q.Ref(first.ID()).Wait(b.within()) }() // as in another process
	b.Until("somebody waits", func() bool { return b.subscribed(first.ID()) == 1 })
	w.mustStop() // otherwise the last could be called before it is cancelled
	last := b.delayWith(b.q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: time.Millisecond})),
		index, "b", 2)
	b.Must(last.Cancel(t.Context()))
	b.work(b.config(), index)
	b.Until("the group is gone", func() bool { return b.Size("_groups") == 0 && b.revoked() == 0 })
	if err := await(b, "the end of Wait", waited); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("Wait: %v", err)
	}
	b.Idle()
	if len(calls) > 0 {
		t.Errorf("called with %s", <-calls)
	}
	b.Check(redistest.Invariants{})
}

// TestCancelGatheredRace cancels calls while their groups become one call: no other call is lost with a cancelled one.
func TestCancelGatheredRace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ran sync.Map
	index := b.fn("index", func(ids ...int) {
		for _, id := range ids {
			ran.Store(id, true)
		}
	})
	cfg := b.config()
	b.work(cfg, index)
	b.work(cfg, index)
	q := b.q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: time.Millisecond}))
	const rounds = 300
	for i := range rounds {
		// The test cancels the last call so far: if that has become a task of its own, the task contains no other call.
		b.delayWith(q, index, 2*i)
		b.Must(b.delayWith(q, index, 2*i+1).Cancel(t.Context()))
	}
	b.Until("all groups are gone", func() bool { return b.Size("_groups") == 0 })
	b.Idle()
	kept := 0
	for i := range rounds {
		if _, yes := ran.Load(2 * i); yes {
			kept++
		}
	}
	if kept < rounds-b.counters()["canceled"] {
		t.Errorf("%d of %d calls ran that were not cancelled, counters %v", kept, rounds, b.counters())
	}
}
