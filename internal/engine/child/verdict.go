package child

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/isolate"
	"github.com/godelayed/delayed/internal/wire"
)

// job is a task on its way to a child process.
type job struct {
	Queue   string
	Worker  string // id
	Message []byte // as Redis holds it
	Limit   time.Duration
	Left    time.Duration // of the limit, when the job is sent; 0: there is no limit
}

// verdict is what a child process says of a task: what the handler has returned, and what the functions of the user
// that decide about errors have said, because they get the error itself only in the child.
type verdict struct {
	OK        bool
	Result    []byte // encoded
	ResultErr string // why the result cannot be kept

	Text       string // of the error
	Class      string // of the error, for metrics; "" for none of its own
	Stack      string // of a panic
	Says       uint8
	Wait       time.Duration // that the error says
	NotFailure bool          // by IsFailure
	Delay      time.Duration // by BackoffFunc; negative: it was not asked
	Misfit     bool          // the arguments do not fit
}

// maxCarried is the size of a text that travels between parent and child, in bytes. What is kept of one is shorter.
const maxCarried = 64 << 10

// carried returns a text as it travels between parent and child: shortened, and in UTF-8, because the codec refuses
// others. An error of the user may have any text.
func carried(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxCarried)], "\uFFFD")
}

// The codecs of what travels between parent and child.
var (
	jobCodec      = codecOf[job]()
	verdictCodec  = codecOf[verdict]()
	progressCodec = codecOf[wire.Progress]()
)

// codec encodes values of one type.
type codec[T any] struct{ *wire.Codec }

func codecOf[T any]() codec[T] {
	c, err := wire.CodecFor(reflect.TypeFor[T]())
	if err != nil {
		panic(err) // the types above have fields that can be encoded
	}
	return codec[T]{c}
}

func (c codec[T]) encode(v T) ([]byte, error) { return c.Append(nil, reflect.ValueOf(&v).Elem()) }

func (c codec[T]) decode(b []byte) (v T, err error) {
	if _, err := c.Decode(b, reflect.ValueOf(&v).Elem()); err != nil {
		return v, fmt.Errorf("delayed: what a child process has sent: %w", err)
	}
	return v, nil
}

// Error is the error of a handler that ran in a child process: its text, and what it has said about the task.
type Error struct {
	verdict
	says error // an *outcomeError; nil: the error says nothing
}

// errorOf returns the error of a verdict.
func errorOf(v *verdict) error {
	if v.OK {
		return nil
	}
	e := &Error{verdict: *v}
	if v.Says != uint8(lane.DecisionNone) {
		e.says = lane.Decide(lane.Decision(v.Says), v.Wait, errors.New(v.Text))
	}
	return e
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap returns what the error says about the task.
func (e *Error) Unwrap() error { return e.says }

// ErrorType returns the class of the error, as function.PanicError does.
func (e *Error) ErrorType() string {
	if e.Class == "" {
		return "error"
	}
	return e.Class
}

// RemoteOf returns what a child process has said of an error, nil if the error is of this process. It calls no method
// of the error, which may be a user's.
func RemoteOf(err error) *Error {
	if late, ok := err.(*lane.TimeoutError); ok { //nolint:errorlint // conclude wraps it around all others
		err = late.Err
	}
	e, _ := err.(*Error) //nolint:errorlint // nothing else wraps it
	return e
}

// Panicked reports whether an error is that of a handler that panicked.
func Panicked(err error) bool {
	if e := RemoteOf(err); e != nil {
		return e.Class == "panic" || e.Class == "goexit"
	}
	return Wraps[*function.PanicError](err)
}

// KeptResult is the result of a function that ran in a child process.
type KeptResult struct {
	Encoded []byte
	Err     string
}

// StackOf returns the stack that an error brings: of a panic, or what is known of a child process that has died.
func StackOf(err error) string {
	var own *function.PanicError
	var death *isolate.DeathError
	switch remote := RemoteOf(err); {
	case remote != nil:
		return remote.Stack
	case errors.As(err, &own):
		return own.Stack
	case errors.As(err, &death):
		return death.Report()
	}
	return ""
}

// Exited returns what becomes of a handler's error whose methods cannot be trusted to return.
func Exited(err error) error {
	return fmt.Errorf("delayed: the error of the handler, a %T, or a function that was asked about it "+
		"(WorkerConfig.IsFailure, WorkerConfig.Backoff, BackoffFunc) ended its goroutine by runtime.Goexit, as "+
		"FailNow of package testing does; let it return", err)
}

// Wraps reports whether err wraps a T. If a method of err panics, as one of a nil pointer may, wraps returns false.
func Wraps[T error](err error) (ok bool) {
	defer func() { _ = recover() }()
	var target T
	return errors.As(err, &target)
}
