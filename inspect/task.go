package inspect

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Task is what Redis knows of a task. Fields that are unknown are zero.
//
// Where a task came from is not kept in a field of its own. The task of a periodic entry has the id NAME@TIME, and with
// an Overlap the lock "p:NAME"; Headers name the trace of its producer if that uses package delayedotel.
type Task struct {
	Queue string
	State state.Task
	// ID is "" for pending and active tasks whose messages carry none, as those of legacy queues do not.
	ID string
	Contents
	Python  bool // its function is Python's
	Size    int  // bytes of its message
	Options Options

	EnqueuedAt time.Time // by the producer's clock
	// Due is when a scheduled or retrying task is due, when an aggregating one is fired, when a parked one is archived,
	// when an archived or completed one is deleted.
	Due     time.Time
	Attempt int       // which attempt the next or present run is: 1 for the first
	Deaths  int       // workers that have died with it, in the last 72 h; see delayed.Task.Deaths
	Worker  string    // id of the worker that has it, or had it last
	Claimed time.Time // when that has claimed it, of an active task
	// Started is when its handler was called, by the clock of the worker's host: of an active task that has run for
	// more than a second.
	Started time.Time

	Reason state.Reason // why it is where it is
	At     time.Time    // when that became known
	// UnknownFields are fields of its arguments that the worker lacked which has parked it with the reason "unknown
	// fields"; up to 16 paths for Function.Lacks.
	UnknownFields []string
	FirstFailed   time.Time
	Began         time.Time // when the successful run of a completed task began
	Done, Total   int64     // of its last report by Progress
	Note          string    // of the same report

	raw  []byte // its message; nil if it is too large
	info []byte

	// Problem is why Function or Args are missing: the message cannot be read, is too large, or was not kept, as with
	// KeepResult alone. Then Call is mail.Welcome(…). "" if they are not missing.
	Problem string
}

// Contents is the part of a task that may be secret.
type Contents struct {
	Function string // its path
	// Args are the arguments as MessagePack holds them: nil, bool, int64, uint64 (only above the largest int64),
	// float64, string, []byte, time.Time, []any, map[string]any, or map[any]any if a key is not a string. A struct is a
	// map[string]any by the names of its fields, or a []any on a legacy queue.
	Args    []any
	Kwargs  map[string]any // of a Python task
	Headers map[string]string
	Error   string // the text of the error of its last run, up to 4 KiB; "" after Snooze, which is no failure
	Stack   string // of the panic of its last run, up to 4 KiB
	// Failures are its last attempts that failed, oldest first, up to six; the texts of all but the last are shortened.
	// Plain messages, as those of legacy queues, remember none.
	Failures []FailedAttempt
	Result   any // of a completed task whose result is kept
	// Call is the call as code, clipped and escaped: mail.Welcome(42, "en"); mail.Welcome(…) if Args are missing, see
	// Task.Problem.
	Call string
}

// FailedAttempt is an attempt of a task that has failed.
type FailedAttempt struct {
	Attempt int       // 1 for the first
	At      time.Time // when it ended, by Redis's clock
	Worker  string    // id
	Error   string    // up to 512 bytes, of the last failure up to 4 KiB
	Stack   string    // of a panic, and of Python's exceptions; up to 1 KiB, of the last failure up to 4 KiB
}

// Options are the options of a task, by the call or by the function's defaults. A field has the name of its option
// where the comment names none. Zero means that the task has no such option: then MaxRetry, Timeout and the backoff are
// those of the registered function, or else of the worker.
type Options struct {
	MaxRetry *int // nil: the worker's default
	// Timeout is about 292 years for Timeout(0), which means no bound.
	Timeout     time.Duration
	Deadline    time.Time
	Expiry      time.Time // from when on it is too late to start it: by TTL
	RetryUntil  time.Time
	RetryDelays []time.Duration // by Backoff
	RetryCap    time.Duration   // by MaxBackoff
	Retention   time.Duration
	KeepResult  time.Duration
	// Lock is the name of the lock that the task was enqueued with. It begins with "u:" for Unique, "k:" for UniqueKey,
	// "p:" for the Overlap of a periodic entry, and "#" for a TaskID alone.
	Lock  string
	Group string // the key that Group was given
}

// mostCall bounds the text of a call, in bytes.
const mostCall = 1000

// newTask describes a task by its message and its info; both may be missing.
func (ins *Inspector) newTask(queue string, s state.Task, m redisstore.Stored, rawInfo []byte) Task {
	t := Task{Queue: queue, State: s, Size: max(len(m.Bytes), m.Size), raw: m.Bytes, info: rawInfo}
	if rawInfo != nil {
		t.know(rawInfo, &m)
	}
	switch {
	case m.Size > 0:
		t.Problem = fmt.Sprintf("the message of %d bytes is too large to be read", m.Size)
	case m.Bytes == nil:
		t.Problem = "the message is not kept"
		if t.Function != "" {
			t.Problem = "its arguments and options are not kept, only how it ended"
			t.Python = strings.Contains(t.Function, ":")
		}
	default:
		t.Size = len(m.Bytes)
		t.read(m.Bytes)
	}
	if ins.cfg.Redact != nil {
		ins.cfg.Redact(&t.Contents)
	}
	switch {
	case t.Function == "":
	case t.Problem != "":
		t.Call = Printable(ShortName(t.Function)) + "(…)"
	default:
		t.Call = callText(t.Function, t.Args, t.Kwargs, mostCall)
	}
	return t
}

