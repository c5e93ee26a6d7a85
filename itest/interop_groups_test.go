//go:build unix

package itest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestGatheredCallsThatPythonHasParked: a Python worker leaves gathered calls to Go workers. Those that were scheduled
// and that it has claimed join their group when a Go worker comes.
func TestGatheredCallsThatPythonHasParked(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queue := redistest.Name(t)
	worker := startGodelayed(t, newPyLedger(t).env(), server, "--queue", queue)
	calls := make(chan []int, 3)
	gather := delayed.Func(func(n ...int) { calls <- n }, delayed.Name("itest.gathered"))
	q := delayed.NewQueue(queue, handle(t, server)).With(delayed.In(time.Millisecond), delayed.Group("k"),
		delayed.Gather(delayed.GatherPolicy{Grace: 50 * time.Millisecond}))
	for i := range 3 {
		if _, err := q.Delay(gather, i); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the calls to be parked", func() bool { return len(filedIn(t, server, queue, "_parked")) == 3 })
	startWorkerHere(t, handle(t, server), delayed.WorkerConfig{Queues: delayed.Strict{queue}}, gather)
	select {
	case got := <-calls:
		slices.Sort(got)
		if !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("expected one call of all, found %v", got)
		}
	case <-time.After(30 * time.Second):
		t.Error("expected one call of all, found none")
	}
	stopPython(t, worker)
}
