package delayed

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// completed is one task that has succeeded and leaves something behind.
type completed struct {
	token   string
	id      string
	keep    time.Duration // how long value is kept; 0: not at all
	value   []byte        // a wire.Info
	lock    bool          // it may hold a lock
	awaited bool          // somebody may wait for its end
}

// progress notes what an active task reports; nil forgets it. It answers whether the claim stands.
func (s *store) progress(ctx context.Context, worker, token, id string, report []byte) (bool, error) {
	keys := []string{s.keys.processing + worker, s.keys.completed, s.keys.results}
	return redis.Bool(s.eval(ctx, scriptProgress, keys, token, id, report))
}

// expire deletes completed tasks that were kept for long enough, at most n.
func (s *store) expire(ctx context.Context, n int) (int, error) {
	return redis.Int(s.eval(ctx, scriptExpire, []string{s.keys.completed, s.keys.results}, n))
}

// complete ends claims of tasks that have succeeded, keeps what is to be kept, frees their locks, forgets that they
// were cancelled, and wakes who waits for them.
func (s *store) complete(ctx context.Context, worker string, batches []uint64, tasks []completed) ([]bool, error) {
	args := make([]any, 0, 2+len(batches)+6*len(tasks))
	args = append(args, statsLife)
	args = appendBatches(args, batches)
	for i := range tasks {
		t := &tasks[i]
		args = append(args, t.token, t.id, t.keep.Milliseconds(), t.value, flag(t.lock), s.channel(t.id, t.awaited))
	}
	keys := []string{
		s.keys.processing + worker, s.keys.claims + worker, s.keys.completed, s.keys.results, s.keys.locks,
		s.keys.locked, s.statsKey(), s.keys.revoked,
	}
	reply, err := s.eval(ctx, scriptComplete, keys, args...)
	return answers(reply, err, len(tasks))
}
