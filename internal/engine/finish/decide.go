package finish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/isolate"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/sweep"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Decider decides how claims end. All executors share it.
type Decider struct {
	Program     child.Program
	IsFailure   func(error) bool // nil: every error is a failure
	Backoff     func(retried int) time.Duration
	Worker      string // id
	Log         loop.Journal
	Lines       *loop.LineLimit // limits log lines about tasks
	Events      *events.Listeners
	Isolation   *child.Isolation // runs tasks in child processes; nil: there are none
	HandlersCtx context.Context  // parent of all handlers' contexts; canceled with the cause ErrShutdown
}

// Decide decides what becomes of a task whose handler has returned err, and writes it to v. It may end this goroutine
// after that, because the methods of the error, the functions that are asked about it and the logger are users' code,
// which may call runtime.Goexit.
func (d *Decider) Decide(c *lane.Claim, err error, now time.Time, v *Decided) {
	made := decision{Decider: d, c: c, err: err, now: now, callUserCode: true}
	defer func() {
		if v.made {
			return
		}
		// A nil pointer in an error is a common mistake, which must not end the process.
		if p := recover(); p != nil {
			err = fmt.Errorf("delayed: the error of the handler, a %T, or a function that was asked about it "+
				"(WorkerConfig.IsFailure, WorkerConfig.Backoff, BackoffFunc) panicked: %v; does it return a nil "+
				"pointer as an error? The error: %v", err, p, err)
		} else {
			err = child.Exited(err)
		}
		made = decision{Decider: d, c: c, err: err, now: now}
		made.makeInto(v)
	}()
	made.remote = child.RemoteOf(err)
	made.makeInto(v)
}

// Decided is what becomes of a task.
type Decided struct {
	made bool // the rest is set
	End  lane.Ending
	Done bool  // acknowledge the task as if it had succeeded
	Err  error // that was decided about: the handler's, unless that cannot be used
}

// decision decides about one task whose handler has returned an error.
type decision struct {
	*Decider
	c            *lane.Claim
	err          error
	now          time.Time    // by Redis's clock
	callUserCode bool         // call functions of users, such as IsFailure
	remote       *child.Error // the error of a child process; nil: of this one

	msg  wire.Message // the message as it is filed
	info wire.Info
	log  func() // says what becomes of the task
}

// makeInto decides, and logs the decision when it stands.
func (d *decision) makeInto(v *Decided) {
	v.End, v.Done = d.make()
	v.Err, v.made = d.err, true
	if d.log != nil {
		d.log()
	}
}

func (d *decision) make() (e lane.Ending, done bool) {
	says, wait := lane.Said(d.err)
	if errors.Is(context.Cause(d.HandlersCtx), lane.ErrShutdown) &&
		(says == lane.DecisionNone || says == lane.DecisionRetryIn) {
		// The worker stops and has canceled the handler. This counts neither as a retry nor as a death.
		return lane.Ending{Claim: d.c, Outcome: lifecycle.OutcomeRelease}, false
	}
	d.prepare()
	switch says {
	case lane.DecisionDrop:
		d.say(loop.InfoLevel, -1, "task dropped: its handler said so")
		if d.c.NeedsComplete() {
			d.info.Reason = state.ReasonDropped
			e = EndComplete(d.c, &d.info)
			e.Outcome = lifecycle.OutcomeDrop
			return e, false
		}
		return lane.Ending{}, true
	case lane.DecisionSnooze:
		d.info.Reason, d.info.Error, d.info.Stack = state.ReasonSnoozed, "", "" // it has not failed
		d.say(loop.DebugLevel, wait, "task snoozed")
		return d.file(lifecycle.OutcomeSnooze, wait, d.again(wait)), false
	default:
	}
	late, _ := d.err.(*lane.TimeoutError) //nolint:errorlint // conclude wraps it around all others
	switch {
	case d.misfit():
		if fields := d.c.Fn.UnknownFields(&d.c.Msg); len(fields) > 0 {
			return d.Park(d.c, state.ReasonUnknownFields, d.now, fields...), false
		}
		// A retry with the same bytes would fail again.
		d.info.Reason = state.ReasonArguments
		d.say(loop.ErrorLevel, -1, "task archived: its arguments do not fit the function")
		return d.file(lifecycle.OutcomeArchive, lifecycle.ArchivedLife, d.c.Raw), false
	case says == lane.DecisionArchive:
		return d.archive("its handler discarded it"), false
	case errors.Is(d.err, isolate.ErrNotBegun): // its time was over while no child process started
		return d.postpone(), false
	case d.diedInQuarantine():
		return d.countDeath(), false
	case late != nil && d.c.Fn.Policy.FailOnTimeout:
		return d.archive("it took too long"), false
	}
	if says != lane.DecisionRetryIn && !d.failed() {
		return d.postpone(), false
	}
	return d.retryOrArchive(says == lane.DecisionRetryIn, wait), false
}

