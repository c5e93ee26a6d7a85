package engine

import (
	"testing"
	"time"
)

func TestEarlierTaskWakesTheMover(t *testing.T) {
	b := newBench(t)
	ran := make(chan string, 10)
	f := b.fn("f", func(s string) { ran <- s })
	w, err := NewWorker(b.rdb, b.config())
	b.Must(err)
	b.Must(w.Register([]*Function{f}, nil))
	w.slotGroups[0].mover.Every = time.Hour // which alone would be too late
	b.start(w)
	b.delayAt(time.Now().Add(time.Hour), f, "late")
	b.Until("the mover has seen it", func() bool { return b.Size("_wake") == 0 })
	b.delayAt(time.Now().Add(50*time.Millisecond), f, "early")
	if s := await(b, "the early task", ran); s != "early" {
		t.Fatalf("ran %s", s)
	}
	if b.Size("_scheduled") != 1 {
		t.Error("the late task is gone")
	}
}
