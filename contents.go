package delayed

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Arg decodes argument i of the task, counted from 0, into the variable that p points to, as strictly as for a
// parameter of its type; a variable of type any gets what Args would return. Neither the function nor its types need to
// be linked into this program. If the function is registered with this worker, or the task was made by Call, the values
// of a variadic parameter count one by one. If not, they count as the message has them: Delay sends them as one list.
// Errors wrap ErrArguments.
//
//	var user int64
//	err := t.Arg(0, &user)
func (t *Task) Arg(i int, p any) error {
	dst := reflect.ValueOf(p)
	if dst.Kind() != reflect.Pointer || dst.IsNil() {
		return fmt.Errorf("%w: Arg(%d, %T): expected a pointer to a variable", ErrArguments, i, p)
	}
	list, err := t.split()
	if err != nil {
		return err
	}
	if i < 0 || i >= len(list) {
		return fmt.Errorf("%w: Arg(%d): %v has %d arguments by position, which count from 0", ErrArguments, i, t,
			len(list))
	}
	codec, err := wire.CodecFor(dst.Type().Elem())
	if err == nil {
		_, err = codec.Decode(list[i], dst.Elem())
	}
	if err != nil {
		return fmt.Errorf("%w: argument %d of %v: %w", ErrArguments, i+1, t, err)
	}
	return nil
}

// Args decodes all arguments of the task: those by position, and those that a Python task has by name. Their types are
// nil, bool, int64, uint64 (only above the largest int64), float64, string, []byte, time.Time, []any, map[string]any,
// or map[any]any if a key is not a string; a struct is a map of its fields' names. For variadic functions see Arg.
// Errors wrap ErrArguments.
func (t *Task) Args() (args []any, kwargs map[string]any, err error) {
	list, err := t.split()
	if err != nil {
		return nil, nil, err
	}
	for i, raw := range list {
		v, _, err := wire.DecodeAny(raw)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: argument %d of %v: %w", ErrArguments, i+1, t, err)
		}
		args = append(args, v)
	}
	if raw := t.msg.Kwargs(); raw != nil {
		if err = wire.Check(raw, wire.WorkerLimits); err == nil {
			var v any
			v, _, err = wire.DecodeAny(raw)
			kwargs, _ = v.(map[string]any)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: arguments by name of %v: %w", ErrArguments, t, err)
		}
	}
	return args, kwargs, nil
}

// split returns the encoded arguments by position.
func (t *Task) split() ([][]byte, error) {
	if err := t.mustExist().check(); err != nil {
		return nil, err
	}
	list, err := function.Split(t.function(), &t.msg)
	if err != nil {
		return nil, fmt.Errorf("%w: %v: %w", ErrArguments, t, err)
	}
	return list, nil
}

// function returns the function of the task, nil if it is unknown here.
func (t *Task) function() *function.Function {
	if t.claimed != nil {
		return t.claimed.fn()
	}
	return t.fn
}

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
