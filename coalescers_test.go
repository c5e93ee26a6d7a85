package delayed_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/godelayed/delayed"
)

// TestCoalescersAreShared by the queues of a handle that have one list, and forgotten with them.
func TestCoalescersAreShared(t *testing.T) {
	b := newBench(t)
	again := delayed.NewQueue(b.Name, b.rdb)
	legacy, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*delayed.Queue{
		"again": again, "With": b.q.With(delayed.MaxRetry(1)),
		"another form": legacy,
	} {
		if delayed.Coalescer(q) != delayed.Coalescer(b.q) {
			t.Errorf("%s: another coalescer", name)
		}
	}
	rdb, err := delayed.Dial(b.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	for name, q := range map[string]*delayed.Queue{
		"another queue":  delayed.NewQueue(b.Name+"x", b.rdb),
		"prefix":         delayed.NewQueue(b.Name, b.rdb.WithPrefix("x:")),
		"another handle": delayed.NewQueue(b.Name, rdb),
	} {
		if delayed.Coalescer(q) == delayed.Coalescer(b.q) {
			t.Errorf("%s: the same coalescer", name)
		}
	}
	for i := range 10_000 {
		delayed.NewQueue(fmt.Sprint(b.Name, ".", i), b.rdb)
	}
	b.Until("the queues that are out of use are forgotten", func() bool {
		runtime.GC()
		return delayed.Coalescers(b.rdb) == 1
	})
	if delayed.Coalescer(delayed.NewQueue(b.Name, b.rdb)) != delayed.Coalescer(b.q) {
		t.Error("a queue that is in use was forgotten")
	}
	runtime.KeepAlive(b.q)
}
