package inspect_test

import (
	"strings"
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

// TestQueueWithKeyOfAnotherType is described as far as it can be, and the others are as they were.
func TestQueueWithKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"a", "b", "z"} {
		_, err := delayed.NewQueue(name, b.rdb).Delay(welcome, 1, "en")
		b.Must(err)
	}
	prefix := strings.TrimSuffix(b.Name, queueName)
	for _, key := range []string{"a_workers", "b_scheduled"} {
		b.Do("SET", prefix+key, "another program's")
	}
	b.work(welcome)
	b.Until("the worker's queue is known", func() bool {
		names, err := b.ins.Names(bg)
		return err == nil && len(names) == 4
	})
	queues, err := b.ins.Queues(bg)
	if err != nil || len(queues) != 4 {
		t.Fatalf("found %+v, %v", queues, err)
	}
	for i, broken := range []bool{true, true, false, false} {
		q := &queues[i]
		if broken != (q.Err != nil) || broken && q.Pending != 0 || broken == !q.At.IsZero() {
			t.Errorf("found %+v", q)
		}
		if broken && !strings.Contains(q.Err.Error(), "is a string, expected a ") {
			t.Errorf("found the error %v", q.Err)
		}
	}
	if queues[3].Name != "z" || queues[3].Pending != 1 {
		t.Errorf("found %+v", queues[3])
	}
	b.Until("the worker is found", func() bool {
		workers, err := b.ins.Workers(bg)
		functions, err2 := b.ins.Functions(bg)
		return err == nil && err2 == nil && len(workers) == 1 && len(functions) == 1
	})
	if backlog, err := b.ins.Backlog(bg); err != nil || backlog.Pending != 1 || len(backlog.Queues) != 2 {
		t.Errorf("found %+v, %v", backlog, err)
	}
	for name, err := range map[string]error{
		"Queue":     func() error { _, err := b.ins.Queue(bg, "a"); return err }(),
		"Workers":   func() error { _, err := b.ins.Workers(bg, "a"); return err }(),
		"Functions": func() error { _, err := b.ins.Functions(bg, "a"); return err }(),
		"Backlog":   func() error { _, err := b.ins.Backlog(bg, "b"); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%s: found %v", name, err)
		}
	}
	for _, key := range []string{"a_workers", "b_scheduled"} {
		b.Do("DEL", prefix+key)
	}
}
