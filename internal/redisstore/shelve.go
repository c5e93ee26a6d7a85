package redisstore

import (
	"context"
	"time"
)

// Shelf is a sorted set in which tasks are filed.
type Shelf uint8

// Shelved is one task to be filed.
type Shelved struct {
	Token   string
	ID      string
	Wait    time.Duration // until it is due (retry) or expires
	Message []byte        // nil: as it was claimed
	Info    []byte
	Path    string // of its function, if it is parked
	Awaited bool   // publish its end, because somebody may wait for it
	Lock    string // the lock that its message names; "" if there is none to free or to extend
}

// Shelve ends claims by filing their tasks. Those that are to be retried or scheduled, and wait less than a
// millisecond, become pending at once. most bounds the set (0: any number); counters names the day's counters to raise
// by the number of tasks. canceled is true for claims that remain because their tasks were canceled; nil: none.
func (s *Store) Shelve(
	ctx context.Context, worker string, batches []uint64, on Shelf, most int, counters []string, tasks []Shelved,
) (stood, canceled []bool, err error) {
	workers := ""
	if on == ShelfParked {
		workers = s.keys.signals()
	}
	args := make([]any, 0, 7+len(counters)+len(batches)+7*len(tasks))
	args = append(args, statsLife, most, flag(on == ShelfScheduled || on == ShelfRetry), flag(on == ShelfArchived),
		workers, len(counters))
	args = appendBatches(appendAll(args, counters), batches)
	for i := range tasks {
		t := &tasks[i]
		notice := s.channel(t.ID, t.Awaited)
		if on == ShelfParked && t.Path != "" {
			notice = SignalParked + " " + t.Path
		}
		args = append(args, t.Token, t.ID, t.Wait.Milliseconds(), t.Message, t.Info, notice, t.Lock)
	}
	keys := []string{
		s.keys.processing + worker, s.keys.claims + worker, s.keys.tasks, s.shelfKey(on), s.keys.info, s.StatsKey(),
		s.keys.wake, s.keys.locks, s.keys.revoked, s.keys.list, s.keys.noti,
	}
	reply, err := s.eval(ctx, "shelve", keys, args...)
	return answersAgain(reply, err, len(tasks))
}

// The sets.
const (
	ShelfScheduled Shelf = iota
	ShelfRetry
	ShelfParked
	ShelfArchived
)

// shelfKey returns the key of a set.
func (s *Store) shelfKey(of Shelf) string {
	return [...]string{
		ShelfScheduled: s.keys.scheduled, ShelfRetry: s.keys.retry, ShelfParked: s.keys.parked,
		ShelfArchived: s.keys.archived,
	}[of]
}
