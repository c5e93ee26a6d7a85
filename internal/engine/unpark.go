package engine

import (
	"context"
	"strings"

	"github.com/godelayed/delayed/internal/function"
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

// knows reports whether this worker runs a function, or forwards its tasks to the queue for Python tasks.
func (r *receiver) knows(path string) bool {
	return r.registry.Lookup(path) != nil || r.python != nil && strings.Contains(path, ":")
}

// runnableParked returns the ids of those tasks on a page of parked ones that this worker may be able to run or
// forward. It leaves out Python tasks that this worker has parked because it has no queue to forward them to.
func (r *receiver) runnableParked(ctx context.Context, l *lane, page []redisstore.Filed) (ids []string, err error) {
	var ours []redisstore.Filed
	for _, t := range page {
		info := wire.ParseInfo(t.Info)
		switch to := r.python; {
		case !r.knows(info.Function) || info.Worker == r.worker && info.Reason == state.ReasonPython:
		case r.registry.Lookup(info.Function) != nil:
			ours = append(ours, t)
		case to.SameQueue(l.store):
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
	fit, err := runnableHere(ctx, l.store, r.registry, ours)
	return append(ids, fit...), err
}

// runnableHere returns the ids of those tasks on a page of parked ones that this worker can run: it knows their
// functions, and its structs have all fields of their arguments. The list of fields that is kept of a task may be
// incomplete, so the messages are read, unless a struct lacks a listed field.
func runnableHere(
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
