package delayedtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// Task is a task of a queue. Fields that do not apply are zero.
type Task struct {
	Queue string
	// State is pending, active, aggregating, scheduled, retry, parked, archived, completed or canceled. An aggregating
	// task waits in a group. A canceled one was pending when it was canceled, and no worker has claimed it since.
	State string
	ID    string
	// Func is the path of the function, "" if the message cannot be read.
	Func string
	// Args are the arguments. If the function is known, they have the types of its parameters, and those of a variadic
	// function stand one by one; else they are decoded into empty interfaces, integers as int64 for instance.
	Args []any
	// Kwargs are the keyword arguments of a Python function.
	Kwargs map[string]any
	// Due is when a scheduled or retrying task becomes pending, or a gathered one at the latest.
	Due time.Time
	// Enqueued is when the task was enqueued, by the time of Now.
	Enqueued time.Time
	// MaxRetry is the value of the option of that name; nil when neither call nor function have it.
	MaxRetry *int
	// Retried is how often the task was tried again.
	Retried int
	// Reason and Error are why the task was archived or parked, or failed last.
	Reason, Error string

	// The values of the options of these names; Lock is the name of the lock that a unique task holds.
	Timeout, Retention, KeepResult time.Duration
	Deadline, Expiry               time.Time
	Group, Lock                    string
	Headers                        map[string]string
}

// Tasks returns all tasks of q: pending ones in the order in which they will run, then active, gathered, scheduled,
// retrying, parked, archived and completed ones by time. The arguments of calls of fns are decoded by their parameters.
// q may be any queue, also one on a real Redis that nobody else uses.
func Tasks(t testing.TB, q *delayed.Queue, fns ...any) []Task {
	t.Helper()
	tasks, err := list(t.Context(), q, fns)
	if err != nil {
		t.Fatalf("delayedtest: %v", err)
	}
	return tasks
}

func list(ctx context.Context, q *delayed.Queue, fns []any) ([]Task, error) {
	filed, err := seam.List(context.WithoutCancel(ctx), direct(q))
	if err != nil {
		return nil, fmt.Errorf("reading queue %q: %w", q.Name(), err)
	}
	tasks := make([]Task, len(filed))
	for i := range filed {
		if tasks[i], err = taskOf(q.Name(), &filed[i], fns); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

// limits are no less than those of workers.
var limits = wire.Limits{
	Bytes: 2 * wire.Default.Bytes, Elems: 2 * wire.Default.Elems, Depth: wire.Default.Depth, Path: wire.Default.Path,
}

func taskOf(queue string, f *seam.Filed, fns []any) (Task, error) {
	t := Task{Queue: queue, State: f.State, ID: f.ID}
	if isWaiting(f.State) {
		t.Due = f.At
	}
	if info, _, err := wire.DecodeAny(f.Info); err == nil {
		fields, _ := info.(map[string]any)
		t.Reason, _ = fields["reason"].(string)
		t.Error, _ = fields["error"].(string)
		t.Func, _ = fields["function"].(string)
	}
	m, err := wire.Parse(f.Message, limits)
	if err != nil {
		return t, nil //nolint:nilerr // an undecodable task is shown as such
	}
	if t.ID == "" {
		t.ID = m.Meta.ID // of a task that has just run
	}
	t.Func, t.Retried = m.Path, m.Meta.Retried
	t.Enqueued = instant(m.Meta.EnqueuedAt)
	if m.Meta.HasMaxRetry {
		t.MaxRetry = &m.Meta.MaxRetry
	}
	if x := m.Meta.Extra; x != nil {
		t.Timeout, t.Retention, t.KeepResult = millis(x.Timeout), millis(x.Retention), millis(x.KeepResult)
		t.Deadline, t.Expiry = instant(x.Deadline), instant(x.Expiry)
		t.Group, t.Lock, t.Headers = x.Group, x.Lock, x.Headers
	}
	for _, fn := range fns {
		args, ok, err := seam.Args(fn, f.Message)
		if ok && err == nil {
			t.Args = args
			return t, nil
		}
		if err != nil && !ok {
			return t, err // no function
		}
	}
	t.Args = untyped(&m)
	if m.Python() {
		kwargs, _ := anyOf(m.Kwargs()).(map[string]any)
		t.Kwargs = kwargs
	}
	return t, nil
}

// untyped decodes arguments without knowing their parameters.
func untyped(m *wire.Message) []any {
	b := m.Payload
	if m.Python() {
		b = m.Args()
	}
	if len(b) == 0 {
		return nil
	}
	v := anyOf(b)
	if list, ok := v.([]any); ok {
		return list
	}
	if v == nil && m.Python() {
		return nil
	}
	return []any{v}
}

func anyOf(b []byte) any {
	v, _, err := wire.DecodeAny(b)
	if err != nil {
		return nil
	}
	return v
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// longest is how much of one argument is shown, in bytes.
const longest = 200

// String returns the call as it is written in code, such as example.com/mail.Welcome(42, "en").
func (t Task) String() string { return callText(t.Func, t.Args) }

func callText(path string, args []any) string {
	if path == "" {
		return "(no message of delayed)"
	}
	shown := make([]string, len(args))
	for i, a := range args {
		var text string
		switch a := a.(type) {
		case wildcard:
			text = a.String()
		case string:
			text = fmt.Sprintf("%q", a)
		case fmt.Stringer, error:
			text = fmt.Sprint(a)
		default:
			text = fmt.Sprintf("%+v", a)
		}
		if len(text) > longest {
			text = text[:longest] + "…"
		}
		shown[i] = text
	}
	return path + "(" + strings.Join(shown, ", ") + ")"
}

// state returns where a task is, for messages.
func (t Task) state(now time.Time) string {
	text := t.State
	switch {
	case t.Due.IsZero():
	case t.Due.After(now):
		text += ", due in " + t.Due.Sub(now).String()
	default:
		text += ", due now"
	}
	if t.Error != "" {
		text += ": " + firstLine(t.Error)
	} else if t.Reason != "" {
		text += ": " + t.Reason
	}
	return text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
