package lane

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// progressEvery is the shortest time between two reports of one task that are sent to Redis.
const progressEvery = 100 * time.Millisecond

// Report reports the progress of a task, now or a little later. It returns an error if the task has no id, if the claim
// is lost, or if Redis did not answer this report or an earlier one.
func (c *Claim) Report(ctx context.Context, p wire.Progress) error {
	if c.Msg.Meta.ID == "" {
		return redisstore.ErrNoID
	}
	r := c.Reporter.Load()
	if r == nil {
		r = &reporter{send: c.sendProgress}
		if !c.Reporter.CompareAndSwap(nil, r) {
			r = c.Reporter.Load()
		}
	}
	return r.report(ctx, p)
}

// reporter sends the progress reports of one task. It delays those that come too fast.
type reporter struct {
	send func(context.Context, wire.Progress) error

	mu     sync.Mutex    // held while a report is sent
	last   wire.Progress // the last report
	unsent bool          // last has not been sent
	sent   time.Time     // when a report was last sent
	timer  *time.Timer   // sends last; runs while unsent
	closed bool          // the handler has returned
	err    error         // of the last delayed report
}

// report sends p now, or later if no newer report comes before.
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

// flush sends the delayed report.
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

// close discards the delayed report and refuses further ones.
func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

// sendProgress writes a report to Redis.
func (c *Claim) sendProgress(ctx context.Context, p wire.Progress) error {
	if c.Lane.Reports != nil {
		return c.Lane.Reports.SendProgress(c, p)
	}
	info := wire.Info{
		Reason: state.ReasonActive, Function: c.Msg.Path, At: c.Lane.Now(), Worker: c.Lane.Worker,
		Attempts: c.Msg.Meta.Retried, Deaths: c.Msg.Meta.Deaths, Progress: p,
	}
	if at := c.Msg.Meta.EnqueuedAt; at > 0 {
		info.Enqueued = time.UnixMilli(at)
	}
	stands, err := c.Lane.Store.Progress(ctx, c.Lane.Worker, c.Token, c.Msg.Meta.ID, info.Encode())
	if err == nil && !stands {
		err = ErrLost
	}
	return err
}

// LastReport returns the last report, or the zero value. The handler must have returned.
func (c *Claim) LastReport() (last wire.Progress) {
	if r := c.Reporter.Load(); r != nil {
		r.mu.Lock()
		last = r.last
		r.mu.Unlock()
	}
	return last
}

// EndReports makes later reports fail, because the handler has returned.
func (c *Claim) EndReports() {
	if r := c.Reporter.Load(); r != nil {
		r.close()
	}
}