// misfit reports whether the error says that the arguments do not fit the function of this task.
func (d *decision) misfit() bool {
	if d.remote != nil {
		return d.remote.Misfit
	}
	path, ok := d.Program.Misfit(d.err)
	return ok && path == d.c.Fn.Path()
}

// diedInQuarantine reports whether the task has ended the child process in which it ran because it was a suspect.
func (d *decision) diedInQuarantine() bool {
	var death *isolate.DeathError
	return d.c.Suspicion > 0 && errors.As(d.err, &death) && death.Why == "" && !d.Isolation.Chosen(d.c)
}

// countDeath counts a death alone. The task runs again at once, unless these were too many.
func (d *decision) countDeath() lane.Ending {
	if sweep.CountDeath(&d.msg, true, d.now) >= lifecycle.MaxDeaths {
		d.info.Reason, d.info.Deaths = state.ReasonDeaths, d.msg.Meta.Deaths
		return d.archive("its processes died too often")
	}
	d.info.Reason, d.info.Deaths = "not failed", d.msg.Meta.Deaths
	d.say(loop.WarnLevel, -1, "task has ended its child process; it runs again")
	return d.file(lifecycle.OutcomePostpone, 0, d.message())
}

// failed reports whether the error is a failure. Of an error in a child process, that was asked there.
func (d *decision) failed() bool {
	switch {
	case d.remote != nil:
		return !d.remote.NotFailure
	case !d.callUserCode || d.IsFailure == nil:
		return true
	}
	return d.IsFailure(d.err)
}

// prepare fills in what all decisions need.
func (d *decision) prepare() {
	d.msg = d.c.Msg
	d.msg.Extend()
	m := &d.msg.Meta
	if m.ID == "" {
		m.ID = wire.NewTaskID()
	}
	d.info = wire.Info{
		Reason: state.ReasonFailed, Function: d.msg.Path, Error: d.err.Error(), Attempts: m.Retried + 1,
		Deaths: m.Deaths, At: d.now, Worker: d.Worker, Progress: d.c.LastReport(),
	}
	d.info.Stack = child.StackOf(d.err)
}

// say notes what the log says of the task, and how long it waits; a negative wait means that it does not.
func (d *decision) say(level loop.Level, wait time.Duration, text string) {
	if !d.Log.Wants(level) {
		return
	}
	d.log = func() {
		fields := loop.Fields{
			"queue": d.c.Lane.Store.Name, "function": d.msg.Path, "id": d.msg.Meta.ID, "attempt": d.info.Attempts,
		}
		if wait >= 0 {
			fields["delay"] = wait.String()
		}
		d.Log.Line(level, fields, d.err, text)
	}
}

// retryOrArchive retries the task, or archives it if no retries or no time are left. If given, it waits for wait, else
// for as long as delay says.
func (d *decision) retryOrArchive(given bool, wait time.Duration) lane.Ending {
	x := d.noteFailure()
	if x.RetryUntil == 0 && d.msg.Meta.Retried >= d.c.MaxRetry() {
		return d.archive("it failed and no retries are left")
	}
	if !given {
		wait = d.delay()
	}
	if d.tooLate(wait) {
		return d.archive("it failed and there is no time left for another try")
	}
	d.msg.Meta.Retried++
	x.Due = d.now.Add(wait).UnixMilli()
	d.say(loop.WarnLevel, wait, "task failed and is tried again")
	return d.file(lifecycle.OutcomeRetry, wait, d.message())
}

// postpone retries the task without counting a failure.
func (d *decision) postpone() lane.Ending {
	wait := d.delay()
	if d.tooLate(wait) {
		return d.archive("there is no time left for another try")
	}
	d.info.Reason = state.ReasonNotFailed
	d.say(loop.InfoLevel, wait, "task is tried again; this was no failure")
	return d.file(lifecycle.OutcomePostpone, wait, d.again(wait))
}

