package delayed

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// HandlerFunc is what middleware wraps; handlers themselves are plain functions, see Worker.Register. It runs a claimed
// task. If it returns nil the task is done; after an error the task is tried again or archived, unless the error is
// that of Archive, Drop, RetryIn and Snooze.
type HandlerFunc func(ctx context.Context, t *Task) error

// TaskFromContext returns the task whose handler or middleware was given ctx, or a context made of that; nil if there
// is none.
func TaskFromContext(ctx context.Context) *Task {
	c := lane.ClaimFromContext(ctx)
	if c == nil {
		return nil
	}
	return taskOf(c)
}

// chain puts middleware around next. It returns nil if there is no middleware, so that tasks bypass it.
func chain(mw []func(HandlerFunc) HandlerFunc, next HandlerFunc) (HandlerFunc, error) {
	if len(mw) == 0 {
		return nil, nil
	}
	for i, m := range slices.Backward(mw) {
		if m == nil {
			return nil, fmt.Errorf("%w: middleware %d is nil; leave it out", ErrFunction, i+1)
		}
		var err error
		if next, err = wrap(m, next); err != nil {
			return nil, fmt.Errorf("%w: middleware %d panicked while it was built: %w", ErrFunction, i+1, err)
		}
		if next == nil {
			return nil, fmt.Errorf("%w: middleware %d: expected that it returns a HandlerFunc, found nil", ErrFunction,
				i+1)
		}
	}
	return next, nil
}

// wrap puts one piece of middleware around next. If that panics, wrap returns the panic as an error.
func wrap(m func(HandlerFunc) HandlerFunc, next HandlerFunc) (h HandlerFunc, err error) {
	defer func() {
		if p := recover(); p != nil {
			h, err = nil, function.NewPanic(p)
		}
	}()
	return m(next), nil
}

// callTask is the innermost part of every chain: it decodes the arguments and calls the function.
func callTask(ctx context.Context, t *Task) (err error) {
	if ctx == nil {
		return fmt.Errorf("%w: middleware: expected that next is given a context, found nil", ErrFunction)
	}
	if t == nil || t.claimed == nil || t.claimed.fn() == nil {
		return fmt.Errorf("%w: middleware: expected that next is given the task that the middleware was given, found "+
			"another", ErrFunction)
	}
	t.claimed.result, err = t.claimed.fn().Call(ctx, t.claimed.claim.Message())
	return public(err)
}

// callFunc is the end of the worker's middleware: it calls the function through the function's own.
func callFunc(ctx context.Context, t *Task) error {
	if t != nil && t.claimed != nil && t.claimed.fn() != nil {
		if inner := defaultsOf(t.claimed.fn()).chain; inner != nil {
			return inner(ctx, t)
		}
	}
	return callTask(ctx, t)
}

// Archive gives up on the task: no more retries, it is archived. A handler returns it, wrapped or not; that is a
// failure. Drop forgets the task instead. Archive(nil) is nil, so that return delayed.Archive(f()) archives only what
// failed.
//
// If the tree of an error contains several of Archive, Drop, RetryIn and Snooze, the outermost one applies; among
// joined errors it is the first one.
func Archive(err error) error {
	if err == nil {
		return nil
	}
	return lane.Decide(lane.DecisionArchive, 0, err)
}

// Drop forgets the task: a handler that returns it, wrapped or not, ends the task without archiving it and without
// counting a failure. A Ref.Wait for the task returns a *TaskError with the state dropped. Something is kept of the
// task only with KeepResult or Retention, for as long as they say. err, which may be nil, goes into the log.
func Drop(err error) error { return lane.Decide(lane.DecisionDrop, 0, err) }

// RetryIn tries the task again in d, rounded down to milliseconds, in place of the backoff. A handler returns it,
// wrapped or not; that is a failure as any other and spends a retry. If no retries are left, or the next try would come
// when RetryUntil, Deadline or TTL has ended, the task is archived instead. A d of zero or less tries again at once.
// RetryIn(d, nil) is nil, so that return delayed.RetryIn(d, f()) retries only what failed; to run a task again that has
// not failed there is Snooze.
func RetryIn(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return lane.Decide(lane.DecisionRetryIn, max(d, 0), err)
}

