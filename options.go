package delayed

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/wire"
)

// maxYear bounds times, so that they are exact as numbers of milliseconds in Redis.
const maxYear = 9999

// maxRetryLimit keeps retry counts within the integers of every reader of messages.
const maxRetryLimit = 1 << 30

// Option changes the tasks that Delay, DelayContext, Enqueue and DelayMany enqueue; give it to Queue.With, or to the
// Options of a periodic Entry. When an option is given twice, the last one applies, and so it is with In and At, and
// with Unique and UniqueKey. Headers of several keys are all kept: for each key the last value applies. Debounce takes
// the key and the ttl of a Unique or UniqueKey beside it, in either order.
//
// Durations and times are rounded down to milliseconds, except that Timeout, TTL and MaxBackoff are rounded up. A
// positive duration below a millisecond, as in In(60), is refused: it was probably meant in another unit.
//
// The String method of an option shows it as it is written in code.
type Option interface {
	fmt.Stringer
	// The name appears in the compiler's error about an option that does not belong here.
	forQueueWith(*callOptions)
}

// With returns a queue that enqueues all tasks with the given options, in addition to those of q. It is cheap and
// leaves q as it is.
//
//	q.With(delayed.In(time.Hour), delayed.MaxRetry(5)).Delay(mail.Welcome, userID, "en")
func (q *Queue) With(opts ...Option) *Queue {
	must(q.checkMade())
	c := *q
	c.options.given = c.options.given || len(opts) > 0
	for i, o := range opts {
		if o == nil {
			c.optErr = fmt.Errorf("%w: option %d is nil: leave it out", ErrArguments, i+1)
			return &c
		}
		o.forQueueWith(&c.options)
	}
	if c.options.err != nil {
		c.optErr = c.options.err
	}
	if id := c.options.id; id != nil && (*id == "" || len(*id) > wire.MaxTaskID || !utf8.ValidString(*id)) {
		c.optErr = fmt.Errorf("%w: TaskID of %d bytes, expected 1 to %d in UTF-8", ErrArguments, len(*id),
			wire.MaxTaskID)
	}
	if c.optErr == nil && len(c.options.headers) > 0 {
		c.optErr = checkHeaders(c.options.headers, "Header")
	}
	if c.options.front && c.options.later {
		c.optErr = fmt.Errorf("%w: Front with In, At or Debounce: a scheduled task joins the end of its queue when "+
			"it is due", ErrArguments)
	}
	if c.options.timed && c.options.debounce {
		c.optErr = fmt.Errorf("%w: Debounce with In or At: Debounce says when the task runs: leave one of them out",
			ErrArguments)
	}
	return &c
}

// callOptions are the combined options of one call. The zero value is a call without options.
type callOptions struct {
	due      int64 // ms: from now if relative, else since 1970
	relative bool
	later    bool // In or At is given, or Debounce
	timed    bool // In or At is given
	debounce bool // Debounce is given
	maxRetry *int
	id       *string
	extras   []extra
	kept     bool // the end of the task is recorded
	group    *string
	gather   *wire.Gather
	err      error             // of the first faulty option; wraps ErrArguments
	headers  map[string]string // by Header; copied before a change
	injected map[string]string // headers with those of Inject; nil: it found none
	locks    []lockOption
	front    bool
	given    bool // With was given options
}

// extra is an option of a function or of a call that writes into the message. nowMs is the producer's time.
type extra interface {
	write(x *wire.Extra, nowMs int64)
}

// extraOf returns what the defaults of a function and the options of a call write into the message; the options take
// precedence. nil: nothing.
func extraOf(defaults, options []extra, nowMs int64) *wire.Extra {
	if len(defaults)+len(options) == 0 {
		return nil
	}
	x := new(wire.Extra)
	for _, o := range defaults {
		o.write(x, nowMs)
	}
	for _, o := range options {
		o.write(x, nowMs)
	}
	return x
}

// dueAt returns when a scheduled task is due, in ms since 1970. nowMs is the producer's time.
func (o *callOptions) dueAt(nowMs int64) int64 {
	if o.relative {
		return nowMs + o.due
	}
	return o.due
}

