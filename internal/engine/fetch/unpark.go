package fetch

import (
	"context"
	"strings"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

const (
	// maxParkedBytes bounds the messages that are read for a page of parked tasks. The part that exceeds it is the
	// last.
	maxParkedBytes = 1 << 20
	// parkedPart is how many messages are read at a time.
	parkedPart = 8
)

// Knows reports whether this worker runs a function, or forwards its tasks to the queue for Python tasks.
func (r *Receiver) Knows(path string) bool {
	return r.Registry.Lookup(path) != nil || r.Python != nil && strings.Contains(path, ":")
}

// RunnableParked returns the ids of those tasks on a page of parked ones that this worker may be able to run or
// forward. It leaves out Python tasks that this worker has parked because it has no queue to forward them to.
func (r *Receiver) RunnableParked(
	ctx context.Context, l *lane.Lane, page []redisstore.Filed,
) (ids []string, err error) {
	var ours []redisstore.Filed
	for _, t := range page {
		info := wire.ParseInfo(t.Info)
		switch to := r.Python; {
		case !r.Knows(info.Function) || info.Worker == r.Worker && info.Reason == state.ReasonPython:
		case r.Registry.Lookup(info.Function) != nil:
			ours = append(ours, t)
		case to.SameQueue(l.Store):
		case info.Reason == state.ReasonPlainPython:
			reads, err := r.readsExtended(ctx, to)
			if err != nil {
				return nil, err
			}
			if reads {
				ids = append(ids, t.ID)
			}
		default:
			ids = append(ids, t.ID)
		}
	}
	fit, err := RunnableHere(ctx, l.Store, r.Registry, ours)
	return append(ids, fit...), err
}

// RunnableHere returns the ids of those tasks on a page of parked ones that this worker can run: it knows their
// functions, and its structs have all fields of their arguments. The list of fields that is kept of a task may be
// incomplete, so the messages are read, unless a struct lacks a listed field.
func RunnableHere(
	ctx context.Context, s *redisstore.Store, r *function.Registry, page []redisstore.Filed,
) (ids []string, err error) {
	var ask []string
	for _, t := range page {
		info := wire.ParseInfo(t.Info)
		switch f := r.Lookup(info.Function); {
		case f == nil:
		case info.Reason != state.ReasonUnknownFields:
			ids = append(ids, t.ID)
		case !f.LacksAny(info.Fields):
			ask = append(ask, t.ID)
		}
	}
	for read := 0; len(ask) > 0 && read < maxParkedBytes; {
		messages, err := s.FiledMessages(ctx, ask[:min(len(ask), parkedPart)])
		if err != nil {
			return nil, err
		}
		for i, m := range messages {
			read += len(m.Bytes)
			// nil: it is gone, or too large; the claim finds out
			if m.Bytes == nil || r.Accepts(m.Bytes) {
				ids = append(ids, ask[i])
			}
		}
		ask = ask[len(messages):]
	}
	return ids, nil
}

// ForwardPython returns the ending that forwards a Python task to the queue for them. It parks the task if there is no
// such queue, or if the workers there do not read its extended message.
func (r *Receiver) ForwardPython(ctx context.Context, c *lane.Claim, now time.Time) lane.Ending {
	to := r.Python
	if to == nil || to.SameQueue(c.Lane.Store) {
		return r.Park(c, state.ReasonPython, now)
	}
	if c.Msg.Kind == wire.PyExtended {
		reads, err := r.readsExtended(ctx, to)
		if err != nil {
			return lane.Ending{Claim: c, Outcome: lifecycle.OutcomeRelease} // unknown: ask again after the next claim
		}
		if !reads {
			return r.Park(c, state.ReasonPlainPython, now)
		}
	}
	r.Events.EmitFor(c, events.Event{Kind: event.TaskForwarded})
	return lane.Ending{Claim: c, Outcome: lifecycle.OutcomeForward}
}

// readsExtended reports whether workers of a queue for Python tasks read extended messages. A queue without a form has
// never had a Python task from this package or godelayed, so it gets the extended form; but a legacy one may have
// workers of keakon's delayed, which do not read it.
func (r *Receiver) readsExtended(ctx context.Context, to *redisstore.Store) (bool, error) {
	form, err := to.Mode(ctx)
	if err == nil && form == "" && !r.Legacy {
		form, err = to.SettleMode(ctx, redisstore.ExtendedForm)
	}
	return form == redisstore.ExtendedForm, err
}
