package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/wire"
)

type otherKey struct{}

func TestTaskContext(t *testing.T) {
	w := &Worker{}
	w.handlersCtx, w.cancelHandlers = context.WithCancelCause(context.WithValue(t.Context(), otherKey{}, "value"))
	c := &lane.Claim{Msg: wire.Message{Meta: wire.Meta{ID: "x"}}}
	ctx, cancel := lane.ContextOf(w.handlersCtx, c, 0)
	if got := fmt.Sprint(ctx); got != "delayed: task x" {
		t.Errorf("it prints as %q", got)
	}
	wrapped, stop := context.WithTimeout(context.WithValue(ctx, otherKey{}, "other"), time.Hour)
	defer stop()
	if lane.ClaimFromContext(ctx) != c || lane.ClaimFromContext(wrapped) != c ||
		lane.ClaimFromContext(t.Context()) != nil {
		t.Error("the claim is not what the context carries")
	}
	if ctx.Value(otherKey{}) != "value" || wrapped.Value(otherKey{}) != "other" {
		t.Error("other values are not handed through")
	}
	cancel(lane.ErrLost)
	<-wrapped.Done()
	if !errors.Is(context.Cause(ctx), lane.ErrLost) || !errors.Is(context.Cause(wrapped), lane.ErrLost) ||
		lane.ClaimFromContext(wrapped) != c {
		t.Errorf("causes %v and %v, expected %v", context.Cause(ctx), context.Cause(wrapped), lane.ErrLost)
	}
	ctx, cancel = lane.ContextOf(w.handlersCtx, &lane.Claim{}, 0)
	defer cancel(nil)
	w.cancelHandlers(lane.ErrShutdown)
	if <-ctx.Done(); !errors.Is(context.Cause(ctx), lane.ErrShutdown) {
		t.Errorf("cause %v, expected %v", context.Cause(ctx), lane.ErrShutdown)
	}
}

// The context of a handler is part of its claim: it allocates no more than the standard library's.
func TestTaskContextAllocates(t *testing.T) {
	limits.Only(t)
	w, c := &Worker{}, &lane.Claim{}
	w.handlersCtx, w.cancelHandlers = context.WithCancelCause(t.Context())
	defer w.cancelHandlers(nil)
	plain := testing.AllocsPerRun(1000, func() {
		_, cancel := context.WithCancelCause(w.handlersCtx)
		cancel(nil)
	})
	if ours := testing.AllocsPerRun(1000, func() {
		_, cancel := lane.ContextOf(w.handlersCtx, c, 0)
		cancel(nil)
	}); ours > plain {
		t.Errorf("%v allocations, expected at most %v", ours, plain)
	}
}

// A handler sees the claim that it runs for.
func TestHandlerContextCarriesItsClaim(t *testing.T) {
	b := newBench(t)
	ids := make(chan string, 1)
	f := b.fn("f", func(ctx context.Context) { ids <- lane.ClaimFromContext(ctx).Msg.Meta.ID })
	b.work(b.config(), f)
	if ref := b.delay(f); await(b, "the task", ids) != ref.ID() {
		t.Error("the claim is another task's")
	}
}

// A goroutine that a handler has started learns from the context that the handler has returned.
func TestContextEndsWithItsHandler(t *testing.T) {
	b := newBench(t)
	left := make(chan context.Context, 1)
	f := b.fn("f", func(ctx context.Context) { left <- ctx })
	b.work(b.config(), f)
	b.delay(f)
	ctx := await(b, "the task", left)
	await(b, "the end of its context", ctx.Done())
}
