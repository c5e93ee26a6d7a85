package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/wire"
)

// decide decides what becomes of a task whose handler has returned err. done: it is to end as if it had succeeded.
func (r *runner) decide(c *Claim, err error, now time.Time) (e ending, done bool) {
	defer func() {
		// The error's methods and the functions that are asked about it are not ours. A nil pointer in an error is a
		// common slip; it must not end the process.
		if p := recover(); p != nil {
			err := fmt.Errorf("delayed: the error of the handler, a %T, or a function that was asked about it "+
				"(WorkerConfig.IsFailure, "+
				"WorkerConfig.Backoff, BackoffFunc) panicked: %v; does it return a nil pointer as an error? The "+
				"error: %v", err, p, err)
			j := decision{r: r, c: c, err: err, now: now}
			e, done = j.make()
		}
	}()
	j := decision{r: r, c: c, err: err, now: now, trust: true}
	return j.make()
}

// decision is one decision about a task whose handler has returned an error.
type decision struct {
	r     *runner
	c     *Claim
	err   error
	now   time.Time // by Redis's clock
	trust bool      // ask functions of others

	msg  wire.Message // the message as it goes on
	info wire.Info
	log  loop.Journal
}

func (j *decision) make() (e ending, done bool) {
	says, wait := said(j.err)
	if errors.Is(context.Cause(j.r.tasks), ErrShutdown) && (says == saysNothing || says == SaysRetryIn) {
		// The handler was told to stop. Neither a retry nor a death is spent.
		return ending{claim: j.c, outcome: lifecycle.OutcomeRelease}, false
	}
	j.prepare()
	switch says {
	case SaysDrop:
		j.log.WithError(j.err).Info("task dropped: its handler said so")
		if j.c.needsComplete() {
			j.info.Reason = "dropped"
			e = endComplete(j.c, &j.info)
			e.outcome = lifecycle.OutcomeDrop
			return e, false
		}
		return ending{}, true
	case SaysSnooze:
		j.info.Reason = "snoozed"
		j.log.WithField("delay", wait.String()).Debug("task snoozed")
		return j.file(lifecycle.OutcomeSnooze, wait, j.c.raw), false
	default:
	}
	late, _ := j.err.(*timeoutError) //nolint:errorlint // conclude puts it outermost
	switch {
	case j.misfit():
		if fields := j.c.fn.UnknownFields(&j.c.msg); len(fields) > 0 {
			return j.r.park(j.c, parkedFields, j.now, fields...), false
		}
		// The same bytes never fit, however often they are tried.
		j.info.Reason = lifecycle.ReasonArguments
		j.log.WithError(j.err).Error("task archived: its arguments do not fit the function")
		return j.file(lifecycle.OutcomeArchive, lifecycle.ArchivedLife, j.c.raw), false
	case says == SaysDiscard:
		return j.archive("its handler discarded it"), false
	case late != nil && j.c.fn.Policy.FailOnTimeout:
		return j.archive("it took too long"), false
	}
	if says != SaysRetryIn && j.trust && j.r.cfg.IsFailure != nil && !j.r.cfg.IsFailure(j.err) {
		return j.postpone(), false
	}
	return j.fail(says == SaysRetryIn, wait), false
}

// misfit reports whether the error says that the arguments do not fit the function of the task.
func (j *decision) misfit() bool {
	path, ok := j.r.cfg.Misfit(j.err)
	return ok && path == j.c.fn.Path()
}

// prepare fills in what all decisions need.
func (j *decision) prepare() {
	j.msg = j.c.msg
	j.msg.Extend()
	m := &j.msg.Meta
	if m.ID == "" {
		m.ID = wire.NewTaskID()
	}
	j.info = wire.Info{
		Reason: lifecycle.ReasonFailed, Function: j.msg.Path, Error: j.err.Error(), Attempts: m.Retried + 1,
		Deaths: m.Deaths, At: j.now, Worker: j.r.worker, Progress: j.c.reported(),
	}
	var panicked *function.PanicError
	if errors.As(j.err, &panicked) {
		j.info.Stack = panicked.Stack
	}
	j.log = j.r.log.With("queue", j.c.lane.store.Name).With("function", j.msg.Path).With("id", m.ID).With("attempt",
		j.info.Attempts)
}