// startsInTime returns an error if the task is due only when it may no longer start. x is what its message says, nowMs
// the producer's time.
func (o *callOptions) startsInTime(x *wire.Extra, nowMs int64) error {
	if !o.later || x == nil {
		return nil
	}
	switch due := o.dueAt(nowMs); {
	case x.Expiry != 0 && due >= x.Expiry:
		return fmt.Errorf("options TTL and In, At or Debounce: expected a TTL that is longer than the delay, found "+
			"one that ends %v before the task is due", time.Duration(due-x.Expiry)*time.Millisecond)
	case x.Deadline != 0 && due >= x.Deadline:
		return fmt.Errorf("options Deadline and In, At or Debounce: expected a deadline after the task is due, found "+
			"one that lies %v before", time.Duration(due-x.Deadline)*time.Millisecond)
	default:
		return nil
	}
}

// In postpones the task by d, counted by Redis's clock from the moment Redis accepts it. A d of zero or less makes it
// pending at once; a positive d below a millisecond is refused, see Option. For a moment that was computed there is At.
func In(d time.Duration) Option { return inOption(d) }

type inOption time.Duration

func (o inOption) forQueueWith(c *callOptions) {
	c.refuses(o, tooShort(time.Duration(o)))
	c.dueIn(time.Duration(o))
	c.timed = true
}

func (o inOption) String() string { return fmt.Sprintf("In(%v)", time.Duration(o)) }

// At schedules the task for t, compared with Redis's clock. A time in the past makes it pending as soon as a worker
// looks; the zero time is refused.
func At(t time.Time) Option { return atOption(t) }

type atOption time.Time

func (o atOption) forQueueWith(c *callOptions) {
	if t := time.Time(o); t.IsZero() || t.Year() > maxYear {
		c.refuses(o, fmt.Sprintf("a time that is not zero, up to the year %d", maxYear))
	}
	c.due, c.relative, c.later = max(time.Time(o).UnixMilli(), 0), false, true
	c.timed = true
}

func (o atOption) String() string { return "At(" + time.Time(o).Format(time.RFC3339Nano) + ")" }

// TaskOption is an option for Queue.With as well as for Func. Given to Func it is the function's default. Given to With
// it applies to all tasks of the queue that With returns, and goes before the function's default.
type TaskOption interface {
	Option
	FuncOption
}

// MaxRetry sets how often a failed task is tried again before it is archived. 0 archives it after the first failure; a
// negative n means 0. Without it, WorkerConfig.MaxRetry applies.
func MaxRetry(n int) TaskOption { return maxRetryOption(min(max(n, 0), maxRetryLimit)) }

type maxRetryOption int

func (o maxRetryOption) forQueueWith(c *callOptions) {
	n := int(o)
	c.maxRetry = &n
}

func (o maxRetryOption) forFunc(d *funcDefaults) {
	n := int(o)
	d.spec.Policy.MaxRetry = &n
}

func (o maxRetryOption) String() string { return fmt.Sprintf("MaxRetry(%d)", int(o)) }

// TaskID gives the task this id in place of a random one. An id that belongs to a task of the queue, be it pending,
// active, scheduled, retrying, parked, archived or completed and kept, is refused with a *DuplicateError;
// OnConflict(ConflictSkip) makes that a success. So a call whose outcome is unknown can be repeated while its first
// task exists or is kept. The id is at most 256 bytes long and not empty.
//
// The id is free again when the task has succeeded, was dropped by its handler (Drop), or has ended because it was
// canceled; with KeepResult or Retention only once they keep it no longer. The id of an archived task is free when the
// task is deleted, by hand or because the archive keeps it no longer. The id of a task that is still pending or active
// 7 days after it was due is free as well; waits for retries add to these days.
func TaskID(id string) Option { return taskIDOption(id) }

type taskIDOption string

func (o taskIDOption) forQueueWith(c *callOptions) {
	id := string(o)
	c.id = &id
}

func (o taskIDOption) String() string { return fmt.Sprintf("TaskID(%q)", string(o)) }

// Header adds a header to the task: a string that middleware and handlers read by Task.Header, such as a trace context
// or a tenant. It travels beside the arguments and stays with the task when it is retried. It may be given for several
// keys; of several values for one key the last one counts. Keys and values are UTF-8, at most 64 headers and 8,192
// bytes in all; keys are not empty and compared as they are. QueueConfig.Inject adds headers to every task of a queue.
func Header(key, value string) Option { return headerOption{key, value} }

type headerOption struct{ key, value string }

func (o headerOption) forQueueWith(c *callOptions) {
	c.headers = maps.Clone(c.headers) // queues made by With share it
	if c.headers == nil {
		c.headers = map[string]string{}
	}
	c.headers[o.key] = o.value
}

func (o headerOption) String() string { return fmt.Sprintf("Header(%q, %q)", o.key, o.value) }

