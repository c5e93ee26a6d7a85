package delayed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/wire"
)

// Function is a function with a path and defaults of its own. Func makes it; the same value is given to Queue.Delay and
// to Worker.Register. It is immutable and safe for concurrent use. The zero value is no function: using it is an error
// that wraps ErrFunction.
type Function struct {
	f   *function.Function
	err error
}

// function returns the function of a type that embeds it, as those of package typed do.
func (v *Function) function() *Function { return v }

// functioner is a *Function, or a type that embeds one.
type functioner interface{ function() *Function }

// noDefaults are the defaults of a function without Func.
var noDefaults defaults

// defaultsOf returns the defaults that Func has set for a function.
func defaultsOf(f *function.Function) *defaults {
	if d, ok := f.Attached.(*defaults); ok {
		return d
	}
	return &noDefaults
}

// FuncOption is an option of Func: Name, Alias, Optional, Middleware, BackoffFunc, ArchiveOnTimeout, Isolated or a
// TaskOption. Its String method shows it as it is written in code.
type FuncOption interface {
	fmt.Stringer
	// The name appears in the compiler's error about an option that does not belong here.
	forFunc(*funcDefaults)
}

// funcDefaults collects the options of one Func call.
type funcDefaults struct {
	defaults

	spec       function.Spec
	err        error // of the first faulty option; wraps ErrFunction
	middleware []func(HandlerFunc) HandlerFunc
}

// defaults are the settings of a function's tasks by the options of Func, beside those for workers. They are immutable.
type defaults struct {
	extras []extra      // what they write into messages
	locks  []lockOption // what they set for locks
	gather *wire.Gather // how calls are gathered; nil: the defaults
	chain  HandlerFunc  // through the function's middleware; nil: it has none
}

// refuses is callOptions.refuses for the options of Func.
func (d *funcDefaults) refuses(option fmt.Stringer, want string) bool {
	if want != "" && d.err == nil {
		d.err = fmt.Errorf("%w: option %v: expected %s", ErrFunction, option, want)
	}
	return want != ""
}

// funcOption is an option that only Func accepts.
type funcOption struct {
	text  string
	apply func(*funcDefaults)
}

func (o funcOption) forFunc(d *funcDefaults) { o.apply(d) }
func (o funcOption) String() string          { return o.text }

// Name sets the path by which tasks name a function, in place of the one that Go gives it. Function literals, method
// values and generic instances need one. It is at most 512 bytes long, printable, without a colon, and the same on both
// sides.
func Name(path string) FuncOption {
	return funcOption{
		fmt.Sprintf("Name(%q)", path), func(d *funcDefaults) { d.spec.Name, d.spec.Named = path, true },
	}
}

// ArchiveOnTimeout archives tasks of a function that exceed their Timeout or Deadline and return an error, instead of
// retrying them.
func ArchiveOnTimeout() FuncOption {
	return funcOption{"ArchiveOnTimeout()", func(d *funcDefaults) { d.spec.Policy.FailOnTimeout = true }}
}

// BackoffFunc sets how long a failed task of a function waits before it is tried again: the worker calls fn with how
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

// Alias adds paths under which workers run the function as well: those it had before it was renamed or moved. Tasks
// enqueued with the Function carry its own path, never an alias.
func Alias(paths ...string) FuncOption {
	return funcOption{
		"Alias(" + strings.Join(quoted(paths), ", ") + ")",
		func(d *funcDefaults) { d.spec.Aliases = append(d.spec.Aliases, paths...) },
	}
}

func quoted(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = strconv.Quote(text)
	}
	return all
}

// Optional lets the last n parameters of a function be missing in a task: they are zero values then. So a parameter can
// be added at the end while producers of the old version still run, and while their tasks wait. It acts where the
// function is registered. A variadic parameter counts as one. Tasks with more arguments than parameters stay an error,
// and Delay still needs all arguments.
func Optional(n int) FuncOption {
	return funcOption{fmt.Sprintf("Optional(%d)", n), func(d *funcDefaults) { d.spec.Optional = n }}
}

// Middleware puts middleware around one function, as Worker.Use does around all; it stands within that of the worker.
// It acts where the function is registered. What these functions return is called concurrently.
func Middleware(mw ...func(HandlerFunc) HandlerFunc) FuncOption {
	return funcOption{"Middleware(…)", func(d *funcDefaults) {
		d.middleware = append(slices.Clip(d.middleware), mw...)
	}}
}

// Func gives a function a path, aliases and defaults:
//
//	var SumInts = delayed.Func(Sum[int], delayed.Name("sum.int"))
//
// Options act where the Function is used. KeepResult, Retention, TTL, Gather, Unique, UniqueKey, UntilStart and
// OnConflict act when the Function itself is enqueued: q.Delay(SumInts, …), not q.Delay(Sum[int], …), whatever workers
// have registered. Alias, Optional, Middleware, BackoffFunc, ArchiveOnTimeout and Isolated act where it is registered.
// MaxRetry, Timeout, Backoff and MaxBackoff act on both sides; the settings of the enqueued Function take precedence
// over those of the registered one.
//
// The receiver of a method expression is left out of the arguments; give the method expression and the method value
// that the worker registers the same Name. If fn or an option is wrong, Delay and Register return an error that wraps
// ErrFunction.
func Func(fn any, opts ...FuncOption) *Function {
	var d funcDefaults
	for _, o := range opts {
		if o == nil {
			return &Function{err: function.Refusal("Func", "options", "nil", "leave it out")}
		}
		o.forFunc(&d)
	}
	f, err := d.build(fn)
	if err != nil {
		return &Function{err: err}
	}
	return &Function{f: f}
}

// build makes the function that the options describe.
func (d *funcDefaults) build(fn any) (*function.Function, error) {
	if d.err != nil {
		return nil, d.err
	}
	if p := &d.spec.Policy; p.Backoff != nil && p.Delays != nil {
		return nil, function.Refusal("Func", "Backoff or BackoffFunc", "both", "choose one")
	}
	if _, ok := fn.(functioner); ok {
		return nil, function.Refusal("Func", "a function", "a *Function", "give all options in one call of Func")
	}
	own := d.defaults
	d.spec.Attached = &own
	f, err := function.New(fn, d.spec)
	if err != nil {
		return nil, err
	}
	if own.chain, err = chain(d.middleware, callTask); err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", f.Path(), err)
	}
	if x := extraOf(own.extras, nil, 0); x != nil && x.KeepResult > 0 && f.NoResult != nil {
		return nil, f.NoResult
	}
	return f, nil
}

// newFunction makes a function of a func value or takes it out of a *Function. Errors wrap ErrFunction.
func newFunction(f any) (*function.Function, error) {
	if v, ok := f.(functioner); ok {
		return v.function().unwrap()
	}
	return function.New(f, function.Spec{})
}

// functionOf is newFunction for producers. It looks up functions that it has seen before.
func functionOf(f any) (*function.Function, error) {
	if v, ok := f.(functioner); ok {
		return v.function().unwrap()
	}
	return function.Of(f)
}

// unwrap returns the function that Func has made.
func (v *Function) unwrap() (*function.Function, error) {
	switch {
	case v == nil:
		return nil, function.Refusal("Function", "one made by Func", "nil", "call Func")
	case v.err != nil:
		return nil, v.err
	case v.f == nil:
		return nil, function.Refusal("Function", "one made by Func", "a zero Function", "call Func")
	}
	return v.f, nil
}