// Snooze runs the task again in d, rounded down to milliseconds. A handler returns it, wrapped or not; that is no
// failure, spends no retry, and is counted as snoozed. A d of zero or less runs the task again at once. A task may
// snooze as often as it likes; TTL and Deadline bound it.
func Snooze(d time.Duration) error { return lane.Decide(lane.DecisionSnooze, max(d, 0), nil) }

// claimedTask is a task that a worker has claimed, or that its sweeper has found with a dead worker.
type claimedTask struct {
	task   Task
	claim  *lane.Claim // nil: this worker has not claimed it
	swept  string      // the queue that it was found on, if this worker has not claimed it
	result any         // of the function, once middleware has called it
}

// taskOf returns the task of a claim whose message was decoded.
func taskOf(c *lane.Claim) *Task {
	r := &claimedTask{claim: c}
	r.task.msg, r.task.claimed = *c.Message(), r
	return &r.task
}

// sweptTask returns the task of a message that the sweeper has found with a dead worker.
func sweptTask(queue string, msg *wire.Message) *Task {
	r := &claimedTask{swept: queue}
	r.task.msg, r.task.claimed = *msg, r
	return &r.task
}

// fn returns the function of the task, nil if it is unknown here or this worker has not claimed the task.
func (r *claimedTask) fn() *function.Function {
	if r.claim == nil {
		return nil
	}
	return r.claim.Function()
}

// meta returns the metadata in the message of a claimed task; nothing for tasks that are to be enqueued.
func (t *Task) meta() wire.Meta {
	if t.mustExist().claimed == nil {
		return wire.Meta{}
	}
	return t.msg.Meta
}

// ID returns the id of a claimed task: random, or that of TaskID. It is "" for a task that is to be enqueued, which
// gets its id then, and for messages that carry none: those of a legacy queue, and of other packages.
func (t *Task) ID() string { return t.meta().ID }

// IdempotencyKey returns a key for requests to other systems that must not be carried out twice. It is the task's id:
// the same however often the task is tried again, and when it runs twice because its worker was believed dead; "" if
// the task has no id.
func (t *Task) IdempotencyKey() string { return t.ID() }

// Queue returns the name of the queue of a claimed task, "" for a task that is to be enqueued.
func (t *Task) Queue() string {
	if t.mustExist().claimed == nil {
		return ""
	}
	if t.claimed.claim == nil {
		return t.claimed.swept
	}
	return t.claimed.claim.Queue()
}

// Attempt returns which attempt of a claimed task this is: 1 for the first, one more after each failure. Runs that
// ended by a worker's death or stop, by Snooze, or by an error that WorkerConfig.IsFailure does not count are left out.
// RunAgain begins at 1 again. 0 for a task that is to be enqueued.
func (t *Task) Attempt() int {
	if t.mustExist().claimed == nil {
		return 0
	}
	return t.msg.Meta.Retried + 1
}

// MaxRetry returns how often a claimed task is tried again before it is archived: at Attempt() > MaxRetry() a failure
// is final. Of a task that this worker has not claimed, such as that of a TaskInfo, it is what the message says. 0 may
// then also mean that the message says nothing.
func (t *Task) MaxRetry() int {
	if t.mustExist().claimed == nil || t.claimed.fn() == nil {
		return t.meta().MaxRetry
	}
	return t.claimed.claim.MaxRetry()
}

// Deaths returns how many workers have died that held the claimed task, whether or not they held others. Not counted
// are workers that were stopping in good order, and those that ran one other task alone while this one only waited. A
// death more than 72 hours after the last one is counted as the first again. After three deaths of workers that held
// only this task it is archived, with the reason "deaths".
func (t *Task) Deaths() int { return t.meta().Deaths }

// EnqueuedAt returns when a claimed task was enqueued, by its producer's clock and in milliseconds; the zero time if
// that is unknown.
func (t *Task) EnqueuedAt() time.Time {
	ms := t.meta().EnqueuedAt
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Header returns the value of a header of a claimed task, "" if it has none of this key.
func (t *Task) Header(key string) string {
	x := t.meta().Extra
	if x == nil {
		return ""
	}
	return x.Headers[key]
}

// Headers returns all headers of a claimed task in a map of the caller's own, nil if there are none.
func (t *Task) Headers() map[string]string {
	x := t.meta().Extra
	if x == nil {
		return nil
	}
	return maps.Clone(x.Headers)
}

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
