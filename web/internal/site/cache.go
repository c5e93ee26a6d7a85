package site

import (
	"context"
	"sync"
	"time"
)

// cache keeps what was read for a moment, so that many open pages ask Redis as often as one.
type cache struct {
	Life time.Duration
	mu   sync.Mutex
	kept map[string]*kept
}

type kept struct {
	done  chan struct{} // closed when value and err are there
	ends  time.Time
	value any
	err   error
}

const maxKept = 1000

// Read returns what load returned for a key at most c.life ago. Only one call loads at a time; the others wait for it.
// What load returns must not be changed, and must not depend on who asks.
func Read[T any](ctx context.Context, c *cache, key string, load func(context.Context) (T, error)) (T, error) {
	for {
		now := time.Now()
		c.mu.Lock()
		k := c.kept[key]
		if k == nil || now.After(k.ends) && closed(k.done) {
			k = &kept{done: make(chan struct{}), ends: now.Add(c.Life)}
			if c.kept == nil || len(c.kept) >= maxKept {
				c.kept = map[string]*kept{}
			}
			c.kept[key] = k
			c.mu.Unlock()
			func() {
				defer close(k.done)
				k.value, k.err = load(ctx)
			}()
			v, _ := k.value.(T)
			return v, k.err
		}
		c.mu.Unlock()
		select {
		case <-k.done:
		case <-ctx.Done():
			var zero T
			return zero, ctx.Err()
		}
		if k.err == nil {
			v, _ := k.value.(T)
			return v, nil
		}
		// Whoever loaded it may have gone away meanwhile. An error is not kept for others.
		c.mu.Lock()
		if c.kept[key] == k {
			delete(c.kept, key)
		}
		c.mu.Unlock()
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
