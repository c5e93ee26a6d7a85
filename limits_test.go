package delayed_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// runToEnd runs a worker until it stops by itself, and returns why it did.
func (b *bench) runToEnd(cfg delayed.WorkerConfig, fns ...any) state.Reason {
	b.T.Helper()
	w, _ := b.listened(cfg, fns...)
	result := make(chan error, 1)
	go func() { result <- w.Run(b.T.Context()) }()
	if err := await(b, "the worker to stop", result); err != nil {
		b.T.Fatalf("Run: %v", err)
	}
	return w.Status().StopReason
}

func TestOnce(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func() { ran.Add(1) })
	cfg := b.config()
	cfg.Once, cfg.Prefetch = true, 10
	if reason := b.runToEnd(cfg, f); reason != "empty" {
		t.Errorf("no task: expected %q, found %q", "empty", reason)
	}
	b.delay(f)
	b.delay(f)
	for left := 1; left >= 0; left-- {
		if reason := b.runToEnd(cfg, f); reason != "max tasks" || b.Size("") != left {
			t.Errorf("expected %q and %d pending tasks, found %q and %d", "max tasks", left, reason, b.Size(""))
		}
	}
	if ran.Load() != 2 {
		t.Errorf("expected 2 tasks, found %d", ran.Load())
	}
}

func TestLimitsAreChecked(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.MaxTasks, cfg.MaxTime, cfg.MaxMemory, cfg.StopWhenEmptyFor, cfg.Rest = -1, -1, -1, -1, -1
	_, err := delayed.NewWorker(b.rdb, cfg)
	for _, name := range []string{"MaxTasks", "MaxTime", "MaxMemory", "StopWhenEmptyFor", "Rest"} {
		if !strings.Contains(errorText(err), "WorkerConfig."+name+" is -1") {
			t.Errorf("expected an error about %s, found %v", name, err)
		}
	}
}
