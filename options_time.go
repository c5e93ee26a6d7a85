package delayed

import (
	"fmt"
	"math"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// Timeout bounds one run of the task: after d, rounded up to milliseconds, the context of its handler ends with cause
// ErrTimeout. The handler decides what follows. If it returns an error the task has failed, and is retried or archived
// as after any other failure; see ArchiveOnTimeout. If it returns none, the task is done. A handler that does not look
// at its context is not ended by force; see WorkerConfig.StuckAfter.
//
// Timeout(0) is no bound, whatever the function and the worker say; a negative d is an error. Without the option,
// WorkerConfig.Timeout applies. Of Timeout and Deadline, the earlier one applies.
func Timeout(d time.Duration) TaskOption { return timeoutOption(d) }

type timeoutOption time.Duration

func (o timeoutOption) extra() extra {
	ms := wire.Unlimited
	if o > 0 {
		ms = wholeMilliseconds(time.Duration(o))
	}
	return func(x *wire.Extra, _ int64) { x.Timeout = ms }
}

func (o timeoutOption) wrong() (want string, wrong bool) {
	if o < 0 {
		return "a positive duration, or 0 for no bound", true
	}
	return tooShort(time.Duration(o))
}

func (o timeoutOption) forQueueWith(c *callOptions) {
	if want, wrong := o.wrong(); wrong {
		c.fault(o, want)
		return
	}
	c.write(o.extra())
}

func (o timeoutOption) forFunc(d *funcDefaults) {
	if want, wrong := o.wrong(); wrong {
		d.fault(o, want)
		return
	}
	if d.spec.Policy.Timeout = time.Duration(o); o == 0 {
		d.spec.Policy.Timeout = math.MaxInt64
	}
	d.write(o.extra())
}

func (o timeoutOption) String() string { return fmt.Sprintf("Timeout(%v)", time.Duration(o)) }

// Deadline says when the task must be over, compared with Redis's clock: at t the context of its handler ends with
// cause ErrTimeout, as after Timeout. A task that has not started by then is not run, nor is one that would be tried
// again later: it is archived. t must lie after 1970, and after the moment of In or At, if they are given. A t in the
// past is accepted: the first worker that claims the task archives it with the reason "expired".
func Deadline(t time.Time) Option { return deadlineOption(t) }

type deadlineOption time.Time

func (o deadlineOption) forQueueWith(c *callOptions) {
	c.writeTime(o, time.Time(o), func(x *wire.Extra, ms int64) { x.Deadline = ms })
}

func (o deadlineOption) String() string { return textOfTime("Deadline", time.Time(o)) }

// TTL says how long the task is of use: one that has not started d after it was enqueued, rounded up to milliseconds,
// is not run but archived, with the reason "expired", and counted as expired. That applies to each start, so the task
// is not tried again after d either. The producer computes the end by its own clock, and workers compare it with
// Redis's clock: a producer whose clock is a minute behind takes a minute off d, and one whose clock is a minute ahead
// adds a minute. A task that In or At postpones for as long as its TTL, or longer, is refused. d must be positive.
func TTL(d time.Duration) TaskOption { return ttlOption(d) }

type ttlOption time.Duration

func (o ttlOption) extra() extra {
	ms := wholeMilliseconds(time.Duration(o))
	return func(x *wire.Extra, nowMs int64) { x.Expiry = nowMs + ms }
}

func (o ttlOption) forQueueWith(c *callOptions) {
	if want, wrong := notPositive(time.Duration(o)); wrong {
		c.fault(o, want)
		return
	}
	c.write(o.extra())
}

func (o ttlOption) forFunc(d *funcDefaults) {
	if want, wrong := notPositive(time.Duration(o)); wrong {
		d.fault(o, want)
		return
	}
	d.write(o.extra())
}

func (o ttlOption) String() string { return fmt.Sprintf("TTL(%v)", time.Duration(o)) }

// ArchiveOnTimeout archives tasks of a function that exceed their Timeout or Deadline and return an error, instead of
// retrying them.
func ArchiveOnTimeout() FuncOption {
	return funcOption{"ArchiveOnTimeout()", func(d *funcDefaults) { d.spec.Policy.FailOnTimeout = true }}
}
