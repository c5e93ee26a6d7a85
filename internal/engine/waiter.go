package engine

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

// wakeUp tells the fetcher that there may be tasks.
type wakeUp struct {
	lane int // index; -1: none
	held int // 1: the waiter has taken a notification from the queue's notify list
	// suspects: the pending tasks are suspects.
	suspects bool
	due      bool    // there may be no tasks, but something is due earlier than the mover knows
	waiter   *waiter // the waiter that has stopped blocking; nil if the mover has sent this
	err      error
}

// waiter blocks on the notify lists of one slot, on a connection of its own.
type waiter struct {
	link    redisstore.Link
	lanes   []int // indexes
	stores  []*redisstore.Store
	wakes   chan<- wakeUp
	blockOn chan redisstore.WaitOn // from the fetcher
	limit   time.Duration          // of one BLPOP; 0 is redisstore.WaitTime
	// owned by the fetcher
	blocking       bool         // the fetcher has sent what to block on, and no wake-up has come back
	blocksOn       []int        // lanes on whose notify lists it blocks
	renewed        bool         // it was told to stop blocking, because it should block on more lanes
	noClaimsBefore time.Time    // no claims on queues of this slot before; its server does not answer
	backoff        loop.Backoff // between failed waits
	refusedAt      time.Time    // when Redis last answered a wait with an error
	claims         loop.Backoff // between failed claims
}

// waitOn returns what to block on and stores the lanes in blocksOn: tasks of lanes in the given order, without those
// that rest; then their suspects, if the worker takes any; then what becomes due on all lanes.
func (w *waiter) waitOn(order []int, rests func(lane int) bool, suspects bool, worker string) redisstore.WaitOn {
	on := redisstore.WaitOn{Tasks: make([]*redisstore.Store, 0, len(w.lanes)), Due: w.stores, Worker: worker}
	w.blocksOn, w.renewed = w.blocksOn[:0], false
	for _, i := range order {
		if j := slices.Index(w.lanes, i); j >= 0 && !rests(i) {
			on.Tasks = append(on.Tasks, w.stores[j])
			w.blocksOn = append(w.blocksOn, i)
		}
	}
	if suspects {
		on.Suspects = on.Tasks
	}
	return on
}

// renew ends a wait that leaves out a lane which does not rest any more. Otherwise tasks of that lane would wait until
// BLPOP times out.
func (w *waiter) renew(ctx context.Context, rests func(lane int) bool, worker string) error {
	if w.renewed || !slices.ContainsFunc(w.lanes,
		func(i int) bool { return !rests(i) && !slices.Contains(w.blocksOn, i) }) {
		return nil
	}
	err := w.stores[0].Rewait(ctx, worker, 2*redisstore.WaitTime)
	w.renewed = err == nil
	return err
}

// run blocks on what the fetcher sends, until ctx ends.
func (w *waiter) run(ctx context.Context) {
	defer w.link.HangUp()
	for {
		var on redisstore.WaitOn
		select {
		case on = <-w.blockOn:
		case <-ctx.Done():
			return
		}
		woken, err := w.wait(ctx, on)
		select {
		case w.wakes <- w.wakeUpFor(woken, err):
		case <-ctx.Done():
			return
		}
	}
}

// wait blocks once.
func (w *waiter) wait(ctx context.Context, on redisstore.WaitOn) (redisstore.Woken, error) {
	if _, err := w.link.Open(ctx); err != nil {
		return redisstore.Woken{}, err
	}
	limit, start := cmp.Or(w.limit, redisstore.WaitTime), time.Now()
	woken, err := redisstore.Wait(ctx, &w.link, on, limit)
	if err == nil {
		return woken, nil
	}
	w.link.HangUp()
	if took := time.Since(start); errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil &&
		took < limit+redisstore.CallTimeout/2 {
		// The connection has a timeout of its own, which is shorter: use shorter waits from now on. If a notification
		// was lost with the connection, the mover finds the task.
		w.limit = max(took/2, redisstore.ShortestWait)
		return redisstore.Woken{}, nil
	}
	return redisstore.Woken{}, err
}

// failed notes that a wait has failed, and forbids claims for a while.
func (w *waiter) failed(err error, now time.Time) {
	w.noClaimsBefore = now.Add(w.backoff.Next())
	if redisstore.Refused(err) {
		w.refusedAt = now
	}
}

// recovered reports whether a wait that has succeeded shows that the next one will. After Redis has answered a wait
// with an error, such as a key of the wrong type, a notification shows nothing: Redis has not looked at the keys after
// that one.
func (w *waiter) recovered(wake wakeUp, now time.Time) bool {
	return wake.lane < 0 || now.Sub(w.refusedAt) > loop.ComplaintInterval
}

// wakeUpFor returns the wake-up for what a wait has brought.
func (w *waiter) wakeUpFor(woken redisstore.Woken, err error) wakeUp {
	wake := wakeUp{lane: -1, waiter: w, err: err}
	if woken.Store == nil {
		return wake
	}
	wake.lane, wake.due = w.lanes[slices.Index(w.stores, woken.Store)], woken.Due
	if !woken.Due {
		wake.held, wake.suspects = 1, woken.Suspects
	}
	return wake
}