// again returns the message of a task that runs again after wait. A plain one remains as it is.
func (d *decision) again(wait time.Duration) []byte {
	m := d.c.Msg
	if m.Kind != wire.GoExtended && m.Kind != wire.PyExtended {
		return d.c.Raw
	}
	x := wire.Extra{}
	if m.Meta.Extra != nil {
		x = *m.Meta.Extra
	}
	x.Due = d.now.Add(wait).UnixMilli()
	m.Meta.Extra = &x
	return m.Append(nil)
}

// archive archives the task.
func (d *decision) archive(why string) lane.Ending {
	d.noteFailure()
	d.say(loop.ErrorLevel, -1, "task archived: "+why)
	return d.file(lifecycle.OutcomeArchive, lifecycle.ArchivedLife, d.message())
}

// message returns the message as it is filed.
func (d *decision) message() []byte {
	size := len(d.c.Raw) + 64
	if x := d.msg.Meta.Extra; x != nil {
		size += len(x.Failures)
	}
	return d.msg.Append(make([]byte, 0, size))
}

// noteFailure writes the failure into the message, once, and when the task has failed first. It returns a copy of the
// fields that the message shared with the claim.
func (d *decision) noteFailure() *wire.Extra {
	if !d.info.FirstFailed.IsZero() {
		return d.msg.Meta.Extra // noted before
	}
	x := wire.Extra{}
	if shared := d.msg.Meta.Extra; shared != nil {
		x = *shared
	}
	if x.FirstFailed == 0 {
		x.FirstFailed = d.now.UnixMilli()
	}
	x.Failures = wire.AddFailure(x.Failures, wire.Failed{
		Attempt: d.info.Attempts, At: d.now.UnixMilli(), Worker: d.info.Worker, Error: d.info.Error,
		Stack: d.info.Stack,
	})
	d.msg.Meta.Extra, d.info.FirstFailed = &x, time.UnixMilli(x.FirstFailed)
	return &x
}

func (d *decision) file(o lifecycle.Outcome, wait time.Duration, message []byte) lane.Ending {
	return lane.Ending{
		Claim: d.c, Outcome: o, Wait: wait, ID: d.msg.Meta.ID, Message: message,
		Info: d.info.Encode(), Reason: d.info.Reason,
	}
}

// delay returns how long the task waits before the next attempt. Delays of the call win over those of the function, and
// these over the worker's.
func (d *decision) delay() time.Duration {
	retried := d.msg.Meta.Retried
	p := &d.c.Fn.Policy
	longest := p.Longest
	var delays []int64
	if x := d.msg.Meta.Extra; x != nil {
		delays = x.RetryDelays
		if x.RetryCap != 0 {
			longest = wire.Milliseconds(x.RetryCap)
		}
	}
	var wait time.Duration
	switch {
	case len(delays) > 0:
		wait = wire.Milliseconds(delays[min(retried, len(delays)-1)])
	case d.remote != nil && d.remote.Delay >= 0:
		wait = d.remote.Delay
	case d.callUserCode && p.Backoff != nil && d.remote == nil:
		wait = p.Backoff(retried, d.err)
	case len(p.Delays) > 0:
		wait = p.Delays[min(retried, len(p.Delays)-1)]
	case d.callUserCode:
		wait = d.Backoff(retried)
	default:
		wait = DefaultBackoff(retried)
	}
	if longest > 0 {
		wait = min(wait, longest)
	}
	return max(wait, 0)
}

// tooLate reports whether the task could not start any more after waiting that long.
func (d *decision) tooLate(wait time.Duration) bool {
	x := d.msg.Meta.Extra
	if x == nil {
		return false
	}
	start := d.now.UnixMilli() + wait.Milliseconds()
	for _, end := range [...]int64{x.RetryUntil, x.Deadline, x.Expiry} {
		if end != 0 && start >= end {
			return true
		}
	}
	return false
}

const (
	firstRetryDelay = 5 * time.Second
	maxRetryDelay   = 6 * time.Hour
)

// DefaultBackoff returns how long a task waits after a failure, if it has been retried that often: 5 s, doubled each
// time, at most 6 h, ± 25 %.
func DefaultBackoff(retried int) time.Duration {
	d := maxRetryDelay
	if retried < 13 { // 5 s · 2¹³ is more than 6 h
		d = min(firstRetryDelay<<max(retried, 0), maxRetryDelay)
	}
	return loop.Jitter(d, 0.25)
}
