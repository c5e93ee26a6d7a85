package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godelayed/delayed/internal/redisstore"
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
