package delayed

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// seldomMost bounds the different things that are told apart to log each of them seldom.
const seldomMost = 1000

// seldom says, for each of several things, whether to log it now. All beyond the first seldomMost are taken for one.
type seldom struct {
	mu    sync.Mutex
	known map[string]*complaints
}

// due says whether to log what now, and how many times nothing was logged since.
func (s *seldom) due(what string) (skipped int, ok bool) {
	s.mu.Lock()
	if len(s.known) >= seldomMost && s.known[what] == nil {
		what = ""
	}
	c := s.known[what]
	if c == nil {
		if s.known == nil {
			s.known = map[string]*complaints{}
		}
		c = &complaints{}
		s.known[what] = c
	}
	s.mu.Unlock()
	return c.due(time.Now())
}

// maxUnparked bounds the parked tasks that one script looks at.
const maxUnparked = 200

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
func (l *lane) claimParked(ctx context.Context, n int) ([]*claim, error) {
	ids := l.parked.take(maxUnparked)
	if len(ids) == 0 {
		return nil, nil
	}
	claims, looked, err := l.claim(ctx, claimCall{most: n, parked: ids}, nil)
	if err != nil {
		looked = 0
	}
	l.parked.putBack(ids[looked:])
	return claims, err
}

// knows says whether this worker runs a function, or hands its tasks on.
func (w *Worker) knows(path string) bool {
	return w.registry.lookup(path) != nil || w.pythonStore != nil && strings.Contains(path, ":")
}

// runs says whether this worker can run a parked task, or hand it on, as far as what is known of it tells. A task
// that it has parked itself is not taken back before what was in the way has changed.
func (w *Worker) runs(ctx context.Context, l *lane, t filed) (bool, error) {
	info := parseInfo(t.info)
	switch to := w.pythonStore; {
	case !w.knows(info.function) || info.worker == w.id && info.reason == parkedPython:
		return false, nil
	case w.registry.lookup(info.function) != nil:
		return true, nil
	case to.keys.list == l.store.keys.list:
		return false, nil
	case info.reason == parkedPlain:
		form, err := to.mode(ctx)
		return form != Plain.String(), err
	}
	return true, nil
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
		queue, function := f.lanes[i].store.name, fl.claims[0].msg.Path
		if _, ok := f.unparks.due(queue + " " + function); ok {
			f.log.with("queue", queue).with("function", function).WithField("tasks", len(fl.claims)).Info("parked tasks were claimed: this worker can run them")
		}
	}
	return kept
}