// checkHeaders returns an error if a message cannot carry the headers. from says where they come from.
func checkHeaders(headers map[string]string, from string) error {
	if len(headers) > wire.MaxHeaders {
		return fmt.Errorf("%w: %s: %d headers, expected at most %d", ErrArguments, from, len(headers), wire.MaxHeaders)
	}
	size := 0
	for key, value := range headers {
		if key == "" || !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("%w: %s: header %q, expected a key that is not empty, and key and value in UTF-8",
				ErrArguments, from, key)
		}
		size += len(key) + len(value)
	}
	if size > wire.MaxHeaderBytes {
		return fmt.Errorf("%w: %s: headers of %d bytes, expected at most %d: pass large values as arguments",
			ErrArguments, from, size, wire.MaxHeaderBytes)
	}
	return nil
}

// withHeaders returns x with headers in it.
func withHeaders(x *wire.Extra, headers map[string]string) *wire.Extra {
	if len(headers) == 0 {
		return x
	}
	if x == nil {
		x = new(wire.Extra)
	}
	x.Headers = headers // shared: neither is changed from here on
	return x
}

// Timeout bounds one run of the task: after d, rounded up to milliseconds, the context of its handler ends with cause
// ErrTimeout. The handler decides what follows. If it returns an error the task has failed, and is retried or archived
// as after any other failure; see ArchiveOnTimeout. If it returns none, the task is done. A handler that does not look
// at its context is not ended by force; see WorkerConfig.StuckAfter.
//
// Timeout(0) is no bound, whatever the function and the worker are set to; a negative d is an error. Without the
// option, WorkerConfig.Timeout applies. Of Timeout and Deadline, the earlier one applies.
func Timeout(d time.Duration) TaskOption { return durationOption{"Timeout", d} }

// TTL says how long the task is of use: one that has not started d after it was enqueued, rounded up to milliseconds,
// is not run but archived, with the reason "expired", and counted as expired. That applies to each start, so the task
// is not tried again after d either. The producer computes the end by its own clock, and workers compare it with
// Redis's clock: a producer whose clock is a minute behind takes a minute off d, and one whose clock is a minute ahead
// adds a minute. A task that In or At postpones for as long as its TTL, or longer, is refused. d must be positive.
func TTL(d time.Duration) TaskOption { return durationOption{"TTL", d} }

// MaxBackoff bounds how long a failed task waits before it is tried again, whoever says how long: Backoff, BackoffFunc
// or WorkerConfig.Backoff. It does not bound RetryIn. d is rounded up to milliseconds and must be positive.
func MaxBackoff(d time.Duration) TaskOption { return durationOption{"MaxBackoff", d} }

// KeepResult keeps how the task ended (succeeded, dropped or canceled) and what the function returned, for d after its
// end. That is the T of a result T or (T, error), which must be of a type that can be an argument. Await reads it, in
// any process. If the function returns no T, or the task has not succeeded, Ref.Wait still reports how it ended.
// Ref.Wait and Await also return when the task fails for good. A d of zero or less keeps nothing.
func KeepResult(d time.Duration) TaskOption { return durationOption{"KeepResult", d} }

// Retention keeps the task itself for d after it has succeeded or was dropped or canceled: its call, its times and what
// the function returned. Without it a task is gone once it is done. A d of zero or less keeps nothing. With KeepResult,
// everything is kept for the longer of the two.
func Retention(d time.Duration) TaskOption { return durationOption{"Retention", d} }

// durationOption is one of the options above, by its name.
type durationOption struct {
	name string
	d    time.Duration
}

func (o durationOption) keeps() bool { return o.name == "KeepResult" || o.name == "Retention" }

// wrong returns what was expected in place of the duration; "" if it is fine.
func (o durationOption) wrong() (want string) {
	switch {
	case o.d < 0 && o.name == "Timeout":
		return "a positive duration, or 0 for no bound"
	case o.d <= 0 && (o.name == "TTL" || o.name == "MaxBackoff"):
		return "a positive duration"
	}
	return tooShort(o.d)
}

func (o durationOption) write(x *wire.Extra, nowMs int64) {
	ms := o.d.Milliseconds()
	if o.d > time.Duration(ms)*time.Millisecond && !o.keeps() {
		ms++ // because messages omit 0
	}
	switch o.name {
	case "Timeout":
		if x.Timeout = ms; ms == 0 {
			x.Timeout = wire.Unlimited
		}
	case "TTL":
		x.Expiry = nowMs + ms
	case "MaxBackoff":
		x.RetryCap = ms
	case "KeepResult":
		x.KeepResult = max(ms, 0)
	case "Retention":
		x.Retention = max(ms, 0)
	}
}

