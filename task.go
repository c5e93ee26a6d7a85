package delayed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Task is a call that is to run later: a function's path and its arguments. Create one with Call, NewGoTask or
// NewPyTask; it is immutable and may be enqueued more than once, each time as a task with an id of its own.
//
// Middleware, listeners and TaskFromContext get claimed tasks as a Task, and a TaskInfo has one too. Every Task has
// Path, Arg, Args and String. The other methods, such as ID, Queue, Attempt, Deaths and Header, return zero for a Task
// that is yet to be enqueued.
type Task struct {
	msg      wire.Message
	maxRetry *int               // the function's default
	extras   []extra            // the function's defaults
	locks    []lockOption       // the function's defaults
	fn       *function.Function // nil: given by path
	err      error
	claimed  *claimedTask // nil for a task that is to be enqueued
	legacy   *legacyArgs  // its arguments on legacy queues; nil: as msg has them
	count    int          // of its arguments; for a claimed task, see its message
	small    [40]byte     // memory of a small payload
}

// Call makes a task of fn and args, for DelayMany, Enqueue, Entry.Task or Ref.RunAgainWith; it neither calls fn nor
// enqueues anything. Whether the arguments fit is checked now and reported when the task is enqueued.
func Call(fn any, args ...any) *Task {
	f, err := functionOf(fn)
	if err != nil {
		return &Task{err: err}
	}
	d := defaultsOf(f)
	t := &Task{
		msg: wire.Message{Kind: wire.GoPlain, Path: f.Path()}, maxRetry: f.Policy.MaxRetry, extras: d.extras,
		locks: d.locks, fn: f, count: len(args),
	}
	var structs bool
	if t.msg.Payload, structs, err = f.AppendPayload(wire.ByName, t.small[:0], args, noArgument); err != nil {
		return &Task{err: public(err)}
	}
	if structs { // encode now for both kinds of queues, since the values may change later
		t.legacy = new(legacyArgs)
		if t.legacy.payload, _, err = f.AppendPayload(wire.ByPosition, nil, args, noArgument); err != nil {
			return &Task{err: public(err)}
		}
	}
	return t
}

// NewGoTask returns the task of calling the Go function with the given path, such as "example.com/app/mail.Welcome",
// which need not be linked into this program. Arguments are encoded by their own types and checked by the worker; a
// mistake in path or arguments shows only there, or when the task is enqueued on a queue with QueueConfig.Check.
func NewGoTask(path string, args ...any) *Task {
	if err := checkPath(path, false); err != nil {
		return &Task{err: err}
	}
	t := &Task{
		msg:   wire.Message{Kind: wire.GoExtended, Path: path, Meta: wire.Meta{HasN: true, N: len(args)}},
		count: len(args),
	}
	var structs bool
	var err error
	if t.msg.Payload, structs, err = function.EncodeArgs(wire.ByName, path, args, noArgument); err == nil && structs {
		t.legacy = new(legacyArgs)
		t.legacy.payload, _, err = function.EncodeArgs(wire.ByPosition, path, args, noArgument)
	}
	if err != nil {
		return &Task{err: public(err)}
	}
	return t
}

// NewPyTask returns the task of calling the Python function with the given path, such as "mail.tasks:welcome", in a
// Python worker. Both args and kwargs may be nil. A struct is a dict there: of its fields' names, or what their msgpack
// tags say.
func NewPyTask(path string, args []any, kwargs map[string]any) *Task {
	if err := checkPath(path, true); err != nil {
		return &Task{err: err}
	}
	t := &Task{msg: wire.Message{Kind: wire.Py, Path: path}, count: len(args) + len(kwargs)}
	if len(args) == 0 && len(kwargs) == 0 {
		return t
	}
	for i, a := range args {
		if got := noArgument(a); got != "" {
			return &Task{err: &ArgumentError{Func: path, Index: i, Want: "a value", Got: got}}
		}
	}
	for name, a := range kwargs {
		if got := noArgument(a); got != "" {
			return &Task{err: fmt.Errorf("%w: %s: argument %s: expected a value, found %s", ErrArguments, path, name,
				got)}
		}
	}
	var structs bool
	if t.msg.Py, structs, t.err = encodePython(wire.ByName, path, args, kwargs); t.err == nil && structs {
		t.legacy = new(legacyArgs)
		t.legacy.py, _, t.err = encodePython(wire.ByPosition, path, args, kwargs)
	}
	return t
}

