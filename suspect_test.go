package delayed

import (
	"testing"
	"time"
)

// A suspect that runs for long lets its worker claim again, and another suspect that comes with that claim has to go back.
func TestSecondSuspectWaitsForTheFirst(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan string, 10), make(chan struct{})
	f := b.fn("f", func(s string) { entered <- s; <-leave })
	delaySuspect := func(s string) {
		task := Call(f, s)
		task.msg.Extend()
		task.msg.Meta.Deaths, task.msg.Meta.DiedAt = 1, time.Now().UnixMilli()
		if _, err := b.q.Enqueue(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	b.work(b.config(), f)
	delaySuspect("first")
	if s := await(b, "the first suspect", entered); s != "first" {
		t.Fatalf("%s came first", s)
	}
	delaySuspect("second")
	b.delay(f, "harmless")
	if s := await(b, "the harmless task", entered); s != "harmless" {
		t.Errorf("%s runs beside the first suspect", s)
	}
	close(leave)
	if s := await(b, "the second suspect", entered); s != "second" {
		t.Errorf("%s came last", s)
	}
	b.idle()
}
