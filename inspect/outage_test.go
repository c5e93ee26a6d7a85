package inspect_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// TestMoveWithLostReplies moves tasks while requests and replies are lost: each task is in one queue or in both.
func TestMoveWithLostReplies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 60
	for i := range n {
		_, err := b.q.With(delayed.TaskID(id(i)), delayed.In(time.Duration(i%2)*time.Hour)).Delay(welcome, i, "en")
		b.Must(err)
	}
	proxy := faultnet.NewProxy(t, redistest.Shared(t).Addr())
	rdb, err := delayed.Dial(proxy.URL())
	b.Must(err)
	t.Cleanup(func() { rdb.Close() })
	ins, err := inspect.New(rdb.WithPrefix(b.Name[:len(b.Name)-len(queueName)]), inspect.Config{})
	b.Must(err)
	proxy.SetPlan(faultnet.Random(1, faultnet.Rates{DropRequest: 0.02, DropReply: 0.05}), 0)
	for range 8 {
		for _, s := range []state.Task{state.Pending, state.Scheduled, state.Archived} {
			// An error is expected, and the next round goes on.
			_, _ = ins.DoAll(bg, queueName, inspect.MoveTo("other"), inspect.Query{State: s}, nil)
		}
	}
	if c := proxy.Counts(); c.DroppedReplies == 0 || c.DroppedRequests == 0 {
		t.Error("nothing was lost on the way")
	}
	found := map[string]int{}
	for _, queue := range []string{queueName, "other"} {
		for _, s := range inspect.States {
			for task, err := range b.ins.All(bg, queue, inspect.Query{State: s}) {
				b.Must(err)
				found[task.ID[:len(id(0))]]++
			}
		}
	}
	for i := range n {
		if found[id(i)] == 0 {
			t.Errorf("%s is lost", id(i))
		}
	}
}
