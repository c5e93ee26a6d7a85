package lane

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godelayed/delayed/internal/redisstore"
)

// parkedTasks are the ids of parked tasks that the mover has found for this worker. Other workers may find the same
// ones; the first to claim a task gets it.
type parkedTasks struct {
	Some atomic.Bool // ids is not empty

	mu  sync.Mutex // protects the following
	ids []string
}

// Set replaces the ids.
func (p *parkedTasks) Set(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = ids
	p.Some.Store(len(ids) > 0)
}

// Take removes and returns the first n ids, or fewer.
func (p *parkedTasks) Take(n int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, len(p.ids))
	taken := p.ids[:n:n]
	p.ids = p.ids[n:]
	p.Some.Store(len(p.ids) > 0)
	return taken
}

// putBack puts ids in front of the others.
func (p *parkedTasks) putBack(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = slices.Concat(ids, p.ids)
	p.Some.Store(len(p.ids) > 0)
}

// ClaimParked claims at most n of the parked tasks that the mover has found. They do not become pending in between: a
// worker that does not know their functions would claim and park them again.
func (l *Lane) ClaimParked(ctx context.Context, n int) ([]*Claim, error) {
	ids := l.Parked.Take(redisstore.MaxUnparked)
	if len(ids) == 0 {
		return nil, nil
	}
	claims, looked, err := l.Claim(ctx, redisstore.ClaimCall{Most: n, Parked: ids}, nil)
	if err != nil {
		looked = 0
	}
	l.Parked.putBack(ids[looked:])
	return claims, err
}