// Path returns the path of the function, "" if the task could not be built.
func (t *Task) Path() string { return t.mustExist().msg.Path }

// mustExist panics if t is nil, as TaskFromContext may return it.
func (t *Task) mustExist() *Task {
	if t == nil {
		panic(errNoReceived)
	}
	return t
}

// check returns an error if t cannot be enqueued.
func (t *Task) check() error {
	switch {
	case t == nil || t.err == nil && t.msg.Path == "":
		return errNoTask
	default:
		return t.err
	}
}

// arguments returns how many arguments the task has; negative: unknown.
func (t *Task) arguments() int {
	switch {
	case t.claimed == nil:
		return t.count
	case t.msg.Meta.HasN:
		return t.msg.Meta.N
	case t.claimed.fn() != nil:
		return t.claimed.fn().Arity()
	}
	return -1
}

// String returns path, id and number of arguments for logs, such as "task example.com/app/mail.Welcome (2 arguments)".
// It never shows the arguments, which may be secret.
func (t *Task) String() string {
	switch {
	case t == nil:
		return "no task"
	case t.err != nil || t.msg.Path == "":
		return "task that was not built"
	}
	text := "task " + t.msg.Path
	if id := t.ID(); id != "" {
		text += " " + id
	}
	switch n := t.arguments(); {
	case n == 1:
		text += " (1 argument)"
	case n >= 0:
		text += fmt.Sprintf(" (%d arguments)", n)
	}
	return wire.OneLine(text)
}

// GoString is String.
func (t *Task) GoString() string { return t.String() }

// encodePython encodes the arguments of a Python function, and says whether there is a struct among them.
func encodePython(
	form wire.Form, path string, args []any, kwargs map[string]any,
) (call *wire.PyCall, structs bool, _ error) {
	call = new(wire.PyCall)
	encode := func(dst *[]byte, value reflect.Value) error {
		codec, err := wire.CodecFor(value.Type())
		one := false
		if err == nil {
			*dst, one, err = codec.AppendAs(form, nil, value)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrArguments, path, err)
		}
		structs = structs || one
		return nil
	}
	if len(args) > 0 {
		if err := encode(&call.Args, reflect.ValueOf(args)); err != nil {
			return nil, false, err
		}
	}
	if len(kwargs) > 0 {
		if err := encode(&call.Kwargs, reflect.ValueOf(kwargs)); err != nil {
			return nil, false, err
		}
	}
	return call, structs, nil
}

// checkPath returns an error if a path given as a string cannot be that of a function.
func checkPath(path string, python bool) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: the path is empty", ErrFunction)
	case len(path) > wire.Default.Path:
		return fmt.Errorf("%w: path of %d bytes, expected at most %d", ErrFunction, len(path), wire.Default.Path)
	case !utf8.ValidString(path):
		return fmt.Errorf("%w: path %q is not UTF-8", ErrFunction, path)
	case strings.ContainsFunc(path, wire.IsControl):
		return fmt.Errorf("%w: path %q has control characters", ErrFunction, path)
	case python && (strings.Count(path, ":") != 1 || path[0] == ':' || path[len(path)-1] == ':'):
		return fmt.Errorf("%w: Python path %q, expected \"module:function\"", ErrFunction, path)
	case !python && strings.Contains(path, ":"):
		return fmt.Errorf("%w: Go path %q contains a colon, which marks Python functions: use NewPyTask", ErrFunction,
			path)
	}
	return nil
}

