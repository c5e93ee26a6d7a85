package delayed

import (
	"fmt"
	"runtime"
	"testing"
)

// TestCoalescersAreShared by the queues of a handle that have one list, and forgotten with them.
func TestCoalescersAreShared(t *testing.T) {
	b := newBench(t)
	again := NewQueue(b.Name, b.rdb)
	legacy, err := OpenQueue(b.rdb, QueueConfig{Name: b.Name, Legacy: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*Queue{"again": again, "With": b.q.With(MaxRetry(1)), "another form": legacy} {
		if q.coalescer != b.q.coalescer {
			t.Errorf("%s: another coalescer", name)
		}
	}
	rdb, err := Dial(b.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	for name, q := range map[string]*Queue{
		"another queue": NewQueue(b.Name+"x", b.rdb), "prefix": NewQueue(b.Name, b.rdb.WithPrefix("x:")),
		"another handle": NewQueue(b.Name, rdb),
	} {
		if q.coalescer == b.q.coalescer {
			t.Errorf("%s: the same coalescer", name)
		}
	}
	for i := range 10_000 {
		NewQueue(fmt.Sprint(b.Name, ".", i), b.rdb)
	}
	left := func() int {
		b.rdb.coalescers.Mu.Lock()
		defer b.rdb.coalescers.Mu.Unlock()
		return len(b.rdb.coalescers.ByKey)
	}
	b.Until("the queues that are out of use are forgotten", func() bool { runtime.GC(); return left() == 1 })
	if NewQueue(b.Name, b.rdb).coalescer != b.q.coalescer {
		t.Error("a queue that is in use was forgotten")
	}
	runtime.KeepAlive(b.q)
}
