package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/wire"
)

// TestUntilStartWithoutRedis: the task starts although its lock cannot be freed, and frees it when it is over.
func TestUntilStartWithoutRedis(t *testing.T) {
	b := newBench(t)
	c := &lane.Claim{Lane: lane.New(b.q.store, "w", false)}
	c.Msg.Meta.ID, c.Msg.Meta.Extra = "id", &wire.Extra{Lock: "l"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &exec.Runner{Decider: &finish.Decider{Log: loop.NewJournal(b.log.logger()), HandlersCtx: ctx}}
	if r.Unlock(c) || c.Lock() == "" {
		t.Errorf("replaced, or nothing to free at the end: held %q", c.Lock())
	}
	if !strings.Contains(b.log.String(), "could not be freed") {
		t.Errorf("log: %s", b.log)
	}
}