// appendMessage appends the message of t for a queue, and gives ref its id. h is the task's hold.
func (t *Task) appendMessage(dst []byte, q *Queue, nowMs int64, ref *Ref, h *redisstore.Hold) ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	o := &q.options
	msg := t.msg
	if t.claimed != nil {
		msg.Meta.Retried, msg.Meta.Deaths, msg.Meta.DiedAt = 0, 0, 0 // a new task, even if t was claimed
	}
	maxRetry := t.maxRetry
	if o.maxRetry != nil {
		maxRetry = o.maxRetry
	}
	more := withHeaders(extraOf(t.extras, o.extras, nowMs), o.headers)
	if !msg.Python() || !q.legacy {
		more = withHeaders(more, o.injected)
	}
	if err := o.startsInTime(more, nowMs); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrArguments, msg.Path, err)
	}
	if o.group != nil {
		var err error
		if more, err = t.gathered(&msg, o, more, h); err != nil {
			return nil, err
		}
	}
	switch {
	case msg.Python():
		if maxRetry != nil {
			msg.Retry = int64(*maxRetry)
		}
		switch {
		case !q.legacy:
			msg.Kind = wire.PyExtended
			if maxRetry != nil && *maxRetry == 0 { // in the fourth element, 0 means no limit given
				msg.Meta.HasMaxRetry = true
			}
		default:
			if err := t.checkLegacy(o, more, h); err != nil {
				return nil, err
			}
			msg.Kind = wire.Py // also for a claimed task of the other form
		}
	case q.legacy && msg.Kind == wire.GoPlain && maxRetry == nil && h == nil && more == nil && !o.later:
		// The format of go-delayed and keakon's package, which workers of all versions read.
		return finishMessage(dst, &msg)
	default:
		msg.Extend()
		if maxRetry != nil {
			msg.Meta.HasMaxRetry, msg.Meta.MaxRetry = true, *maxRetry
		}
	}
	switch plain := msg.Kind == wire.Py; {
	case plain && !o.later: // without an id
	case o.id != nil:
		ref.name(*o.id, nowMs)
	default:
		ref.random()
		ref.loose = plain
	}
	if h != nil {
		more = h.Write(more, ref.id)
	}
	if o.later {
		if more == nil {
			more = new(wire.Extra)
		}
		more.Due = o.dueAt(nowMs)
	}
	if more != nil && more.KeepResult > 0 && t.fn != nil && t.fn.NoResult != nil {
		return nil, t.fn.NoResult
	}
	if more.Keeps() && !o.kept {
		// The function's defaults ask for it.
		kept := *q
		kept.options.kept = true
		ref.queue = &kept
	}
	if msg.Kind == wire.GoExtended || msg.Kind == wire.PyExtended {
		msg.Meta.ID, msg.Meta.EnqueuedAt, msg.Meta.Extra = ref.id, nowMs, more
	}
	return finishMessage(dst, &msg)
}

// finishMessage appends a message and checks its limits.
func finishMessage(dst []byte, msg *wire.Message) ([]byte, error) {
	start := len(dst)
	b := msg.Append(dst)
	if size := len(b) - start; size > wire.Default.Bytes {
		return nil, fmt.Errorf("%w: %s: message of %d bytes, expected at most %d: store large data elsewhere and "+
			"pass its name", ErrArguments, msg.Path, size, wire.Default.Bytes)
	}
	if msg.Python() {
		// args and kwargs were checked one by one; a payload of Go was checked as a whole.
		if err := wire.Check(b[start:], wire.Default); err != nil {
			return nil, public(function.OverLimits(msg.Path, err))
		}
		if msg.Kind == wire.Py && !wire.TextKeys(b[start:]) {
			return nil, &ArgumentError{
				Func: msg.Path, Index: -1, Want: "maps whose keys are strings, as keakon's workers read no others",
				Got: "a key that is none; send a list of pairs, or open the queue on a handle without WithLegacy",
			}
		}
	}
	return b, nil
}

// Ref names an enqueued task. It is a small value, safe for concurrent use; keep its ID to find the task from another
// process. The zero value names no task, and asking about it is an error. State and Info find neither pending tasks nor
// most running ones: see State.
type Ref struct {
	queue *Queue
	id    string
	text  wire.TaskIDText // memory of a random id; zero if the task was not enqueued here
	loose bool            // the message does not carry the id, which names the task only while it is scheduled
}

// Ref returns a reference to the task with the given id. It does not ask Redis whether there is one.
func (q *Queue) Ref(id string) *Ref {
	must(q.checkMade())
	return &Ref{queue: q, id: id}
}

// random gives r a random id. A Ref is made once and never changes, so its id may share its memory.
func (r *Ref) random() {
	r.text.Fill()
	r.id = unsafe.String(&r.text[0], len(r.text))
}

