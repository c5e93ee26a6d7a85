package delayed

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// init sets the functions that other packages need beside the public API.
func init() {
	seam.Handle = func(rdb any) (seam.Parts, error) {
		r, _ := rdb.(*Store)
		if err := r.check(); err != nil {
			return seam.Parts{}, err
		}
		return seam.Parts{
			Source: r.calls, Signals: r.signals, Registry: r.registry, Prefix: r.prefix, Where: r.where,
		}, nil
	}
	seam.Locate = func(queue any) (any, string, string) {
		q := queue.(*Queue) //nolint:errcheck // by contract
		must(q.checkMade())
		return redisstore.Unwrap(q.store.Src), strings.TrimSuffix(q.store.String(), q.name), q.name
	}
	seam.Renew = renew
	seam.List = func(ctx context.Context, queue any) ([]seam.Filed, error) {
		q := queue.(*Queue) //nolint:errcheck // by contract
		if err := q.check(ctx); err != nil {
			return nil, err
		}
		return q.store.List(ctx)
	}
	seam.Match, seam.Args = matchTask, argsOfMessage
	seam.NewStepper = func(ctx context.Context, worker any) (seam.Stepper, error) {
		return engine.NewStepper(ctx, worker.(*Worker).engine) //nolint:errcheck // by contract
	}
	seam.Functions = func(worker any) any {
		return worker.(*Worker).engine.Functions() //nolint:errcheck // by contract
	}
	seam.Tick = func(ctx context.Context, scheduler any) error {
		_, err := scheduler.(*Scheduler).enqueueDue(ctx) //nolint:errcheck // by contract
		return err
	}
	seam.Refusable = redisstore.NeedsMemory
}

// renew is seam.Renew.
func renew(queue any, name string, old []byte, call any, keep bool) (message []byte, id string, own bool, err error) {
	q := queue.(*Queue) //nolint:errcheck // by contract
	var t *Task
	if call != nil {
		t = call.(*Task) //nolint:errcheck // by contract
		if err := t.check(); err != nil {
			return nil, "", false, err
		}
		t = t.forQueue(q)
	}
	if keep {
		message, err = withArguments(name, old, t)
		return message, name, false, err
	}
	again, err := newRerun(name, old, t, q.stamp(time.Now()))
	return again.New, again.ID, again.Own, err
}

// withArguments returns a message with the arguments of t and everything else as it was.
func withArguments(name string, old []byte, t *Task) ([]byte, error) {
	msg, err := wire.Parse(old, wire.WorkerLimits)
	switch {
	case t == nil:
		return old, nil
	case err != nil:
		return nil, fmt.Errorf("%w: the message of task %s cannot be read, so its arguments cannot be replaced: %w",
			ErrArguments, wire.OneLine(name), err)
	case t.msg.Path != msg.Path:
		return nil, otherFunction(&msg, t)
	}
	msg.Extend()
	msg.Payload, msg.Py = t.msg.Payload, t.msg.Py
	msg.Meta.HasN, msg.Meta.N = t.msg.Meta.HasN, t.msg.Meta.N
	return finishMessage(nil, &msg)
}

// matchTask is seam.Match.
func matchTask(fn any, args []any, wild func(any) bool) (match func([]byte) bool, path string, err error) {
	if t, ok := fn.(*Task); ok {
		if len(args) > 0 {
			return nil, "", fmt.Errorf("%w: a *Task has its arguments: expected none beside it, found %d", ErrArguments,
				len(args))
		}
		return func(message []byte) bool { return t.sameCall(message) }, t.msg.Path, t.err
	}
	f, err := newFunction(fn)
	if err != nil {
		return nil, "", err
	}
	if !slices.ContainsFunc(args, wild) {
		if _, _, err := f.AppendPayload(wire.ByName, nil, args, noArgument); err != nil {
			return nil, "", public(err)
		}
	}
	return func(message []byte) bool {
		found, ok, err := f.ArgsOf(message)
		if !ok || err != nil {
			return false
		}
		expected := args
		if slices.ContainsFunc(args, wild) {
			if expected = slices.Clone(args); len(args) != len(found) {
				return false
			}
			for i := range expected {
				if wild(expected[i]) {
					expected[i] = found[i]
				}
			}
		}
		// Both are encoded for the same parameters, so equal arguments give equal bytes.
		a, err := f.Encode(expected)
		if err != nil {
			return false
		}
		b, err := f.Encode(found)
		return err == nil && bytes.Equal(a, b)
	}, f.Path(), nil
}

// sameCall reports whether a message is a call of the same function with the same arguments.
func (t *Task) sameCall(message []byte) bool {
	m, err := wire.Parse(message, wire.WorkerLimits)
	if err != nil || t.err != nil || m.Path != t.msg.Path || m.Meta.HasN != t.msg.Meta.HasN ||
		m.Meta.N != t.msg.Meta.N {
		return false
	}
	same := func(w wire.Message) bool {
		return bytes.Equal(m.Payload, w.Payload) &&
			bytes.Equal(nilIfEmpty(m.Args(), 0x90), nilIfEmpty(w.Args(), 0x90)) &&
			bytes.Equal(nilIfEmpty(m.Kwargs(), 0x80), nilIfEmpty(w.Kwargs(), 0x80))
	}
	legacyQueue := Queue{legacy: true}
	return same(t.msg) || same(t.forQueue(&legacyQueue).msg)
}

// nilIfEmpty returns b, or nil if b is an empty array or map, given by its first byte: extended Python tasks write what
// plain ones omit.
func nilIfEmpty(b []byte, empty byte) []byte {
	if len(b) == 1 && b[0] == empty {
		return nil
	}
	return b
}

// argsOfMessage is seam.Args.
func argsOfMessage(fn any, message []byte) (args []any, ok bool, err error) {
	f, err := newFunction(fn)
	if err != nil {
		return nil, false, err
	}
	args, ok, err = f.ArgsOf(message)
	return args, ok, public(err)
}
