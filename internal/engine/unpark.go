package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

const (
	// reasonFields is why a task is parked whose structs have fields that those of the worker lack.
	reasonFields = "unknown fields"

	// maxParkedBytes bounds the messages that are read of a page of parked tasks: up to here another part is read.
	maxParkedBytes = 4 << 20
	// parkedPart is how many are read at a time.
	parkedPart = 8
)

// parkedTasks are ids of parked tasks that a worker can run, as its mover has found them. Others may find them too;
// who claims first has them.
type parkedTasks struct {
	some atomic.Bool // there are any

	mu  sync.Mutex // protects the following
	ids []string
}

// set replaces them.
func (p *parkedTasks) set(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = ids
	p.some.Store(len(ids) > 0)
}

// take removes the first n, or fewer.
func (p *parkedTasks) take(n int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, len(p.ids))
	taken := p.ids[:n:n]
	p.ids = p.ids[n:]
	p.some.Store(len(p.ids) > 0)
	return taken
}

// putBack puts what was taken before all others.
func (p *parkedTasks) putBack(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = slices.Concat(ids, p.ids)
	p.some.Store(len(p.ids) > 0)
}

// claimParked claims at most n of the parked tasks that were found for this worker. They do not become pending in
// between: another worker, which does not know their functions, would claim them and park them again.
func (l *lane) claimParked(ctx context.Context, n int) ([]*Claim, error) {
	ids := l.parked.take(redisstore.MaxUnparked)
	if len(ids) == 0 {
		return nil, nil
	}
	claims, looked, err := l.claim(ctx, redisstore.ClaimCall{Most: n, Parked: ids}, nil)
	if err != nil {
		looked = 0
	}
	l.parked.putBack(ids[looked:])
	return claims, err
}

// knows says whether this worker runs a function, or hands its tasks on.
func (w *Worker) knows(path string) bool {
	return w.registry.Lookup(path) != nil || w.pythonStore != nil && strings.Contains(path, ":")
}

// runnable returns the ids of those parked tasks of a page that this worker can run, or hand on, as far as what is
// known of them tells. A task that it has parked itself is not taken back before what was in the way has changed.
func (w *Worker) runnable(ctx context.Context, l *lane, page []redisstore.Filed) (ids []string, err error) {
	var ours []redisstore.Filed
	for _, t := range page {
		info := wire.ParseInfo(t.Info)
		switch to := w.pythonStore; {
		case !w.knows(info.Function) || info.Worker == w.id && info.Reason == parkedPython:
		case w.registry.Lookup(info.Function) != nil:
			ours = append(ours, t)
		case to.SameQueue(l.store):
		case info.Reason == parkedPlain:
			reads, err := w.readsExtended(ctx, to)
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
	fit, err := runnable(ctx, l.store, &w.registry, ours)
	return append(ids, fit...), err
}

// claimParked takes at most room parked tasks of one queue, and returns how many of them are to run here.
func (f *fetcher) claimParked(ctx context.Context, i, room int) (kept int) {
	fl := flight{lane: i, room: room, parked: true}
	f.exec.expect(room)
	fl.claims, fl.err = f.lanes[i].claimParked(context.WithoutCancel(ctx), room)
	if !f.lanes[i].parked.some.Load() {
		f.onDue() // there may be more of them
	}
	kept = f.conclude(ctx, fl)
	if len(fl.claims) > 0 {
		queue, function := f.lanes[i].store.Name, fl.claims[0].msg.Path
		f.lines.Log(loop.LineKey{Queue: queue, Reason: "unparked", Function: function}, func(n int) {
			f.log.With("queue", queue).With("function",
				function).Counted(n).Info("parked tasks are claimed: this worker can run them")
		})
	}
	return kept
}

// unknownFieldsText says which fields a parked task waits for.
func unknownFieldsText(path string, fields []string) string {
	return fmt.Sprintf("delayed: %s: the structs of this worker lack fields of the task (argument.field): %s; run a "+
		"worker whose structs have them",
		path, strings.Join(fields, ", "))
}

// runnable returns the ids of those parked tasks of a page that this worker can run: it knows their functions, and
// where they are parked for fields, its structs have all. What is told of a task may leave fields out, so their
// messages are read, unless it lacks one that is told.
func runnable(
	ctx context.Context, s *redisstore.Store, r *function.Registry, page []redisstore.Filed,
) (ids []string, err error) {
	var ask []string
	for _, t := range page {
		info := wire.ParseInfo(t.Info)
		switch f := r.Lookup(info.Function); {
		case f == nil:
		case info.Reason != reasonFields:
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
