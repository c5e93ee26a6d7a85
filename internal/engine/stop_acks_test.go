package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/state"
)

// stopBesideTwo begins to stop a worker of two executors, each of which runs a task until its channel in leave is
// closed. The worker's fetcher was waiting for room.
func (b *bench) stopBesideTwo(cfg WorkerConfig) (w *started, leave []chan struct{}, stopped chan error) {
	b.T.Helper()
	entered := make(chan int, 2)
	leave = []chan struct{}{make(chan struct{}), make(chan struct{})}
	f := b.fn("f", func(i int) { entered <- i; <-leave[i] })
	cfg.Concurrency, cfg.HeartbeatLife = 2, quietLife
	w = b.work(cfg, f)
	b.delay(f, 0)
	b.delay(f, 1)
	await(b, "a task", entered)
	await(b, "a task", entered)
	b.starving(w)
	stopped = make(chan error, 1)
	go func() { stopped <- w.stop() }()
	b.Until("its loops have ended", func() bool {
		w.exec.Mu.Lock()
		defer w.exec.Mu.Unlock()
		return w.exec.Stopped
	})
	return w, leave, stopped
}

// A worker stops while two handlers run, and its fetcher was waiting for room. One of them ends. The worker must
// acknowledge it then, not when the other one ends, which may take all of Grace: if the process were killed meanwhile,
// the task would run again.
func TestTasksThatEndDuringAStopAreAcknowledged(t *testing.T) {
	b := newBench(t)
	w, leave, stopped := b.stopBesideTwo(b.config())
	close(leave[0])
	b.Until("its task is acknowledged while another runs", func() bool { return b.Size("_processing:"+w.ID()) == 1 })
	close(leave[1])
	if err := await(b, "the stop", stopped); err != nil {
		t.Error(err)
	}
}

// The same with a handler that never returns: Run returns *RunningError and the process exits. Without an
// acknowledgement, the task that is done would run again.
func TestTasksThatEndBesideOneThatNeverDoesAreAcknowledged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cfg := b.config()
	cfg.Grace, cfg.CancelGrace = time.Second, time.Second
	w, leave, stopped := b.stopBesideTwo(cfg)
	close(leave[0])
	var still *lane.RunningError
	if err := await(b, "the stop", stopped); !errors.As(err, &still) {
		t.Errorf("%v, expected *RunningError", err)
	}
	if n := b.Size("_processing:" + w.ID()); n != 1 {
		t.Errorf("%d claims stand when Run has returned, expected that of the task that still runs", n)
	}
	w.stop = func() error { return nil }
	close(leave[1])
	b.Until("the worker is gone", func() bool { return w.Status().Phase == state.Stopped })
}
