package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

// RegisterEach is Store.Register for stores of one slot: it registers the worker with each of the values.
func RegisterEach(
	ctx context.Context, stores []*Store, worker string, life time.Duration, values []string,
) []Answer[[]string] {
	return evalEach(ctx, "register", stores, redis.Strings, func(i int) ([]string, []any) {
		return stores[i].registration(worker, life, values[i])
	})
}

// UnregisterEach is Store.Unregister for stores of one slot.
func UnregisterEach(ctx context.Context, stores []*Store, worker string) []Answer[bool] {
	return evalEach(ctx, "forget", stores, redis.Bool, func(i int) ([]string, []any) {
		return stores[i].workerKeys(worker), []any{worker, 1}
	})
}

// Pulse is a heartbeat's reply for one queue.
type Pulse struct {
	Alive  bool // the heartbeat was renewed; false: it had expired
	Claims int  // claims that Redis holds for the worker; -1 when not asked for, or if their key is of another type
	// Version is that of the queue's control hash: 0 if there is none, -1 when not asked for, or if it is of another
	// type.
	Version int64
}

// Beat renews a worker's heartbeats on stores of one slot, and returns Redis's time. While a key is of another type it
// renews them all the same, in one call more.
func Beat(
	ctx context.Context, l *Link, stores []*Store, worker string, life time.Duration, count, control bool,
) (pulses []Pulse, now time.Time, err error) {
	for page := range slices.Chunk(stores, slotPage) {
		some, at, err := beatPage(ctx, l, page, worker, life, count, control, false)
		if IsWrongType(err) {
			some, at, err = beatPage(ctx, l, page, worker, life, count, control, true)
			if answer.Is(err) { // the user may not call TYPE
				some, at, err = beatPage(ctx, l, page, worker, life, false, false, false)
			}
		}
		if err != nil {
			return nil, time.Time{}, err
		}
		pulses, now = append(pulses, some...), at
	}
	return pulses, now, nil
}

// beatPage is Beat for stores of one call. mistyped: some key is of another type.
func beatPage(
	ctx context.Context, l *Link, stores []*Store, worker string, life time.Duration, count, control, mistyped bool,
) (pulses []Pulse, now time.Time, err error) {
	keys := make([]string, 0, 3*len(stores))
	for _, s := range stores {
		keys = append(keys, s.keys.heartbeat+worker, s.keys.processing+worker, s.keys.control)
	}
	reply, err := l.eval(ctx, "beat", keys, life.Milliseconds(), flag(count), flag(control), flag(mistyped))
	values, err := ints(reply, err, 2+3*len(stores))
	if err != nil {
		return nil, time.Time{}, err
	}
	for v := range slices.Chunk(values[2:], 3) {
		pulses = append(pulses, Pulse{Alive: v[0] == 1, Claims: int(v[1]), Version: v[2]})
	}
	return pulses, time.Unix(values[0], values[1]*1000), nil
}

// Known reports for each of the stores, which are of one slot, whether Redis has the worker's functions. It puts the
// worker back into worker sets that have lost it, so that sweepers see it. Call it after Beat, with the stores on which
// the worker is alive. Keys of another type count as known.
func Known(ctx context.Context, l *Link, stores []*Store, worker string) (known []bool, err error) {
	for page := range slices.Chunk(stores, slotPage) {
		keys := make([]string, 0, 2*len(page))
		for _, s := range page {
			keys = append(keys, s.keys.workers, s.keys.functions)
		}
		reply, err := l.eval(ctx, "known", keys, worker)
		switch {
		case IsWrongType(err) && len(page) > 1:
			for _, s := range page {
				one, err := Known(ctx, l, []*Store{s}, worker)
				if err != nil {
					return nil, err
				}
				known = append(known, one...)
			}
			continue
		case IsWrongType(err):
			known = append(known, true)
			continue
		}
		values, err := ints(reply, err, len(page))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			known = append(known, v == 1)
		}
	}
	return known, nil
}

// Register registers the worker and returns the tokens of its claims that stand.
func (s *Store) Register(ctx context.Context, worker string, life time.Duration, value string) ([]string, error) {
	keys, args := s.registration(worker, life, value)
	return redis.Strings(s.eval(ctx, "register", keys, args...))
}

func (s *Store) registration(worker string, life time.Duration, value string) (keys []string, args []any) {
	keys = []string{s.keys.heartbeat + worker, s.keys.workers, s.keys.processing + worker}
	return keys, []any{life.Milliseconds(), worker, value}
}

// Unregister removes the registration of a worker that stops, and reports false if it still holds claims.
func (s *Store) Unregister(ctx context.Context, worker string) (bool, error) {
	return redis.Bool(s.eval(ctx, "forget", s.workerKeys(worker), worker, 1))
}

// Forget removes the registration of a dead worker that holds no claims.
func (s *Store) Forget(ctx context.Context, worker string) (bool, error) {
	return redis.Bool(s.eval(ctx, "forget", s.workerKeys(worker), worker, 0))
}

func (s *Store) workerKeys(worker string) []string {
	return []string{
		s.keys.heartbeat + worker, s.keys.workers, s.keys.processing + worker, s.keys.claims + worker,
		s.keys.control, s.keys.functions,
	}
}

// Notes that Mark writes, with the meaning of their values.
const (
	MarkAlone   = "alone"   // the token of the claim that runs with nothing else in hand
	MarkStopped = "stopped" // the worker stops in good order
)
