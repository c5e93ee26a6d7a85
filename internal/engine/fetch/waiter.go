package fetch

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// WakeUp says that there may be tasks.
type WakeUp struct {
	Lane int // index; -1: none
	Held int // 1: the waiter has taken a notification from the queue's notify list
	// Suspects: the pending tasks are suspects.
	Suspects bool
	Due      bool    // there may be no tasks, but something is due earlier than the mover knows
	Waiter   *Waiter // the waiter that has stopped blocking; nil if the mover has sent this
	Err      error
}

// Waiter blocks on the notify lists of one slot, on a connection of its own.
type Waiter struct {
	Link    redisstore.Link
	Lanes   []int // indexes
	Stores  []*redisstore.Store
	Wakes   chan<- WakeUp
	BlockOn chan redisstore.WaitOn // from the fetcher
	Limit   time.Duration          // of one BLPOP; 0 is redisstore.WaitTime
	// owned by the fetcher
	Blocking       bool         // the fetcher has sent what to block on, and no wake-up has come back
	blocksOn       []int        // lanes on whose notify lists it blocks
	renewed        bool         // the fetcher has ended its wait, because it should block on more lanes
	NoClaimsBefore time.Time    // no claims on queues of this slot before; its server does not answer
	backoff        loop.Backoff // between failed waits
	refusedAt      time.Time    // when Redis last answered a wait with an error
	claims         loop.Backoff // between failed claims
}

// WaitOn returns what to block on and stores the lanes in blocksOn: tasks of lanes in the given order, without those
// that rest; then their suspects, if the worker takes any; then what becomes due on all lanes.
func (w *Waiter) WaitOn(order []int, rests func(lane int) bool, suspects bool, worker string) redisstore.WaitOn {
	on := redisstore.WaitOn{Tasks: make([]*redisstore.Store, 0, len(w.Lanes)), Due: w.Stores, Worker: worker}
	w.blocksOn, w.renewed = w.blocksOn[:0], false
	for _, i := range order {
		if j := slices.Index(w.Lanes, i); j >= 0 && !rests(i) {
			on.Tasks = append(on.Tasks, w.Stores[j])
			w.blocksOn = append(w.blocksOn, i)
		}
	}
	if suspects {
		on.Suspects = on.Tasks
	}
	return on
}

// Renew ends a wait that leaves out a lane which does not rest any more. Otherwise tasks of that lane would wait until
// BLPOP times out.
func (w *Waiter) Renew(ctx context.Context, rests func(lane int) bool, worker string) error {
	if w.renewed || !slices.ContainsFunc(w.Lanes,
		func(i int) bool { return !rests(i) && !slices.Contains(w.blocksOn, i) }) {
		return nil
	}
	err := w.Stores[0].Rewait(ctx, worker, 2*redisstore.WaitTime)
	w.renewed = err == nil
	return err
}

// Run blocks on what the fetcher sends, until ctx ends.
func (w *Waiter) Run(ctx context.Context) {
	defer w.Link.HangUp()
	for {
		var on redisstore.WaitOn
		select {
		case on = <-w.BlockOn:
		case <-ctx.Done():
			return
		}
		woken, err := w.Wait(ctx, on)
		select {
		case w.Wakes <- w.wakeUpFor(woken, err):
		case <-ctx.Done():
			return
		}
	}
}

// Wait blocks once.
func (w *Waiter) Wait(ctx context.Context, on redisstore.WaitOn) (redisstore.Woken, error) {
	if _, err := w.Link.Open(ctx); err != nil {
		return redisstore.Woken{}, err
	}
	limit, start := cmp.Or(w.Limit, redisstore.WaitTime), time.Now()
	woken, err := redisstore.Wait(ctx, &w.Link, on, limit)
	if err == nil {
		return woken, nil
	}
	w.Link.HangUp()
	if took := time.Since(start); errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil &&
		took < limit+redisstore.CallTimeout/2 {
		// The connection has a timeout of its own, which is shorter: use shorter waits from now on. If a notification
		// was lost with the connection, the mover finds the task.
		w.Limit = max(took/2, redisstore.ShortestWait)
		return redisstore.Woken{}, nil
	}
	return redisstore.Woken{}, err
}

// Failed notes that a wait has failed, and forbids claims for a while.
func (w *Waiter) Failed(err error, now time.Time) {
	w.NoClaimsBefore = now.Add(w.backoff.Next())
	if redisstore.Refused(err) {
		w.refusedAt = now
	}
}

// Recovered reports whether a wait that has succeeded shows that the next one will. After Redis has answered a wait
// with an error, such as a key of the wrong type, a notification shows nothing: Redis has not looked at the keys after
// that one.
func (w *Waiter) Recovered(wake WakeUp, now time.Time) bool {
	return wake.Lane < 0 || now.Sub(w.refusedAt) > loop.ComplaintInterval
}

// wakeUpFor returns the wake-up for what a wait has brought.
func (w *Waiter) wakeUpFor(woken redisstore.Woken, err error) WakeUp {
	wake := WakeUp{Lane: -1, Waiter: w, Err: err}
	if woken.Store == nil {
		return wake
	}
	wake.Lane, wake.Due = w.Lanes[slices.Index(w.Stores, woken.Store)], woken.Due
	if !woken.Due {
		wake.Held, wake.Suspects = 1, woken.Suspects
	}
	return wake
}
