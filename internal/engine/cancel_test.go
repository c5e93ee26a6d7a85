package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestCancelBetweenClaims cancels a task while its worker is busy and gets no signal: the next claim notices.
func TestCancelBetweenClaims(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started, release := make(chan int, 3), make(chan struct{})
	f := b.fn("f", func(n int) { started <- n; <-release })
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife = 1, -1, time.Hour
	w, err := NewWorker(b.rdb, cfg)
	b.Must(err)
	b.Must(w.Register([]*Function{f}, nil))
	deaf(w)
	b.start(w)
	b.Until("it has looked", func() bool { return w.lanes[0].Control.Version.Load() >= 0 })
	b.delay(f, 0)
	await(b, "the first runs", started)
	for i := 1; i < 20; i++ {
		ref := b.delay(f, i)
		b.Must(ref.Cancel(t.Context()))
	}
	b.delay(f, 20)
	close(release)
	if n := await(b, "the last runs", started); n != 20 {
		t.Errorf("task %d runs, which was canceled", n)
	}
	b.Idle()
	if c := b.counters(); c["canceled"] != 19 || c["processed"] != 2 {
		t.Errorf("counters %v", c)
	}
}

// TestCancelAfterSuccess cancels a task that succeeds all the same, and then another one with the same id: the first,
// unused cancellation does not protect the second task.
func TestCancelAfterSuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started := make(chan struct{}, 2)
	var ran atomic.Int64
	f := b.fn("f", func(ctx context.Context) {
		ran.Add(1)
		started <- struct{}{}
		<-ctx.Done()
	})
	cfg := b.config()
	cfg.HeartbeatLife = time.Hour
	w, err := NewWorker(b.rdb, cfg)
	b.Must(err)
	b.Must(w.Register([]*Function{f}, nil))
	deaf(w) // the test passes on the signal itself
	b.start(w)
	l := w.lanes[0]
	b.Until("it has looked", func() bool { return l.Control.Version.Load() >= 0 })
	l.Control.Reading.Lock()
	hold := &redisstore.Hold{Reserve: true}
	delayOwn := func() *Ref {
		task := Call(f)
		task.msg.Extend()
		task.msg.Meta.ID, task.msg.Meta.Extra = "own", hold.Write(nil, "own")
		e, err := task.envelope()
		b.Must(err)
		_, err = b.q.store.Enlist(t.Context(), redisstore.Place{How: "back"},
			[]redisstore.Envelope{{ID: e.ID, Message: e.Message, Hold: hold}})
		b.Must(err)
		return &Ref{b.q, e.ID}
	}
	ref := delayOwn()
	await(b, "the first runs", started)
	b.Must(ref.Cancel(t.Context()))
	l.NoteCanceled("own")
	w.exec.CancelRevoked(l)
	b.Until("the first has succeeded", func() bool { return b.counters()["processed"] == 1 && b.Size("_locks") == 0 })
	if n := b.Size("_revoked"); n != 0 {
		t.Errorf("%d revoked", n)
	}
	b.Must(delayOwn().Cancel(t.Context()))
	l.Control.Reading.Unlock()
	b.Until("the second has ended", func() bool { return b.counters()["canceled"]+int(ran.Load()) == 2 })
	b.Idle()
	if c := b.counters(); c["canceled"] != 1 || ran.Load() != 1 || b.Size("_revoked") != 0 {
		t.Errorf("%d ran, %d revoked, counters %v", ran.Load(), b.Size("_revoked"), c)
	}
}

// TestCancelOfManyTasks revokes more ids than a worker keeps in memory.
func TestCancelOfManyTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	// Their cancellations expire before those of this test, so the latter come last.
	soon := int(redistest.Time(t, b.Conn) + time.Hour.Milliseconds())
	for i := range lane.MaxRevoked + 10 {
		b.Do("ZADD", b.Name+"_revoked", soon+i, fmt.Sprint("other", i))
	}
	var ran atomic.Int64
	started := make(chan struct{}, 1)
	f := b.fn("f", func() { ran.Add(1) })
	waits := b.fn("waits", func(ctx context.Context) error { started <- struct{}{}; <-ctx.Done(); return ctx.Err() })
	// The worker claims three at once. The first is among the ids that it reads, and it must ask for the second.
	known, gone := b.delay(f), b.delay(f)
	b.Must(known.Cancel(t.Context()))
	b.Must(gone.Cancel(t.Context()))
	b.Do("ZADD", b.Name+"_revoked", soon-1, known.ID())
	b.delay(f)
	w, err := NewWorker(b.rdb, b.config())
	b.Must(err)
	b.Must(w.Register([]*Function{f, waits}, nil))
	deaf(w)
	b.start(w)
	b.Idle()
	if ran.Load() != 1 || b.counters()["canceled"] != 2 {
		t.Errorf("%d ran, counters %v", ran.Load(), b.counters())
	}
	ref := b.delay(waits)
	await(b, "it runs", started)
	b.Must(ref.Cancel(t.Context()))
	b.Until("it has ended", func() bool { return b.counters()["canceled"] == 3 })
}

// When Redis takes back the cancellation of one task, those of others stand.
func TestForgetOneOfTwoCancellations(t *testing.T) {
	t.Parallel()
	l := &lane.Lane{}
	l.NoteRevoked([]string{"a", "b"}, true)
	l.ForgetRevoked("a")
	if l.IsRevoked("a") || !l.IsRevoked("b") {
		t.Errorf("a is revoked: %t, b: %t, expected b alone", l.IsRevoked("a"), l.IsRevoked("b"))
	}
	l.ForgetRevoked("b")
	if l.IsRevoked("b") || l.AnyRevoked.Load() {
		t.Error("a task is revoked, expected none")
	}
}
