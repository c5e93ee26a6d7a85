package engine

import (
	"context"
	"strings"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

const (
	// maxParkedBytes bounds the messages that are read of a page of parked tasks: up to here another part is read.
	maxParkedBytes = 4 << 20
	// parkedPart is how many are read at a time.
	parkedPart = 8
)

// knows says whether this worker runs a function, or hands its tasks on.
func (r *receiver) knows(path string) bool {
	return r.registry.Lookup(path) != nil || r.python != nil && strings.Contains(path, ":")
}

// runnableParked returns the ids of those parked tasks of a page that this worker can run, or hand on, as far as what is
// known of them tells. A task that it has parked itself is not taken back before what was in the way has changed.
func (r *receiver) runnableParked(ctx context.Context, l *lane, page []redisstore.Filed) (ids []string, err error) {
	var ours []redisstore.Filed
	for _, t := range page {
		info := wire.ParseInfo(t.Info)
		switch to := r.python; {
		case !r.knows(info.Function) || info.Worker == r.worker && info.Reason == parkedPython:
		case r.registry.Lookup(info.Function) != nil:
			ours = append(ours, t)
		case to.SameQueue(l.store):
		case info.Reason == parkedPlain:
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

// runnableHere returns the ids of those parked tasks of a page that this worker can run: it knows their functions, and
// where they are parked for fields, its structs have all. What is told of a task may leave fields out, so their
// messages are read, unless it lacks one that is told.
func runnableHere(
	ctx context.Context, s *redisstore.Store, r *function.Registry, page []redisstore.Filed,
) (ids []string, err error) {
	var ask []string
	for _, t := range page {
		info := wire.ParseInfo(t.Info)
		switch f := r.Lookup(info.Function); {
		case f == nil:
		case info.Reason != parkedFields:
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
			// nil: it is gone or too large, which the release or the next claim sees to
			if m.Bytes == nil || r.Accepts(m.Bytes) {
				ids = append(ids, ask[i])
			}
		}
		ask = ask[len(messages):]
	}
	return ids, nil
}
