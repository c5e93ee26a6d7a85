package delayed

import (
	"testing"
	"time"
)

func (b *bench) delaySuspect(f any, args ...any) {
	b.t.Helper()
	task := Call(f, args...)
	task.msg.Extend()
	task.msg.Meta.Deaths, task.msg.Meta.DiedAt = 1, time.Now().UnixMilli()
	if _, err := b.q.Enqueue(b.t.Context(), task); err != nil {
		b.t.Fatal(err)
	}
}

// While a suspect runs for long, the other suspects of a dead worker stand at the front of the queue. They must neither keep the tasks behind them from free
// executors, nor be claimed and given back without a pause.
func TestSuspectsDoNotBlockTheQueue(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan string, 100), make(chan struct{})
	f := b.fn("f", func(s string) { entered <- s; <-leave })
	for range 300 { // what a worker with 300 executors leaves behind
		b.delaySuspect(f, "suspect")
	}
	b.delay(f, "harmless")
	b.work(b.config(), f) // 4 executors
	defer close(leave)
	await(b, "the first suspect", entered)
	before := b.server.CommandStats(t)
	select {
	case s := <-entered:
		if s != "harmless" {
			t.Errorf("%s runs beside the first suspect", s)
		}
	case <-time.After(5 * time.Second):
		t.Error("three executors are free, and a task that harms nobody does not run")
	}
	<-time.After(2 * time.Second)
	sent := b.server.CommandStats(t).Since(before)
	t.Log(sent.String())
	if n := sent["evalsha"]; n > 3000 {
		t.Errorf("%d scripts in some seconds in which one suspect runs", n)
	}
}