// fail retries the task, or archives it. wait holds if it is given.
func (j *decision) fail(given bool, wait time.Duration) ending {
	x := j.failed()
	if x.RetryUntil == 0 && j.msg.Meta.Retried >= j.c.MaxRetry() {
		return j.archive("it failed and no retries are left")
	}
	if !given {
		wait = j.delay()
	}
	if j.tooLate(wait) {
		return j.archive("it failed and there is no time left for another try")
	}
	j.msg.Meta.Retried++
	j.log.WithError(j.err).WithField("delay", wait.String()).Warn("task failed and is tried again")
	return j.file(lifecycle.OutcomeRetry, wait, j.msg.Append(nil))
}

// postpone tries the task again, for a reason that is no failure.
func (j *decision) postpone() ending {
	wait := j.delay()
	if j.tooLate(wait) {
		return j.archive("there is no time left for another try")
	}
	j.info.Reason = "not failed"
	j.log.WithError(j.err).WithField("delay", wait.String()).Info("task is tried again; this was no failure")
	return j.file(lifecycle.OutcomePostpone, wait, j.c.raw)
}

// archive ends the task for good.
func (j *decision) archive(why string) ending {
	j.failed()
	j.log.WithError(j.err).Error("task archived: " + why)
	return j.file(lifecycle.OutcomeArchive, lifecycle.ArchivedLife, j.msg.Append(nil))
}

// failed notes in the message when the task has failed for the first time.
func (j *decision) failed() *wire.Extra {
	x := wire.Extra{}
	if shared := j.msg.Meta.Extra; shared != nil {
		x = *shared
	}
	if x.FirstFailed == 0 {
		x.FirstFailed = j.now.UnixMilli()
	}
	j.msg.Meta.Extra, j.info.FirstFailed = &x, time.UnixMilli(x.FirstFailed)
	return &x
}

func (j *decision) file(o lifecycle.Outcome, wait time.Duration, message []byte) ending {
	return ending{
		claim: j.c, outcome: o, wait: wait, id: j.msg.Meta.ID, message: message,
		info: j.info.Encode(), reason: j.info.Reason,
	}
}

// delay returns how long the task waits before it is tried again.
func (j *decision) delay() time.Duration {
	retried := j.msg.Meta.Retried
	p := &j.c.fn.Policy
	longest := p.Longest
	var delays []int64
	if x := j.msg.Meta.Extra; x != nil {
		delays = x.RetryDelays
		if x.RetryCap != 0 {
			longest = wire.Milliseconds(x.RetryCap)
		}
	}
	var d time.Duration
	switch {
	case len(delays) > 0:
		d = wire.Milliseconds(delays[min(retried, len(delays)-1)])
	case j.trust && p.Backoff != nil:
		d = p.Backoff(retried, j.err)
	case len(p.Delays) > 0:
		d = p.Delays[min(retried, len(p.Delays)-1)]
	case j.trust:
		d = j.r.cfg.Backoff(retried)
	default:
		d = DefaultBackoff(retried)
	}
	if longest > 0 {
		d = min(d, longest)
	}
	return max(d, 0)
}

// tooLate says whether a task that waits for so long could not start any more.
func (j *decision) tooLate(wait time.Duration) bool {
	x := j.msg.Meta.Extra
	if x == nil {
		return false
	}
	start := j.now.UnixMilli() + wait.Milliseconds()
	for _, end := range [...]int64{x.RetryUntil, x.Deadline, x.Expiry} {
		if end != 0 && start >= end {
			return true
		}
	}
	return false
}
