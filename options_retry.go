package delayed

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/wire"
)

// Backoff says how long a failed task waits before it is tried again: the first delay before the first retry and so on,
// the last one before all further. The worker keeps to them exactly, without jitter. After a delay of less than a
// millisecond the task is pending at once, behind the others. There are 1 to 64 of them, none negative. MaxRetry or
// RetryUntil says how often a task is tried. Without Backoff, BackoffFunc applies, and without that
// WorkerConfig.Backoff.
func Backoff(delays ...time.Duration) TaskOption { return backoffOption(slices.Clone(delays)) }

type backoffOption []time.Duration

func (o backoffOption) wrong() (want string) {
	if n := len(o); n < 1 || n > wire.MaxRetryDelays {
		return fmt.Sprintf("1 to %d delays, found %d", wire.MaxRetryDelays, n)
	}
	for i, d := range o {
		if d < 0 {
			return fmt.Sprintf("no negative delay, found %v as number %d", d, i+1)
		}
		if want, wrong := tooShort(d); wrong {
			return fmt.Sprintf("%s, found %v as number %d", want, d, i+1)
		}
	}
	return ""
}

func (o backoffOption) extra() extra {
	ms := make([]int64, len(o))
	for i, d := range o {
		ms[i] = d.Milliseconds()
	}
	return func(x *wire.Extra, _ int64) { x.RetryDelays = ms }
}

func (o backoffOption) forQueueWith(c *callOptions) {
	if want := o.wrong(); want != "" {
		c.fault(o, want)
		return
	}
	c.write(o.extra())
}

func (o backoffOption) forFunc(d *funcDefaults) {
	if want := o.wrong(); want != "" {
		d.fault(o, want)
		return
	}
	d.spec.Policy.Delays = o
	d.write(o.extra())
}

func (o backoffOption) String() string {
	text := make([]string, min(len(o), wire.MaxRetryDelays+1))
	for i := range text {
		text[i] = o[i].String()
	}
	return "Backoff(" + strings.Join(text, ", ") + ")"
}

// MaxBackoff bounds how long a failed task waits before it is tried again, whoever says how long: Backoff, BackoffFunc
// or WorkerConfig.Backoff. It does not bound RetryIn. d is rounded up to milliseconds and must be positive.
func MaxBackoff(d time.Duration) TaskOption { return maxBackoffOption(d) }

type maxBackoffOption time.Duration

func (o maxBackoffOption) extra() extra {
	ms := wholeMilliseconds(time.Duration(o))
	return func(x *wire.Extra, _ int64) { x.RetryCap = ms }
}

func (o maxBackoffOption) forQueueWith(c *callOptions) {
	if want, wrong := notPositive(time.Duration(o)); wrong {
		c.fault(o, want)
		return
	}
	c.write(o.extra())
}

func (o maxBackoffOption) forFunc(d *funcDefaults) {
	if want, wrong := notPositive(time.Duration(o)); wrong {
		d.fault(o, want)
		return
	}
	d.spec.Policy.Longest = time.Duration(o)
	d.write(o.extra())
}

func (o maxBackoffOption) String() string { return fmt.Sprintf("MaxBackoff(%v)", time.Duration(o)) }

// RetryUntil has a failed task tried again until t, compared with Redis's clock, instead of a number of times: neither
// MaxRetry nor the worker's default counts. A task whose next try would come at t or later is archived. Snooze is not
// bounded by it. t must lie after 1970.
func RetryUntil(t time.Time) Option { return retryUntilOption(t) }

type retryUntilOption time.Time

func (o retryUntilOption) forQueueWith(c *callOptions) {
	c.writeTime(o, time.Time(o), func(x *wire.Extra, ms int64) { x.RetryUntil = ms })
}

func (o retryUntilOption) String() string { return textOfTime("RetryUntil", time.Time(o)) }

// BackoffFunc says how long a failed task of a function waits before it is tried again: the worker calls fn with how
// often the task was retried before, 0 after its first failure, and with the error of the handler, which wraps
// ErrTimeout if the handler took too long. It is called concurrently. A negative delay means none; if fn panics, the
// default of WorkerConfig.Backoff applies. MaxBackoff bounds it, and a Backoff that the task was enqueued with goes
// before it.
func BackoffFunc(fn func(retried int, err error) time.Duration) FuncOption {
	return funcOption{"BackoffFunc(…)", func(d *funcDefaults) {
		if fn == nil && d.err == nil {
			d.err = function.Refusal("BackoffFunc", "a function", "nil", "leave it out")
		}
		d.spec.Policy.Backoff = fn
	}}
}

// notPositive is tooShort for a duration that must be positive.
func notPositive(d time.Duration) (want string, wrong bool) {
	if d <= 0 {
		return "a positive duration", true
	}
	return tooShort(d)
}

// writeTime adds an option that writes a time into messages, by set, which gets it in ms since 1970.
func (o *callOptions) writeTime(option fmt.Stringer, t time.Time, set func(x *wire.Extra, ms int64)) {
	ms := t.UnixMilli()
	if ms <= 0 || t.Year() > maxYear {
		o.fault(option, fmt.Sprintf("a time after 1970, up to the year %d", maxYear))
		return
	}
	o.write(func(x *wire.Extra, _ int64) { set(x, ms) })
}

// textOfTime returns the text of an option with a time.
func textOfTime(name string, t time.Time) string {
	return name + "(" + t.Format(time.RFC3339Nano) + ")"
}

// wholeMilliseconds rounds up, because messages omit 0.
func wholeMilliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}
