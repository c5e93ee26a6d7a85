package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// A worker is connected as long as it runs and all its heartbeats are fresh.
func TestStatusConnected(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.Queues = Strict{b.Name, b.Name + ".second", b.Name + ".third"}
	w := b.work(cfg)
	w.mustStop()
	if s := w.Status(); s.Connected || s.Phase != state.Stopped {
		t.Errorf("stopped: %+v", s)
	}
	w.phase.Store(int32(state.Running))
	now, old := time.Now(), time.Now().Add(-cfg.HeartbeatLife)
	for i := range w.lanes {
		for j, l := range w.lanes {
			l.Confirmed.Store(map[bool]*time.Time{true: &old, false: &now}[i == j])
		}
		if w.Status().Connected {
			t.Errorf("connected although the heartbeat on queue %d is old", i+1)
		}
	}
	w.lanes[len(w.lanes)-1].Confirmed.Store(&now)
	if !w.Status().Connected {
		t.Error("not connected although all heartbeats are fresh")
	}
	w.phase.Store(int32(state.Stopped))
}

// Tasks come while idle workers stop. Whatever notifications their waits have taken, no task stays claimed, and all run
// once.
func TestStopWhileTasksCome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(int) { ran.Add(1) })
	const rounds, each = 40, 3
	for i := range rounds {
		w := b.work(b.config(), f)
		b.Until("the first look is over", func() bool { return w.lanes[0].Newest() > 0 })
		stopped := make(chan error, 1)
		for j := range each {
			if j == 1 {
				go func() { stopped <- w.stop() }() // it may have claimed the first task, or be about to
			}
			b.delay(f, i*each+j)
		}
		if err := await(b, "the worker's end", stopped); err != nil {
			t.Fatal(err)
		}
		if n := b.Size("_processing:" + w.ID()); n > 0 {
			t.Fatalf("the worker has left %d claims", n)
		}
	}
	w := b.work(b.config(), f)
	b.Until("all have run", func() bool { return ran.Load() == rounds*each })
	b.Idle()
	w.mustStop()
	if n := b.counters()["processed"]; n != rounds*each {
		t.Errorf("%d tasks were processed, expected %d", n, rounds*each)
	}
	b.Check(redistest.Invariants{Idle: true})
}

func TestWorkerPauseResumeQuiet(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 100), make(chan struct{}, 100)
	f := b.fn("f", func(i int) { entered <- i; <-leave })
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch = 1, 3
	w := b.work(cfg, f)
	for i := range 6 {
		b.delay(f, i)
	}
	await(b, "the first", entered)
	// Two or three: the worker claims again when at most half of what it may claim ahead is left.
	b.Until("some are claimed ahead", func() bool {
		w.exec.Mu.Lock()
		defer w.exec.Mu.Unlock()
		return len(w.exec.Ready) >= 2
	})
	w.Pause()
	b.Until("they are back", func() bool { return b.Size("") == 5 })
	if s := w.Status(); s.Phase != state.Paused || s.Busy != 1 || !s.Connected {
		t.Errorf("status %+v", s)
	}
	leave <- struct{}{}
	b.Until("the first has ended", func() bool { return w.Status().Busy == 0 })
	if n := b.Size(""); n != 5 {
		t.Errorf("%d pending while paused, expected 5", n)
	}
	w.Resume()
	if i := await(b, "the second", entered); i != 1 {
		t.Errorf("task %d came after resuming, expected 1", i)
	}
	w.Quiet()
	w.Resume() // this does not end Quiet
	leave <- struct{}{}
	b.Until("the second has ended", func() bool { return w.Status().Busy == 0 })
	if s := w.Status(); s.Phase != state.Quiet {
		t.Errorf("status %+v", s)
	}
	b.Until("all others are pending", func() bool { return b.Size("") == 4 && b.Size("_processing:"+w.ID()) == 0 })
}
