package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// progressEvery is the shortest time between two reports of one task that reach Redis.
const progressEvery = 100 * time.Millisecond

// Report reports how far the task is, now or a little later. The error says that the task carries no id, that it is
// another worker's by now, or that Redis could not be told.
func (c *Claim) Report(ctx context.Context, p wire.Progress) error {
	if c.msg.Meta.ID == "" {
		return redisstore.ErrNoID
	}
	r := c.reporter.Load()
	if r == nil {
		r = &reporter{send: c.sendProgress}
		if !c.reporter.CompareAndSwap(nil, r) {
			r = c.reporter.Load()
		}
	}
	return r.report(ctx, p)
}

// reporter sends the reports of one task, some of them later.
type reporter struct {
	send func(context.Context, wire.Progress) error

	mu     sync.Mutex // held while a report is sent
	last   wire.Progress
	unsent bool        // last has not been sent
	sent   time.Time   // when one was
	timer  *time.Timer // runs while late
	closed bool        // the handler has returned
	err    error       // of a report that was sent later
}

// report sends a report, or sees to it that it is sent unless a newer one is.
func (r *reporter) report(ctx context.Context, p wire.Progress) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("delayed: Progress after the handler has returned")
	}
	r.last = p
	wait := progressEvery - time.Since(r.sent)
	if wait <= 0 {
		r.err = nil
		return r.sendLocked(ctx)
	}
	if !r.unsent {
		r.unsent = true
		r.timer = time.AfterFunc(wait, r.flush)
	}
	err := r.err
	r.err = nil
	return err
}

// flush sends what waits.
func (r *reporter) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsent && !r.closed {
		r.err = r.sendLocked(context.Background())
	}
}

func (r *reporter) sendLocked(ctx context.Context) error {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.unsent = false
	err := r.send(ctx, r.last)
	r.sent = time.Now()
	return err
}

// close ends reporting. Nothing is sent after it.
func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

// sendProgress tells Redis.
func (c *Claim) sendProgress(ctx context.Context, p wire.Progress) error {
	info := wire.Info{
		Reason: "active", Function: c.msg.Path, At: c.lane.now(), Worker: c.lane.worker,
		Attempts: c.msg.Meta.Retried, Deaths: c.msg.Meta.Deaths, Progress: p,
	}
	if at := c.msg.Meta.EnqueuedAt; at > 0 {
		info.Enqueued = time.UnixMilli(at)
	}
	stands, err := c.lane.store.Progress(ctx, c.lane.worker, c.token, c.msg.Meta.ID, info.Encode())
	if err == nil && !stands {
		err = ErrLost
	}
	return err
}

// lastReport returns the last report, or nothing. The handler has returned.
func (c *Claim) lastReport() (last wire.Progress) {
	if r := c.reporter.Load(); r != nil {
		r.mu.Lock()
		last = r.last
		r.mu.Unlock()
	}
	return last
}

// endReports ends reporting for a handler that has returned.
func (c *Claim) endReports() {
	if r := c.reporter.Load(); r != nil {
		r.close()
	}
}
