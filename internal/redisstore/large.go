package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// maxInfo bounds the info that is read of each task in a list. No info that this package writes is as large.
const maxInfo = 32 << 10

// TooLarge is the error about a message of size bytes, which stays in Redis.
func TooLarge(size int) error { return wire.TooLong(size, wire.WorkerLimits) }

// TooLargeInfo returns the info to keep of such a message.
func TooLargeInfo(size int, at time.Time, worker string) []byte {
	info := wire.Info{Reason: state.ReasonTooLarge, Error: TooLarge(size).Error(), At: at, Worker: worker}
	return info.Encode()
}

// LogTooLarge logs that such a message of a queue was archived as the task id.
func LogTooLarge(log loop.Journal, lines *loop.LineLimit, queue, id string, size int) {
	lines.Log(loop.LineKey{Queue: queue, Reason: string(state.ReasonTooLarge)}, func(n int) {
		log.With("queue", queue).With("id", id).Counted(n).WithError(TooLarge(size)).
			Error("message archived: it is too large, and stays in Redis")
	})
}

// someFields reads the given fields of a hash in order, as many as MaxCallBytes allows but at least one. Values of
// more than most bytes are too large.
func (s *Store) someFields(ctx context.Context, hash string, fields []string, most int) ([]Stored, error) {
	args := argsOf(fields[:min(len(fields), MaxListPage)], most, MaxCallBytes)
	values, err := storedAll(s.eval(ctx, "fields", []string{hash}, args...))
	if err == nil && (len(values) == 0 || len(values) > len(fields)) {
		err = fmt.Errorf("%w: %d values from fields, expected 1 to %d", ErrReply, len(values), len(fields))
	}
	return values, err
}

// FiledMessages reads the messages of filed tasks in order, as many as someFields would.
func (s *Store) FiledMessages(ctx context.Context, ids []string) ([]Stored, error) {
	return s.someFields(ctx, s.keys.tasks, ids, wire.WorkerLimits.Bytes)
}

// fields reads fields of a hash. It leaves out values of more than most bytes.
func (s *Store) fields(ctx context.Context, hash string, fields []string, most int) ([][]byte, error) {
	all := make([][]byte, 0, len(fields))
	for len(all) < len(fields) {
		some, err := s.someFields(ctx, hash, fields[len(all):], most)
		if err != nil {
			return nil, err
		}
		for _, v := range some {
			all = append(all, v.Bytes)
		}
	}
	return all, nil
}

// listPage bounds the messages of a list that one call reads: a thousand small ones keep Redis for 4 ms.
const listPage = 250

// pageFrom reads up to n messages of a list, as many as fit: on from a place, 0 for the oldest, or back from it to
// older ones. It returns none only at the end of the list. On the way back −1 is the last message, and places behind it
// hold gaps.
func (s *Store) pageFrom(ctx context.Context, list string, from, n int, back bool) ([]Stored, error) {
	n = min(n, listPage)
	return storedAll(s.eval(ctx, "page", []string{list}, from, n, wire.WorkerLimits.Bytes, flag(back), ""))
}

// MaxListPage bounds how many parked or archived tasks one call reads.
const MaxListPage = 1000

// infos reads the infos of tasks; nil where there is none, or one larger than this package writes.
func (s *Store) infos(ctx context.Context, ids []string) ([][]byte, error) {
	return s.fields(ctx, s.keys.info, ids, maxInfo)
}
