package delayed

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Options returns the options that a claimed task carries, those that it was enqueued with and its function's defaults
// together, as Queue.With takes them; none for a task that is to be enqueued. Times have the precision of Option.
// Front, OnConflict, Debounce and In are not among them: they say how to enqueue, and In shows as At. A lock that comes
// from the Overlap of a periodic entry is not included either. So a task goes to another queue with all of its options:
//
//	ref, err := other.With(t.Options()...).Enqueue(ctx, t)
func (t *Task) Options() []Option {
	meta := t.meta()
	var all []Option
	if meta.HasMaxRetry {
		all = append(all, MaxRetry(meta.MaxRetry))
	} else if t.msg.Python() && t.msg.Retry > 0 && t.claimed != nil {
		all = append(all, MaxRetry(int(min(t.msg.Retry, maxRetryLimit))))
	}
	x := meta.Extra
	if x == nil {
		return all
	}
	for _, d := range [...]struct {
		ms     int64
		option func(time.Duration) TaskOption
	}{{x.RetryCap, MaxBackoff}, {x.KeepResult, KeepResult}, {x.Retention, Retention}} {
		if d.ms > 0 {
			all = append(all, d.option(wire.Milliseconds(d.ms)))
		}
	}
	for _, at := range [...]struct {
		ms     int64
		option func(time.Time) Option
	}{{x.Due, At}, {x.Deadline, Deadline}, {x.RetryUntil, RetryUntil}} {
		if at.ms > 0 {
			all = append(all, at.option(time.UnixMilli(at.ms)))
		}
	}
	switch {
	case x.Timeout == wire.Unlimited:
		all = append(all, Timeout(0))
	case x.Timeout > 0:
		all = append(all, Timeout(wire.Milliseconds(x.Timeout)))
	}
	if x.Expiry > 0 {
		all = append(all, TTL(wire.Milliseconds(max(x.Expiry-meta.EnqueuedAt, 1))))
	}
	if len(x.RetryDelays) > 0 {
		delays := make(backoffOption, len(x.RetryDelays))
		for i, ms := range x.RetryDelays {
			delays[i] = wire.Milliseconds(ms)
		}
		all = append(all, delays)
	}
	all = append(all, lockOptions(x, meta.ID)...)
	if x.Group != "" {
		all = append(all, Group(x.Group))
	}
	if g := x.Gather; g != nil {
		all = append(all, Gather(GatherPolicy{
			Grace: wire.Milliseconds(g.Grace), MaxDelay: wire.Milliseconds(g.MaxDelay), MaxSize: g.MaxSize,
		}))
	}
	for _, key := range slices.Sorted(maps.Keys(x.Headers)) {
		all = append(all, Header(key, x.Headers[key]))
	}
	return all
}

// lockOptions returns the options that made the lock of a task.
func lockOptions(x *wire.Extra, id string) (all []Option) {
	life := wire.Milliseconds(min(x.LockLife, math.MaxInt64/int64(time.Millisecond)))
	switch {
	case strings.HasPrefix(x.Lock, redisstore.LockArgs):
		all = append(all, Unique(life))
	case strings.HasPrefix(x.Lock, redisstore.LockKey):
		all = append(all, UniqueKey(strings.TrimPrefix(x.Lock, redisstore.LockKey), life))
	case strings.HasPrefix(x.Lock, "#") && id != "":
		return []Option{TaskID(id)}
	default:
		return nil
	}
	if x.LockStart {
		all = append(all, UntilStart())
	}
	return all
}
