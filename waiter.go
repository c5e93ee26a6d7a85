package delayed

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"
)

const (
	// waitTime bounds one BLPOP.
	waitTime = 5 * time.Second
	// shortestWait is what remains of it on connections that break off earlier.
	shortestWait = 500 * time.Millisecond
)

// wakeUp tells the fetcher that there may be tasks.
type wakeUp struct {
	lane   int
	held   int     // 1: a notification was taken for it
	due    bool    // not tasks, but something that is due earlier than the mover expects
	waiter *waiter // that stopped waiting; nil for others
	err    error
}

// waiter blocks on the notify lists of one slot, on a connection of its own.
type waiter struct {
	link   link
	lanes  []int // positions
	stores []*store
	wakes  chan<- wakeUp
	arm    chan []string
	limit  time.Duration // of one BLPOP; 0 means waitTime
	// owned by the fetcher
	blocking bool
	until    time.Time // no claims before on queues of this slot, because its server is away
	backoff  backoff
}

// keys returns what to block on: notify lists in the given order of all lanes, without those that rest, then the wake lists.
func (w *waiter) keys(order []int, rests func(lane int) bool) []string {
	keys := make([]string, 0, 2*len(w.lanes))
	for _, i := range order {
		for j, lane := range w.lanes {
			if lane == i && !rests(i) {
				keys = append(keys, w.stores[j].keys.noti)
			}
		}
	}
	for _, s := range w.stores {
		keys = append(keys, s.keys.wake)
	}
	return keys
}

// run waits whenever it is armed, until ctx ends.
func (w *waiter) run(ctx context.Context) {
	defer w.link.hangUp()
	for {
		var keys []string
		select {
		case keys = <-w.arm:
		case <-ctx.Done():
			return
		}
		key, err := w.wait(ctx, keys)
		select {
		case w.wakes <- w.wake(key, err):
		case <-ctx.Done():
			return
		}
	}
}

// wait blocks once.
func (w *waiter) wait(ctx context.Context, keys []string) (string, error) {
	if _, err := w.link.open(ctx); err != nil {
		return "", err
	}
	limit, start := cmp.Or(w.limit, waitTime), time.Now()
	key, err := wait(ctx, &w.link, keys, limit)
	if err == nil {
		return key, nil
	}
	w.link.hangUp()
	if took := time.Since(start); errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil && took < limit+callTimeout/2 {
		// The connection's own timeout is shorter than the wait: wait for less from now on. If a notification was lost with it, the
		// mover finds the task.
		w.limit = max(took/2, shortestWait)
		return "", nil
	}
	return "", err
}

// wake says what the element of a key means.
func (w *waiter) wake(key string, err error) wakeUp {
	wake := wakeUp{lane: -1, waiter: w, err: err}
	for j, s := range w.stores {
		switch key {
		case s.keys.noti:
			wake.lane, wake.held = w.lanes[j], 1
		case s.keys.wake:
			wake.lane, wake.due = w.lanes[j], true
		}
	}
	return wake
}
