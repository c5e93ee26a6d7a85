package delayed

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// shelf is a sorted set that tasks are filed in.
type shelf uint8

const (
	shelfScheduled shelf = iota
	shelfRetry
	shelfParked
	shelfArchived
)

// shelved is one task to be filed.
type shelved struct {
	token   string
	id      string
	wait    time.Duration // until it is due (retry) or expires
	message []byte        // none: as it was claimed
	info    []byte
	path    string // of its function, if it is parked
	awaited bool   // it ends, and somebody may wait for that
}

// ended are claims whose tasks are done.
type ended struct {
	tokens  []string // at most maxTokens
	batches []uint64 // of which nothing is left then
	// pulse is the value of the heartbeat under which all of them stood last. As long as Redis has that value, none was
	// lost.
	pulse string
}

// append adds what ack and claim need to know.
func (e *ended) append(args []any) []any {
	args = append(args, e.pulse)
	args = appendBatches(args, e.batches)
	for _, t := range e.tokens {
		args = append(args, t)
	}
	return args
}

// answers converts what ack and claim say of them: which claims stood, nil for all.
func (e *ended) answers(reply any) ([]bool, error) {
	if _, all := reply.(int64); all {
		return nil, nil
	}
	return answers(reply, nil, len(e.tokens))
}

// ack ends claims whose tasks are done, and adds lost to the day's count of lost claims. The answers say which claims
// stood, nil that all did. It may be repeated freely, as all ends of a claim may.
func (s *store) ack(ctx context.Context, worker string, e ended, lost int) ([]bool, error) {
	args := make([]any, 0, 4+len(e.batches)+len(e.tokens))
	args = append(args, statsLife, lost)
	args = e.append(args)
	keys := []string{s.keys.processing + worker, s.keys.claims + worker, s.statsKey(), s.keys.heartbeat + worker}
	reply, err := s.eval(ctx, scriptAck, keys, args...)
	if err != nil {
		return nil, err
	}
	return e.answers(reply)
}

// release gives claimed messages back unchanged: to the front or to the end of a queue.
func (s *store) release(
	ctx context.Context, worker string, batches []uint64, tokens []string, to *store, front bool,
) ([]bool, error) {
	where := "back"
	if front {
		where = "front"
	}
	args := make([]any, 0, 2+len(batches)+len(tokens))
	args = append(args, where)
	args = appendBatches(args, batches)
	for _, t := range tokens {
		args = append(args, t)
	}
	keys := []string{s.keys.processing + worker, s.keys.claims + worker, to.keys.list, to.keys.noti}
	reply, err := s.eval(ctx, scriptRelease, keys, args...)
	return answers(reply, err, len(tokens))
}

// channel is where the end of a task is told, "" if nobody waits for it.
func (s *store) channel(id string, awaited bool) string {
	if !awaited {
		return ""
	}
	return s.keys.endedOf(id)
}

// shelve ends claims by filing their tasks. most bounds the set (0: any number); counters are the day's counters to
// raise by the number of tasks filed. canceled says which claims stand because their tasks were cancelled, nil for
// none.
func (s *store) shelve(
	ctx context.Context, worker string, batches []uint64, on shelf, most int, counters []string, tasks []shelved,
) (stood, canceled []bool, err error) {
	set, wake, free, workers := s.keys.retry, 1, 0, ""
	switch on {
	case shelfRetry:
	case shelfScheduled:
		set = s.keys.scheduled
	case shelfParked:
		set, wake, workers = s.keys.parked, 0, s.keys.signals()
	case shelfArchived:
		set, wake, free = s.keys.archived, 0, 1 // the task is over
	}
	args := make([]any, 0, 7+len(counters)+len(batches)+6*len(tasks))
	args = append(args, statsLife, most, wake, free, workers, len(counters))
	for _, c := range counters {
		args = append(args, c)
	}
	args = appendBatches(args, batches)
	for i := range tasks {
		t := &tasks[i]
		told := s.channel(t.id, t.awaited)
		if on == shelfParked && t.path != "" {
			told = signalParked + " " + t.path
		}
		args = append(args, t.token, t.id, t.wait.Milliseconds(), t.message, t.info, told)
	}
	keys := []string{
		s.keys.processing + worker, s.keys.claims + worker, s.keys.tasks, set, s.keys.info, s.statsKey(), s.keys.wake,
		s.keys.locks, s.keys.locked, s.keys.revoked,
	}
	reply, err := s.eval(ctx, scriptShelve, keys, args...)
	return answersAgain(reply, err, len(tasks))
}

func appendBatches(args []any, batches []uint64) []any {
	args = append(args, len(batches))
	for _, b := range batches {
		args = append(args, b)
	}
	return args
}

// answers converts a reply of n ones and zeros.
func answers(reply any, err error, n int) ([]bool, error) {
	values, err := redis.Values(reply, err)
	if err != nil {
		return nil, err
	}
	if len(values) != n {
		return nil, fmt.Errorf("%w: %d answers, expected %d", errReply, len(values), n)
	}
	stood := make([]bool, n)
	for i, v := range values {
		stood[i] = v == int64(1)
	}
	return stood, nil
}
