package delayed

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// reasonTooLarge is why a message is archived that is larger than workers read.
	reasonTooLarge = "too large"
	// maxInfo bounds what is read of each task where many are listed: more than any wire.Info has that is kept of a task
	// that waits.
	maxInfo = 32 << 10
)

// tooLarge is the error about a message of size bytes, which stays in Redis.
func tooLarge(size int) error { return wire.TooLong(size, wire.WorkerLimits) }

// tooLargeInfo is what is known of such a message.
func tooLargeInfo(size int, at time.Time, worker string) []byte {
	info := wire.Info{Reason: reasonTooLarge, Error: tooLarge(size).Error(), At: at, Worker: worker}
	return info.Encode()
}

// stored is a value as Redis holds it. One that is too large is not read: of it only the size is known.
type stored struct {
	bytes []byte // nil: there is none, or it is too large
	size  int    // 0 unless it is too large
}

// exists says whether there is a value.
func (v stored) exists() bool { return v.bytes != nil || v.size > 0 }

// storedOf converts what a script has answered for a value.
func storedOf(reply any) (stored, error) {
	switch v := reply.(type) {
	case nil:
		return stored{}, nil
	case []byte:
		return stored{bytes: v}, nil
	case int64:
		return stored{size: int(v)}, nil
	}
	return stored{}, fmt.Errorf("%w: %T as a value", errReply, reply)
}

func storedAll(reply any, err error) ([]stored, error) {
	values, err := redis.Values(reply, err)
	if err != nil {
		return nil, err
	}
	all := make([]stored, len(values))
	for i, v := range values {
		if all[i], err = storedOf(v); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// someFields reads the first of the fields of a hash, as many as maxClaimBytes allow but at least one. Values of more
// than most bytes are too large.
func (s *store) someFields(ctx context.Context, hash string, fields []string, most int) ([]stored, error) {
	args := make([]any, 0, 2+len(fields))
	args = append(args, most, maxClaimBytes)
	for _, f := range fields[:min(len(fields), maxListPage)] {
		args = append(args, f)
	}
	values, err := storedAll(s.eval(ctx, scriptFields, []string{hash}, args...))
	if err == nil && (len(values) == 0 || len(values) > len(fields)) {
		err = fmt.Errorf("%w: %d values from fields, expected 1 to %d", errReply, len(values), len(fields))
	}
	return values, err
}

// fields reads fields of a hash. It leaves out values of more than most bytes.
func (s *store) fields(ctx context.Context, hash string, fields []string, most int) ([][]byte, error) {
	all := make([][]byte, 0, len(fields))
	for len(all) < len(fields) {
		some, err := s.someFields(ctx, hash, fields[len(all):], most)
		if err != nil {
			return nil, err
		}
		for _, v := range some {
			all = append(all, v.bytes)
		}
	}
	return all, nil
}

// page reads up to n messages of a list after from others, as many as fit. No message is left when it returns none.
func (s *store) page(ctx context.Context, list string, from, n int) ([]stored, error) {
	return storedAll(s.eval(ctx, scriptPage, []string{list}, from, n, wire.WorkerLimits.Bytes))
}
