package delayedtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/seam"
)

// deepest bounds how deep inline calls may be nested.
const deepest = 100

// inliner runs the tasks of a queue as soon as they are enqueued.
type inliner struct {
	t   testing.TB
	s   seam.Stepper
	fns []any

	mu     sync.Mutex // protects the following
	depth  int
	gaveUp bool // calls were nested too deep
}

// Inline makes Delay on q run the function at once, in the goroutine of the caller, before it returns, until the test
// ends: for tests of code that expects the effects of what it delays. fns are the functions, or receivers whose methods
// are called. What a function delays runs within it. Tasks delayed with In and At wait for Drain or Advance as before,
// as does what fails and is tried again.
//
// Delay returns the reference of the task as always, never an error of the function: that fails the test. When several
// goroutines delay at a time, one of them may run the task of another, which then returns early.
func Inline(t testing.TB, q *delayed.Queue, fns ...any) {
	t.Helper()
	k := kitOf(t, q)
	ctx := context.WithoutCancel(t.Context())
	s, err := k.stepper(ctx, t, RunConfig{Queues: []*delayed.Queue{q}, Funcs: fns})
	if err != nil {
		t.Fatalf("delayedtest: Inline: %v", err)
	}
	_, prefix, name := seam.Locate(q)
	in := &inliner{t: t, s: s, fns: fns}
	k.mu.Lock()
	old := k.inline[prefix+name]
	k.inline[prefix+name] = in
	k.mu.Unlock()
	t.Cleanup(func() {
		k.mu.Lock()
		k.inline[prefix+name] = old
		k.mu.Unlock()
		if err := k.close(s); err != nil {
			t.Errorf("delayedtest: Inline: %v", err)
		}
	})
	in.runPending() // what is pending already
}

// Enqueued implements seam.Listener.
func (k *kit) Enqueued(list string) {
	k.mu.Lock()
	in := k.inline[list]
	k.mu.Unlock()
	if in != nil {
		in.runPending()
	}
}

// runPending runs the pending tasks.
func (in *inliner) runPending() {
	if !in.enter() {
		return
	}
	defer in.exit()
	for in.goesOn() {
		ran, _, err := in.s.Step(context.WithoutCancel(in.t.Context()))
		if err != nil {
			in.t.Errorf("delayedtest: Inline: %v", err)
			return
		}
		if ran == nil {
			return
		}
		if problem := in.problem(ran); problem != "" {
			in.t.Errorf("delayedtest: Inline: %s", problem)
		}
	}
}

// enter goes one step deeper, unless that is too deep.
func (in *inliner) enter() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.gaveUp {
		return false
	}
	if in.depth == deepest {
		in.gaveUp = true
		in.t.Errorf("delayedtest: Inline: tasks delay tasks %d deep: a chain without end? "+
			"From now on they stay pending", deepest)
		return false
	}
	in.depth++
	return true
}

func (in *inliner) exit() {
	in.mu.Lock()
	in.depth--
	in.mu.Unlock()
}

func (in *inliner) goesOn() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return !in.gaveUp
}

// problem returns what is wrong with the outcome of a task, "" for nothing.
func (in *inliner) problem(ran *seam.Run) string {
	c := callOf(ran, time.Time{}, in.fns)
	switch {
	case c.Failed:
		return fmt.Sprintf("%s failed (%s): %s", c.Task, c.Outcome, firstLine(c.Err.Error()))
	case ran.Outcome == "parked":
		return fmt.Sprintf("%s is parked: give its function to Inline", c.Task)
	case ran.Outcome == "archived":
		return fmt.Sprintf("%s is archived: it cannot run", c.Task)
	}
	return ""
}
