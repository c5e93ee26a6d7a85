package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/wire"
)

// TestUntilStartWithoutRedis: the task starts although its lock cannot be freed, and frees it when it is over.
func TestUntilStartWithoutRedis(t *testing.T) {
	b := newBench(t)
	c := &Claim{lane: newLane(b.q.store, "w", false)}
	c.msg.Meta.ID, c.msg.Meta.Extra = "id", &wire.Extra{Lock: "l"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &runner{decider: &decider{log: loop.NewJournal(b.log.logger()), handlersCtx: ctx}}
	if r.unlock(c) || c.lock() == "" {
		t.Errorf("replaced, or nothing to free at the end: held %q", c.lock())
	}
	if !strings.Contains(b.log.String(), "could not be freed") {
		t.Errorf("log: %s", b.log)
	}
}
