package delayed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/godelayed/delayed"
)

// TestCancelOfWhatWaitsInRedis: a task that was pending when Cancel returned never starts.
func TestCancelOfWhatWaitsInRedis(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 400
	var canceled [n]atomic.Bool
	var ran atomic.Int64
	f := b.fn("f", func(i int) {
		ran.Add(1)
		if canceled[i].Load() {
			t.Errorf("task %d runs, which was cancelled while it was pending", i)
		}
	})
	b.Must(b.q.Pause(t.Context()))
	b.work(b.config(), f)
	refs := make([]*delayed.Ref, n)
	for i := range refs {
		refs[i] = b.delay(f, i)
	}
	for i := 0; i < n; i += 2 {
		b.Must(refs[i].Cancel(t.Context()))
		canceled[i].Store(true)
	}
	b.Must(b.q.Resume(t.Context()))
	b.Idle()
	if c := b.counters(); ran.Load() != n/2 || c["canceled"] != n/2 || b.revoked() != 0 {
		t.Errorf("%d have run, %d are revoked, counters %v", ran.Load(), b.revoked(), c)
	}
}

// TestCancelOfWhatIsClaimed: a worker that gets no signals may start the task after Cancel has returned, but the next
// heartbeat ends its context, and tasks that have not started by then do not start.
func TestCancelOfWhatIsClaimed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started, ended := make(chan int, 10), make(chan error, 10)
	release := make(chan struct{})
	f := b.fn("f", func(ctx context.Context, i int) {
		started <- i
		if i == 0 {
			<-release
			return
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
	})
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch = 1, 8
	w, err := delayed.NewWorker(b.hearing(false), cfg)
	b.Must(err)
	b.Must(w.Register(f))
	b.start(w)
	refs := make([]*delayed.Ref, 5)
	for i := range refs {
		refs[i] = b.delay(f, i)
	}
	await(b, "the first runs", started)
	b.Until("the others are claimed", func() bool { return b.Size("_processing:"+w.ID()) == len(refs) })
	for _, ref := range refs[1:] {
		b.Must(ref.Cancel(t.Context()))
	}
	close(release)
	b.Idle()
	if n := len(started); n > 1 || n != len(ended) {
		t.Errorf("%d of them have started, %d have ended", n, len(ended))
	}
	for len(ended) > 0 {
		if cause := <-ended; !errors.Is(cause, delayed.ErrCanceled) {
			t.Errorf("its context ended with %v", cause)
		}
	}
	if c := b.counters(); c["canceled"] < len(refs)-2 || b.Size("_archived")+b.Size("_retry") > 0 {
		t.Errorf("counters %v", c)
	}
}
