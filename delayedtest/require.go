package delayedtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/seam"
)

// wildcard stands for arguments in expectations.
type wildcard string

func (w wildcard) String() string { return string(w) }

const (
	// Any equals every argument: RequireEnqueued(t, q, mail.Welcome, delayedtest.Any, "en").
	Any wildcard = "Any"
	// AnyArgs is given as the only argument, and equals all arguments of a call: RefuteEnqueued(t, q, mail.Welcome,
	// delayedtest.AnyArgs).
	AnyArgs wildcard = "AnyArgs"
)

// RequireEnqueued ends the test unless a call of fn with args is pending, scheduled, gathered in a group or waiting for
// a retry on q. fn is what Delay takes, or a *delayed.Task, made by NewPyTask for instance, without args. Arguments are
// compared as they would reach the function: 42 equals int64(42) for a parameter that takes integers. They may be Any
// and AnyArgs. It returns the first such task.
func RequireEnqueued(t testing.TB, q *delayed.Queue, fn any, args ...any) Task {
	t.Helper()
	found, e := findCalls(t, q, fn, args)
	if len(found) == 0 {
		t.Fatalf("delayedtest: expected on queue %q\n    %s\n%s", q.Name(), e.call, e.instead())
		return Task{}
	}
	return found[0]
}

// RequireCount ends the test unless exactly n calls of fn with args are pending, scheduled, gathered in a group or
// waiting for a retry on q; see RequireEnqueued. It returns them.
func RequireCount(t testing.TB, q *delayed.Queue, n int, fn any, args ...any) []Task {
	t.Helper()
	found, e := findCalls(t, q, fn, args)
	if len(found) != n {
		t.Fatalf("delayedtest: expected on queue %q %d times, found %d times\n    %s\n%s", q.Name(), n, len(found),
			e.call, e.instead())
		return nil
	}
	return found
}

// RefuteEnqueued ends the test if a call of fn with args is pending, scheduled, gathered in a group or waiting for a
// retry on q; see RequireEnqueued.
func RefuteEnqueued(t testing.TB, q *delayed.Queue, fn any, args ...any) {
	t.Helper()
	found, e := findCalls(t, q, fn, args)
	if len(found) > 0 {
		t.Fatalf("delayedtest: not expected on queue %q, found %d times\n    %s\n%s", q.Name(), len(found), e.call,
			e.instead())
	}
}

// RequireEmpty ends the test if anything is pending, scheduled, gathered in a group or waiting for a retry on q.
func RequireEmpty(t testing.TB, q *delayed.Queue) {
	t.Helper()
	all, err := list(t.Context(), q, nil)
	if err != nil {
		t.Fatalf("delayedtest: %v", err)
	}
	if e := (&expectation{waiting: waiting(all), now: nowOf(q)}); len(e.waiting) > 0 {
		t.Fatalf("delayedtest: expected nothing on queue %q\n%s", q.Name(), e.instead())
	}
}

// expectation is the expected call, and the tasks found instead.
type expectation struct {
	call    string
	waiting []Task
	now     time.Time
}

// findCalls returns the tasks that are calls of fn with args.
func findCalls(t testing.TB, q *delayed.Queue, fn any, args []any) (found []Task, e *expectation) {
	t.Helper()
	anyArgs := len(args) == 1 && args[0] == AnyArgs
	wanted := args
	if anyArgs {
		wanted = []any{Any} // Match does not check the number of arguments
	}
	match, path, err := seam.Match(fn, wanted, func(a any) bool { return a == Any })
	if err != nil {
		t.Fatalf("delayedtest: this call cannot be enqueued: %v", err)
		return nil, nil
	}
	filed, err := seam.List(t.Context(), direct(q))
	if err != nil {
		t.Fatalf("delayedtest: reading queue %q: %v", q.Name(), err)
		return nil, nil
	}
	typed := []any{fn}
	if _, ok := fn.(*delayed.Task); ok {
		typed = nil
	}
	e = &expectation{call: callText(path, args), now: nowOf(q)}
	for i := range filed {
		task, err := taskOf(q.Name(), &filed[i], typed)
		if err != nil {
			t.Fatalf("delayedtest: %v", err)
		}
		if !isWaiting(task.State) {
			continue
		}
		e.waiting = append(e.waiting, task)
		calls := match(filed[i].Message)
		if anyArgs {
			_, calls, _ = seam.Args(fn, filed[i].Message)
		}
		if calls {
			found = append(found, task)
		}
	}
	return found, e
}

// isWaiting reports whether a task in that state is still to run.
func isWaiting(state string) bool {
	switch state {
	case "pending", "scheduled", "retry", "aggregating":
		return true
	}
	return false
}

func waiting(all []Task) (tasks []Task) {
	for _, t := range all {
		if isWaiting(t.State) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// nowOf returns the time by which tasks of q become due: that of its kit, or of this process for a queue on another
// server.
func nowOf(q *delayed.Queue) time.Time {
	src, _, _ := seam.Locate(q)
	if k, ok := src.(*kit); ok {
		return k.Now()
	}
	return time.Now()
}

// mostShown bounds the tasks that a message shows.
const mostShown = 30

// instead describes the tasks found instead.
func (e *expectation) instead() string {
	if len(e.waiting) == 0 {
		return "nothing is enqueued"
	}
	return "enqueued are\n" + tableOf(e.waiting, e.now)
}

// tableOf shows tasks, one a line.
func tableOf(tasks []Task, now time.Time) string {
	var b strings.Builder
	for i := range tasks {
		if i == mostShown {
			fmt.Fprintf(&b, "    … and %d more\n", len(tasks)-i)
			break
		}
		fmt.Fprintf(&b, "    %s\t%s\n", tasks[i], tasks[i].state(now))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