func (o durationOption) forQueueWith(c *callOptions) {
	if c.refuses(o, o.wrong()) {
		return
	}
	c.write(o)
	if o.keeps() {
		c.kept = o.d > 0
	}
}

func (o durationOption) forFunc(d *funcDefaults) {
	if d.refuses(o, o.wrong()) {
		return
	}
	d.extras = append(d.extras, o)
	switch o.name {
	case "Timeout":
		if d.spec.Policy.Timeout = o.d; o.d == 0 {
			d.spec.Policy.Timeout = math.MaxInt64
		}
	case "MaxBackoff":
		d.spec.Policy.Longest = o.d
	}
}

func (o durationOption) String() string { return fmt.Sprintf("%s(%v)", o.name, o.d) }

// Deadline sets when the task must be over, compared with Redis's clock: at t the context of its handler ends with
// cause ErrTimeout, as after Timeout. A task that has not started by then is not run, nor is one that would be tried
// again later: it is archived. t must lie after 1970, and after the moment of In or At, if they are given. A t in the
// past is accepted: the first worker that claims the task archives it with the reason "expired".
func Deadline(t time.Time) Option { return timeOption{"Deadline", t} }

// RetryUntil has a failed task tried again until t, compared with Redis's clock, instead of a number of times: neither
// MaxRetry nor the worker's default counts. A task whose next try would come at t or later is archived. Snooze is not
// bounded by it. t must lie after 1970.
func RetryUntil(t time.Time) Option { return timeOption{"RetryUntil", t} }

// timeOption is Deadline or RetryUntil, by its name.
type timeOption struct {
	name string
	t    time.Time
}

func (o timeOption) write(x *wire.Extra, _ int64) {
	if o.name == "Deadline" {
		x.Deadline = o.t.UnixMilli()
	} else {
		x.RetryUntil = o.t.UnixMilli()
	}
}

func (o timeOption) forQueueWith(c *callOptions) {
	if o.t.UnixMilli() <= 0 || o.t.Year() > maxYear {
		c.refuses(o, fmt.Sprintf("a time after 1970, up to the year %d", maxYear))
		return
	}
	c.write(o)
}

func (o timeOption) String() string { return o.name + "(" + o.t.Format(time.RFC3339Nano) + ")" }

// Backoff sets how long a failed task waits before it is tried again: the first delay before the first retry and so on,
// the last one before all further. The worker keeps to them exactly, without jitter. After a delay of less than a
// millisecond the task is pending at once, behind the others. There are 1 to 64 of them, none negative. MaxRetry or
// RetryUntil decides how often a task is tried. Without Backoff, BackoffFunc applies, and without that
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
		if want := tooShort(d); want != "" {
			return fmt.Sprintf("%s, found %v as number %d", want, d, i+1)
		}
	}
	return ""
}

// retryDelays are those of Backoff in ms, which messages share.
type retryDelays []int64

func (d retryDelays) write(x *wire.Extra, _ int64) { x.RetryDelays = d }

func (o backoffOption) retryDelays() retryDelays {
	ms := make(retryDelays, len(o))
	for i, d := range o {
		ms[i] = d.Milliseconds()
	}
	return ms
}

func (o backoffOption) forQueueWith(c *callOptions) {
	if c.refuses(o, o.wrong()) {
		return
	}
	c.write(o.retryDelays())
}

func (o backoffOption) forFunc(d *funcDefaults) {
	if d.refuses(o, o.wrong()) {
		return
	}
	d.spec.Policy.Delays = o
	d.extras = append(d.extras, o.retryDelays())
}

func (o backoffOption) String() string {
	text := make([]string, min(len(o), wire.MaxRetryDelays+1))
	for i := range text {
		text[i] = o[i].String()
	}
	return "Backoff(" + strings.Join(text, ", ") + ")"
}

// write adds what an option writes into messages. Queues made by With share the slice.
func (o *callOptions) write(e extra) { o.extras = append(slices.Clip(o.extras), e) }

// dueIn schedules the task for d from now, if that is later.
func (o *callOptions) dueIn(d time.Duration) {
	o.due, o.relative, o.later = d.Milliseconds(), true, d > 0
}

// refuses notes that something else was expected in place of an option, and reports it; it accepts an option if want
// is empty.
func (o *callOptions) refuses(option fmt.Stringer, want string) bool {
	if want != "" && o.err == nil {
		o.err = fmt.Errorf("%w: option %v: expected %s", ErrArguments, option, want)
	}
	return want != ""
}