// ID returns the task's id: random, or that of TaskID. It is empty for messages that carry none: on a legacy queue
// those of Go tasks without options and of Python tasks. A scheduled Python task of a legacy queue has an id for as
// long as it is scheduled.
func (r *Ref) ID() string {
	if r == nil {
		panic(errNoRef)
	}
	return r.id
}

// check returns an error if Redis cannot be asked for the task; it wraps ErrNoID, unless the context is nil.
func (r *Ref) check(ctx context.Context) error {
	switch {
	case r == nil || r.queue == nil:
		return errNoRef
	case ctx == nil:
		return errNilContext
	case r.id == "":
		return fmt.Errorf("%w: a legacy queue sends Python tasks, and calls without options, as messages that carry "+
			"no id; give a call of a Go function "+
			"an option, such as TaskID", ErrNoID)
	}
	return nil
}

// gone returns the error for an id that no longer names the task.
func (r *Ref) gone() error {
	return fmt.Errorf("%w: task %s is not scheduled any more, and its message, a Python task of a legacy queue, does "+
		"not carry the id", ErrNoID, r)
}

// Queue returns the name of the task's queue.
func (r *Ref) Queue() string {
	if r == nil || r.queue == nil {
		panic(errNoRef)
	}
	return r.queue.Name()
}

// String returns queue and id for logs.
func (r *Ref) String() string {
	if r == nil || r.queue == nil {
		return "no task"
	}
	return wire.OneLine(r.queue.Name() + "/" + r.id)
}

// name gives r the id of the option TaskID, in place of a random one.
func (r *Ref) name(id string, nowMs int64) {
	r.id = id
	r.text = wire.TaskIDText{len(r.text) - 1: 1}
	binary.LittleEndian.PutUint64(r.text[:], uint64(nowMs)) //nolint:gosec // as many bits
}

// enqueuedHere reports whether r was returned for a task that this process has enqueued, so that its queue's options
// are those of the task.
func (r *Ref) enqueuedHere() bool { return r.text[len(r.text)-1] != 0 }

// older reports whether info is that of an earlier task with the same id.
func (r *Ref) older(info *wire.Info) bool {
	if r.queue.options.id == nil || !r.enqueuedHere() || info.Enqueued.IsZero() {
		return false
	}
	return info.Enqueued.UnixMilli() < int64(binary.LittleEndian.Uint64(r.text[:])) //nolint:gosec // as in name
}

// referTo makes r the Ref of a task that somebody else has enqueued.
func (r *Ref) referTo(id string) { r.id, r.text = id, wire.TaskIDText{} }

var (
	errNoRef      = fmt.Errorf("%w: the *Ref is nil or zero; did Delay return an error?", ErrNoID)
	errNoTask     = fmt.Errorf("%w: the *Task is nil or zero: make it with Call, NewGoTask or NewPyTask", ErrArguments)
	errNoReceived = errors.New("delayed: the *Task is nil: TaskFromContext returns nil outside of a handler")
)

// noArgument returns what is wrong with an argument that no function can take, and where it belongs; "" if it is fine.
func noArgument(a any) string {
	switch a := a.(type) {
	case *Ref:
		return "a *Ref, which is no argument: pass its ID()"
	case Option:
		name, _, _ := strings.Cut(a.String(), "(") // the rest may be secret
		return fmt.Sprintf("the option %s, which is no argument: give it to Queue.With, as in "+
			"q.With(delayed.%s(…)).Delay(…)", name, name)
	case FuncOption:
		name, _, _ := strings.Cut(a.String(), "(")
		return fmt.Sprintf("the option %s, which is no argument: give it to Func with the function, as in "+
			"delayed.Func(fn, delayed.%s(…))", name, name)
	}
	if t := reflect.TypeOf(a); t != nil && isHandle(t) {
		return fmt.Sprintf("a *%s, which cannot travel: let the worker have its own", t.Elem().Name())
	}
	return ""
}

// isHandle reports whether values of a type are pointers to what only this process can use: structs of this package
// without exported fields, such as Queue. Others, such as TaskInfo, are data.
func isHandle(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer || t.Elem().PkgPath() != ownPath || t.Elem().Kind() != reflect.Struct {
		return false
	}
	for i := range t.Elem().NumField() {
		if t.Elem().Field(i).IsExported() {
			return false
		}
	}
	return true
}

// ownPath is the path of this package.
var ownPath = reflect.TypeFor[Task]().PkgPath()
