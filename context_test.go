package delayed

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/wire"
)

type otherKey struct{}

func TestTaskContext(t *testing.T) {
	w := &engine.Worker{}
	w.Tasks, w.Cancel = context.WithCancelCause(context.WithValue(t.Context(), otherKey{}, "value"))
	c := &engine.Claim{Msg: wire.Message{Meta: wire.Meta{ID: "x"}}}
	ctx, cancel := w.ContextOf(c, 0)
	if got := fmt.Sprint(ctx); got != "delayed: task x" {
		t.Errorf("it prints as %q", got)
	}
	wrapped, stop := context.WithTimeout(context.WithValue(ctx, otherKey{}, "other"), time.Hour)
	defer stop()
	if engine.ClaimFromContext(ctx) != c || engine.ClaimFromContext(wrapped) != c ||
		engine.ClaimFromContext(t.Context()) != nil {
		t.Error("the claim is not what the context carries")
	}
	if ctx.Value(otherKey{}) != "value" || wrapped.Value(otherKey{}) != "other" {
		t.Error("other values are not handed through")
	}
	cancel(engine.ErrLost)
	<-wrapped.Done()
	if !errors.Is(context.Cause(ctx), engine.ErrLost) || !errors.Is(context.Cause(wrapped), engine.ErrLost) ||
		engine.ClaimFromContext(wrapped) != c {
		t.Errorf("causes %v and %v, expected %v", context.Cause(ctx), context.Cause(wrapped), engine.ErrLost)
	}
	ctx, cancel = w.ContextOf(&engine.Claim{}, 0)
	defer cancel(nil)
	w.Cancel(engine.ErrShutdown)
	if <-ctx.Done(); !errors.Is(context.Cause(ctx), engine.ErrShutdown) {
		t.Errorf("cause %v, expected %v", context.Cause(ctx), engine.ErrShutdown)
	}
}

// The context of a handler is part of its claim: it allocates no more than the standard library's.
func TestTaskContextAllocates(t *testing.T) {
	w, c := &engine.Worker{}, &engine.Claim{}
	w.Tasks, w.Cancel = context.WithCancelCause(t.Context())
	defer w.Cancel(nil)
	plain := testing.AllocsPerRun(1000, func() {
		_, cancel := context.WithCancelCause(w.Tasks)
		cancel(nil)
	})
	if ours := testing.AllocsPerRun(1000, func() {
		_, cancel := w.ContextOf(c, 0)
		cancel(nil)
	}); ours > plain {
		t.Errorf("%v allocations, expected at most %v", ours, plain)
	}
}

// A handler sees the claim that it runs for.
func TestHandlerContextCarriesItsClaim(t *testing.T) {
	b := newBench(t)
	ids := make(chan string, 1)
	f := b.fn("f", func(ctx context.Context) { ids <- engine.ClaimFromContext(ctx).Msg.Meta.ID })
	b.work(b.config(), f)
	if ref := b.delay(f); await(b, "the task", ids) != ref.ID() {
		t.Error("the claim is another task's")
	}
}

// What a handler has left behind learns from its context that the handler has returned.
func TestContextEndsWithItsHandler(t *testing.T) {
	b := newBench(t)
	left := make(chan context.Context, 1)
	f := b.fn("f", func(ctx context.Context) { left <- ctx })
	b.work(b.config(), f)
	b.delay(f)
	ctx := await(b, "the task", left)
	await(b, "the end of its context", ctx.Done())
}
