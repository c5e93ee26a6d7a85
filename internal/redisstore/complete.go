package redisstore

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Completed is a claimed task that was canceled, or that has succeeded and needs more than an acknowledgement.
type Completed struct {
	Token   string
	ID      string
	Keep    time.Duration // how long to keep Value; 0: not at all
	Value   []byte        // a wire.Info
	Lock    string        // the lock that its message names; "" if there is none to free
	Awaited bool          // publish its end, because somebody may wait for it

	Canceled bool // it was canceled; its claim remains if Redis has no revocation any more
	Certain  bool // it counts as canceled even then
}

// Progress writes the progress report of an active task; nil removes it. It reports whether the claim stands.
func (s *Store) Progress(ctx context.Context, worker, token, id string, report []byte) (bool, error) {
	keys := []string{s.keys.processing + worker, s.keys.completed, s.keys.results}
	return redis.Bool(s.eval(ctx, "progress", keys, token, id, report))
}

// Complete ends claims of tasks that have succeeded or were canceled, keeps their records, frees their locks, drops
// their revocations, and wakes whoever waits for them. again is true for claims that remain because their task is no
// longer revoked; nil: none does.
func (s *Store) Complete(
	ctx context.Context, worker string, batches []uint64, tasks []Completed,
) (stood, again []bool, err error) {
	args := make([]any, 0, 2+len(batches)+7*len(tasks))
	args = append(args, statsLife)
	args = appendBatches(args, batches)
	for i := range tasks {
		t := &tasks[i]
		end := "processed"
		if t.Canceled {
			end = "revoked"
			if t.Certain {
				end = "canceled"
			}
		}
		args = append(args, t.Token, t.ID, t.Keep.Milliseconds(), t.Value, t.Lock, s.channel(t.ID, t.Awaited), end)
	}
	keys := []string{
		s.keys.processing + worker, s.keys.claims + worker, s.keys.completed, s.keys.results, s.keys.locks,
		s.StatsKey(), s.keys.revoked,
	}
	reply, err := s.eval(ctx, "complete", keys, args...)
	return answersAgain(reply, err, len(tasks))
}
