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
	c := &Claim{Lane: NewLane(b.q.store, "w", false)}
	c.Msg.Meta.ID, c.Msg.Meta.Extra = "id", &wire.Extra{Lock: "l"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	worker := &Worker{Log: loop.NewJournal(b.log.logger()), Tasks: ctx}
	if worker.Unlock(c) || !c.Held() {
		t.Errorf("replaced, or nothing to free at the end: held %v", c.Held())
	}
	if !strings.Contains(b.log.String(), "could not be freed") {
		t.Errorf("log: %s", b.log)
	}
}
