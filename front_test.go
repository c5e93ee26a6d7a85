package delayed_test

import (
	"errors"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestFront puts a task before all others.
func TestFront(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(n int) { ran <- n })
	b.delay(f, 1)
	b.delay(f, 2)
	front := b.q.With(delayed.Front())
	b.delayWith(front, f, 3)
	if _, err := front.DelayMany(t.Context(), delayed.Call(f, 4), delayed.Call(f, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := front.Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil)); err != nil {
		t.Errorf("a Python task: %v", err)
	}
	if _, err := front.DelayMany(t.Context(), make([]*delayed.Task, 0)...); err != nil {
		t.Errorf("no tasks: %v", err)
	}
	many := make([]*delayed.Task, redisstore.MaxEnlisted+1)
	for i := range many {
		many[i] = delayed.Call(f, i)
	}
	if _, err := front.DelayMany(t.Context(), many...); !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("more than go together: %v", err)
	}
	cfg := b.config()
	cfg.Concurrency = 1
	b.work(cfg, f)
	for _, want := range []int{4, 5, 3, 1, 2} {
		if n := await(b, "a task", ran); n != want {
			t.Errorf("%d ran, expected %d", n, want)
		}
	}
	b.Check(redistest.Invariants{})
}

// TestFrontOnALegacyQueue: the message stays in the form that workers of other packages read.
func TestFrontOnALegacyQueue(t *testing.T) {
	b := newBench(t)
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
	if err != nil {
		t.Fatal(err)
	}
	b.delayWith(q, plainForTest, 1)
	b.delayWith(q.With(delayed.Front()), plainForTest, 2)
	if m := b.pending(); m[0].Kind != m[1].Kind || string(m[0].Payload) != "\x02" {
		t.Errorf("%+v", m)
	}
}