// know takes over an info. That of a completed task may hold its message.
func (t *Task) know(raw []byte, m *redisstore.Stored) {
	i := wire.ParseInfo(raw)
	t.Reason, t.Error, t.Stack, t.Worker = i.Reason, i.Error, i.Stack, i.Worker
	t.At, t.FirstFailed, t.Began, t.EnqueuedAt = i.At, i.FirstFailed, i.Began, i.Enqueued
	t.Attempt, t.Deaths, t.Function, t.UnknownFields = i.Attempts, i.Deaths, i.Function, i.Fields
	if i.Reason == state.ReasonCanceled {
		t.Attempt++ // the info has how often it was retried
	}
	t.Done, t.Total, t.Note = i.Progress.Done, i.Progress.Total, i.Progress.Note
	if i.Message != nil && m.Bytes == nil {
		m.Bytes = i.Message
	}
	if i.Result != nil && wire.Check(i.Result, wire.Default) == nil {
		t.Result, _, _ = wire.DecodeAny(i.Result) // nil if it cannot be shown
	}
}

// read takes over a message.
func (t *Task) read(raw []byte) {
	m, err := wire.Parse(raw, wire.WorkerLimits)
	if err != nil {
		t.Problem = "the message cannot be read: " + err.Error()
		return
	}
	t.Function, t.Python = m.Path, m.Python()
	if m.Meta.ID != "" {
		t.ID = m.Meta.ID
	}
	if m.Meta.EnqueuedAt > 0 {
		t.EnqueuedAt = time.UnixMilli(m.Meta.EnqueuedAt)
	}
	t.Attempt = m.Meta.Retried + 1
	t.Deaths = max(t.Deaths, m.Meta.Deaths)
	if m.Meta.HasMaxRetry {
		t.Options.MaxRetry = &m.Meta.MaxRetry
	} else if t.Python && m.Retry != 0 {
		n := int(m.Retry)
		t.Options.MaxRetry = &n
	}
	if x := m.Meta.Extra; x != nil {
		t.Headers = maps.Clone(x.Headers)
		t.Options.read(x)
		t.readFailures(x)
	}
	if err := t.readArgs(&m); err != nil {
		t.Problem = "its arguments cannot be read: " + err.Error()
	}
}

// readFailures takes over the failures that a message remembers. The info has longer texts of the last one.
func (t *Task) readFailures(x *wire.Extra) {
	for _, f := range wire.ParseFailures(x.Failures) {
		t.Failures = append(t.Failures, FailedAttempt{
			Attempt: f.Attempt, At: time.UnixMilli(f.At), Worker: f.Worker, Error: f.Error, Stack: f.Stack,
		})
	}
	if n := len(t.Failures); n > 0 && t.At.Equal(t.Failures[n-1].At) && t.Error != "" {
		t.Failures[n-1].Error, t.Failures[n-1].Stack = t.Error, t.Stack
	}
}

func (o *Options) read(x *wire.Extra) {
	o.Timeout, o.RetryCap = wire.Milliseconds(x.Timeout), wire.Milliseconds(x.RetryCap)
	o.Retention, o.KeepResult = wire.Milliseconds(x.Retention), wire.Milliseconds(x.KeepResult)
	for _, ms := range x.RetryDelays {
		o.RetryDelays = append(o.RetryDelays, wire.Milliseconds(ms))
	}
	for dst, ms := range map[*time.Time]int64{
		&o.Deadline: x.Deadline, &o.Expiry: x.Expiry, &o.RetryUntil: x.RetryUntil,
	} {
		if ms > 0 {
			*dst = time.UnixMilli(ms)
		}
	}
	o.Lock, o.Group = x.Lock, x.Group
}

// readArgs decodes the arguments of a message.
func (t *Task) readArgs(m *wire.Message) error {
	if t.Python {
		return t.readPython(m)
	}
	if len(m.Payload) == 0 {
		return nil
	}
	v, _, err := wire.DecodeAny(m.Payload)
	if err != nil {
		return err
	}
	// Without a number of arguments, an array holds several, unless the function has one parameter: that only its
	// worker knows.
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	t.Args = list
	return nil
}

// readPython decodes the arguments of a Python function, which may hold what only Python reads.
func (t *Task) readPython(m *wire.Message) error {
	var decoded [2]any
	for i, part := range [][]byte{m.Args(), m.Kwargs()} {
		if part == nil {
			continue
		}
		err := wire.Check(part, wire.WorkerLimits)
		if err == nil {
			decoded[i], _, err = wire.DecodeAny(part)
		}
		if err != nil {
			return err
		}
	}
	t.Args, _ = decoded[0].([]any)
	switch kwargs := decoded[1].(type) {
	case map[string]any:
		if len(kwargs) > 0 {
			t.Kwargs = kwargs
		}
	case map[any]any:
		t.Kwargs = make(map[string]any, len(kwargs))
		for k, value := range kwargs {
			t.Kwargs[fmt.Sprint(k)] = value
		}
	}
	return nil
}
