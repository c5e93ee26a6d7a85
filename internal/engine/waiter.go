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

// WakeUp tells the fetcher that there may be tasks.
type WakeUp struct {
	Lane int
	Held int // 1: a notification was taken for it
	// Suspects: what is pending are suspects
	Suspects bool
	Due      bool    // not tasks, but something that is due earlier than the mover expects
	waiter   *Waiter // that stopped waiting; nil for others
	err      error
}

// Waiter blocks on the notify lists of one slot, on a connection of its own.
type Waiter struct {
	Link   redisstore.Link
	Lanes  []int // positions
	Stores []*redisstore.Store
	wakes  chan<- WakeUp
	arm    chan []string
	Limit  time.Duration // of one BLPOP; 0 means redisstore.WaitTime
	// owned by the fetcher
	Blocking bool
	on       []int        // lanes on whose notify lists it blocks
	renewed  bool         // it was told to stop, because there are more lanes to block on
	Until    time.Time    // no claims before on queues of this slot, because its server is away
	backoff  loop.Backoff // of waits
	refused  time.Time    // when Redis has last answered a wait with an error
	claims   loop.Backoff // of claims
}

// Keys returns what to block on, and notes it: notify lists of lanes in the given order, without those that rest, and
// of their suspects, if the worker takes any; then the wake lists, and what ends this wait alone.
func (w *Waiter) Keys(order []int, rests func(lane int) bool, suspects bool, worker string) []string {
	keys := make([]string, 0, 3*len(w.Lanes)+1)
	var last []string
	w.on, w.renewed = w.on[:0], false
	for _, i := range order {
		for j, lane := range w.Lanes {
			if lane == i && !rests(i) {
				keys = append(keys, w.Stores[j].Keys.Noti)
				last = append(last, w.Stores[j].Keys.SuspectsNoti)
				w.on = append(w.on, i)
			}
		}
	}
	if suspects {
		keys = append(keys, last...)
	}
	for _, s := range w.Stores {
		keys = append(keys, s.Keys.Wake)
	}
	return append(keys, w.Stores[0].Keys.Rewait+worker)
}

// Renew ends a wait that leaves out a lane that it should not. It must not be waited out: tasks of that lane would wait
// as long.
func (w *Waiter) Renew(ctx context.Context, rests func(lane int) bool, worker string) error {
	if w.renewed || !slices.ContainsFunc(w.Lanes, func(i int) bool { return !rests(i) && !slices.Contains(w.on, i) }) {
		return nil
	}
	err := w.Stores[0].Rewait(ctx, worker, 2*redisstore.WaitTime)
	w.renewed = err == nil
	return err
}

// run waits whenever it is armed, until ctx ends.
func (w *Waiter) run(ctx context.Context) {
	defer w.Link.HangUp()
	for {
		var keys []string
		select {
		case keys = <-w.arm:
		case <-ctx.Done():
			return
		}
		key, err := w.Wait(ctx, keys)
		select {
		case w.wakes <- w.wake(key, err):
		case <-ctx.Done():
			return
		}
	}
}

// Wait blocks once.
func (w *Waiter) Wait(ctx context.Context, keys []string) (string, error) {
	if _, err := w.Link.Open(ctx); err != nil {
		return "", err
	}
	limit, start := cmp.Or(w.Limit, redisstore.WaitTime), time.Now()
	key, err := redisstore.Wait(ctx, &w.Link, keys, limit)
	if err == nil {
		return key, nil
	}
	w.Link.HangUp()
	if took := time.Since(start); errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil &&
		took < limit+redisstore.CallTimeout/2 {
		// The connection's own timeout is shorter than the wait: wait for less from now on. If a notification was lost
		// with it, the mover finds the task.
		w.Limit = max(took/2, redisstore.ShortestWait)
		return "", nil
	}
	return "", err
}

// Failed notes that a wait has failed: no claims before its back-off is over.
func (w *Waiter) Failed(err error, now time.Time) {
	w.Until = now.Add(w.backoff.Next())
	if redisstore.Refused(err) {
		w.refused = now
	}
}

// Recovered reports whether a wait that has succeeded shows that the next one will. After an error that Redis has
// answered, such as a key of the wrong type, one that has brought a notification does not: Redis has looked at no key
// behind that one.
func (w *Waiter) Recovered(wake WakeUp, now time.Time) bool {
	return wake.Lane < 0 || now.Sub(w.refused) > loop.ComplaintInterval
}

// wake says what the element of a key means.
func (w *Waiter) wake(key string, err error) WakeUp {
	wake := WakeUp{Lane: -1, waiter: w, err: err}
	for j, s := range w.Stores {
		switch key {
		case s.Keys.Noti:
			wake.Lane, wake.Held = w.Lanes[j], 1
		case s.Keys.SuspectsNoti:
			wake.Lane, wake.Held, wake.Suspects = w.Lanes[j], 1, true
		case s.Keys.Wake:
			wake.Lane, wake.Due = w.Lanes[j], true
		}
	}
	return wake
}
