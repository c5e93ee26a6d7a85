package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// workersQueues bounds the queues whose workers one call reads.
	workersQueues = 200
	// rosterMost bounds the workers that one call looks at, and statusBytes each status that it reads.
	rosterMost  = 100
	statusBytes = 256 << 10
)

// RosterEntry is what Redis knows of a worker of a queue beside its functions.
type RosterEntry struct {
	ID        string
	Heartbeat string        // its value; "" without heartbeat
	Life      time.Duration // how long the heartbeat lasts if it is not renewed
	Claims    int
	Status    []byte // what it has published of what it does; nil: nothing, too much, or not asked for
}

// WorkersOf returns the ids in the worker set of each of the stores, which are of one handle.
func WorkersOf(ctx context.Context, stores []*Store) ([][]string, error) {
	all := make([][]string, len(stores))
	err := bySlot(stores, workersQueues, func(places []int) error {
		keys := make([]string, len(places))
		for i, p := range places {
			keys[i] = stores[p].keys.workers
		}
		answer, err := evalOn(ctx, stores[places[0]].Src, "workers", keys, surveyedWorkers)
		reply, err := values(answer, err, len(places))
		if err != nil {
			return err
		}
		for i, p := range places {
			if reply[i] == nil { // too many
				all[p], err = stores[p].manyWorkers(ctx)
			} else if all[p], err = redis.Strings(reply[i], nil); err != nil {
				err = fmt.Errorf("%w: workers: %w", ErrReply, err)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

func (s *Store) manyWorkers(ctx context.Context) ([]string, error) {
	l := s.NewLink()
	defer l.HangUp()
	if _, err := l.Open(ctx); err != nil {
		return nil, err
	}
	return s.scanWorkers(ctx, &l)
}

// Rosters reads what is known of the workers of each of the stores, which are of one handle: with their status, or
// without.
func Rosters(ctx context.Context, stores []*Store, workers [][]string, status bool) ([][]RosterEntry, error) {
	// One for each worker of each store.
	var of []*Store
	var entries []*RosterEntry
	all := make([][]RosterEntry, len(stores))
	for i, ids := range workers {
		all[i] = make([]RosterEntry, len(ids))
		for j, id := range ids {
			all[i][j].ID = id
			of, entries = append(of, stores[i]), append(entries, &all[i][j])
		}
	}
	limit := 0
	if status {
		limit = statusBytes
	}
	err := bySlot(of, rosterMost, func(places []int) error {
		keys, args := make([]string, 0, 3*len(places)), append(make([]any, 0, 1+len(places)), limit)
		for _, p := range places {
			k, id := &of[p].keys, entries[p].ID
			keys = append(keys, k.heartbeat+id, k.processing+id, k.functions)
			args = append(args, id+StatusMark)
		}
		answer, err := evalOn(ctx, of[places[0]].Src, "roster", keys, args...)
		reply, err := values(answer, err, len(places))
		if err != nil {
			return err
		}
		for i, p := range places {
			if err := entries[p].scan(reply[i]); err != nil {
				return fmt.Errorf("%w: roster: %w", ErrReply, err)
			}
		}
		return nil
	})
	return all, err
}

// scan reads what the script says of one worker.
func (e *RosterEntry) scan(row any) error {
	values, err := redis.Values(row, nil)
	if err != nil {
		return err
	}
	var ms int64
	if _, err := redis.Scan(values, &e.Heartbeat, &ms, &e.Claims, &e.Status); err != nil {
		return err
	}
	e.Life = time.Duration(max(ms, 0)) * time.Millisecond
	return nil
}
