package semaphore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// Place is a place of a semaphore that its holder has until Release. It is safe for concurrent use.
type Place struct {
	sem    *Semaphore
	holder string
	lost   chan struct{}

	mu       sync.Mutex
	released bool
	ends     time.Time // when the lease ends, at the earliest, unless it is renewed
	renewal  *time.Timer
}

// Lost returns a channel that is closed if the lease could not be renewed in time: others may have the place now.
func (p *Place) Lost() <-chan struct{} { return p.lost }

// Release gives the place back. If Redis cannot be reached, it is free when its lease ends, and Release returns the
// error. Only the first call does something.
func (p *Place) Release() error {
	p.mu.Lock()
	done := p.released
	p.released = true
	if p.renewal != nil {
		p.renewal.Stop()
	}
	p.mu.Unlock()
	if done {
		return nil
	}
	return p.giveBack()
}

func (p *Place) giveBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), redisstore.CallTimeout)
	defer cancel()
	if err := p.sem.store.Release(ctx, p.holder); err != nil {
		return fmt.Errorf("semaphore: %w", err)
	}
	return nil
}

// keep notes that Redis has given or renewed the lease when it was asked at a time, and has it renewed. A place that
// was released meanwhile is given back again.
func (p *Place) keep(asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		go p.giveBack() //nolint:errcheck // else it ends with its lease
		return
	}
	lease := p.sem.cfg.Lease
	p.ends = asked.Add(lease)
	p.again(max(lease/3-time.Since(asked), 0)) // the answer may have come late
}

// again has the lease renewed in d, unless the place is released. p.mu is held.
func (p *Place) again(d time.Duration) {
	if !p.released {
		p.renewal = time.AfterFunc(d, p.renew)
	}
}

// renew renews the lease, or tries again soon while it lasts.
func (p *Place) renew() {
	cfg := &p.sem.cfg
	p.mu.Lock()
	left := time.Until(p.ends)
	p.mu.Unlock()
	if left <= 0 {
		p.lose()
		return
	}
	// A connection that hangs must not use up all the time that is left.
	ctx, cancel := context.WithTimeout(context.Background(), min(left, cfg.Lease/3, redisstore.CallTimeout))
	defer cancel()
	asked := time.Now()
	ok, err := p.sem.store.Acquire(ctx, p.holder, cfg.Places, cfg.Lease)
	switch {
	case err != nil:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.again(min(cfg.Lease/10, max(time.Until(p.ends), 0)))
	case ok:
		p.keep(asked)
	default:
		p.lose()
	}
}

// lose notes that others may have the place, unless it was released.
func (p *Place) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released {
		p.released = true
		close(p.lost)
	}
}
