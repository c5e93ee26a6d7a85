package delayed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestCancelAmongManyGathered cancels calls at both ends of a group of more calls than one command asks about.
func TestCancelAmongManyGathered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	calls := make(chan []int, 10)
	index := b.fn("index", func(ids ...int) { calls <- ids })
	const n = 2_001 // a command asks about 1,000
	q := b.q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: time.Hour, MaxSize: n + 1}))
	tasks := make([]*delayed.Task, n)
	for i := range tasks {
		tasks[i] = delayed.Call(index, i)
	}
	refs, err := q.DelayMany(t.Context(), tasks...)
	b.Must(err)
	var want []int
	for i := range n + 1 {
		want = append(want, i)
	}
	for _, i := range []int{n - 1, 1_000, 999, 0} {
		b.Must(refs[i].Cancel(t.Context()))
		want = slices.Delete(want, i, i+1)
	}
	b.delayWith(q, index, n)
	b.work(b.config(), index)
	if got := redistest.Await(b.Bench, "the call", calls); !slices.Equal(got, want) {
		t.Errorf("called with %d values, expected %d: without those of the calls that were cancelled", len(got),
			len(want))
	}
	b.Until("the others are forgotten", func() bool { return b.Size("_revoked") == 0 })
	b.Idle()
	b.Check(redistest.Invariants{})
}
