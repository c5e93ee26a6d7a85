package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ShortestWait is the least time for which a worker waits, on connections that break off early.
const ShortestWait = 500 * time.Millisecond

// WaitOn says what a wait blocks on. All stores are of one slot.
type WaitOn struct {
	Tasks    []*Store // on notifications of their pending tasks: Redis serves the first that has one
	Suspects []*Store // on those of their suspects, if none of Tasks has one
	Due      []*Store // on word that something is due earlier than their movers know; at least one
	Worker   string   // Rewait for this worker ends the wait
}

// Woken says what a wait has brought.
type Woken struct {
	Store    *Store // nil: nothing, because the time was over or Rewait has ended the wait
	Suspects bool   // a notification of suspects was taken, not one of pending tasks
	Due      bool   // no notification was taken: something is due
}

// keys returns the keys to block on, in the order in which Redis looks at them.
func (w *WaitOn) keys() []any {
	keys := make([]any, 0, len(w.Tasks)+len(w.Suspects)+len(w.Due)+2)
	for _, s := range w.Tasks {
		keys = append(keys, s.keys.noti)
	}
	for _, s := range w.Suspects {
		keys = append(keys, s.keys.suspectsNoti)
	}
	for _, s := range w.Due {
		keys = append(keys, s.keys.wake)
	}
	return append(keys, w.Due[0].keys.rewait+w.Worker)
}

// woken returns what an element of a key means.
func (w *WaitOn) woken(key string) Woken {
	for _, s := range w.Due {
		switch key {
		case s.keys.noti:
			return Woken{Store: s}
		case s.keys.suspectsNoti:
			return Woken{Store: s, Suspects: true}
		case s.keys.wake:
			return Woken{Store: s, Due: true}
		}
	}
	return Woken{}
}

// Wait blocks until something has come of what w says, or limit is over. The stores of Tasks and Suspects are among
// those of Due.
func Wait(ctx context.Context, l *Link, w WaitOn, limit time.Duration) (Woken, error) {
	args := append(w.keys(), limit.Seconds())
	// The connection waits longer than Redis does: giving up on a slow answer would lose its notification.
	reply, err := redis.Strings(do(ctx, l.conn, CallTimeout+limit, "BLPOP", args...))
	switch {
	case errors.Is(err, redis.ErrNil):
		return Woken{}, nil
	case err != nil:
		return Woken{}, err
	case len(reply) != 2:
		return Woken{}, fmt.Errorf("%w: %d values from BLPOP", ErrReply, len(reply))
	}
	return w.woken(reply[0]), nil
}

// Rewait wakes a worker that waits, so that it waits on other queues.
func (s *Store) Rewait(ctx context.Context, worker string, life time.Duration) error {
	_, err := s.eval(ctx, "rewait", []string{s.keys.rewait + worker}, life.Milliseconds())
	return err
}
