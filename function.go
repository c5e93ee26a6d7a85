package delayed

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/funcpath"
	"github.com/godelayed/delayed/internal/wire"
)

// maxInline bounds what the parameters of a function take by value, in bytes: that much is allocated before any
// argument is looked at.
const maxInline = 16 << 10

// Function is a function with a name and defaults of its own. Func makes it; the same value is given to Queue.Delay and
// to Worker.Register. It is immutable and safe for concurrent use. The zero value is no function: using it is an error
// that wraps ErrFunction.
type Function struct {
	f   *function
	err error
}

// FuncOption is an option of Func: Name, Alias, Optional, Middleware, BackoffFunc, FailOnTimeout or a TaskOption.
type FuncOption interface {
	applyFunc(*funcDefaults)
}

// funcDefaults collects the options of one Func call.
type funcDefaults struct {
	name     string
	named    bool
	aliases  []string
	maxRetry *int // nil: the worker's default
	extras   []extra
	policy   *policy
	gather   *wire.Gather
	err      error // what is wrong with the first faulty option; wraps ErrFunction
	locks    []func(*lockRule)

	middleware []func(HandlerFunc) HandlerFunc
	optional   int
}

type funcOption func(*funcDefaults)

func (o funcOption) applyFunc(d *funcDefaults) { o(d) }

// Name is the path under which a function is known on the wire, in place of the one that Go gives it. Function
// literals, method values and generic instances need one. It is at most 512 bytes long, printable, without a colon, and
// the same on both sides.
func Name(path string) FuncOption {
	return funcOption(func(d *funcDefaults) { d.name, d.named = path, true })
}

// Alias adds paths under which workers run the function as well: those it had before it was renamed or moved. Tasks
// delayed with the Function carry its name, never an alias.
func Alias(paths ...string) FuncOption {
	return funcOption(func(d *funcDefaults) { d.aliases = append(d.aliases, paths...) })
}

// Func gives a function a name, aliases and defaults:
//
//	var SumInts = delayed.Func(Sum[int], delayed.Name("sum.int"))
//
// A method expression keeps its receiver to itself here too: the worker registers the method value under the same Name.
// What is wrong with fn or with the options is reported by Delay and by Register, as an error that wraps ErrFunction.
func Func(fn any, opts ...FuncOption) *Function {
	var d funcDefaults
	for _, o := range opts {
		if o == nil {
			return &Function{err: functionError("Func", "options", "nil", "leave it out")}
		}
		o.applyFunc(&d)
	}
	if p := d.policy; p != nil && p.backoff != nil && p.delays != nil && d.err == nil {
		d.err = functionError("Func", "Backoff or BackoffFunc", "both", "choose one")
	}
	if d.err != nil {
		return &Function{err: d.err}
	}
	f, err := buildFunction(fn, &d)
	return &Function{f, err}
}

// function is what there is to know about a function before a task is made of it or run. It is immutable: producers and
// executors share it.
type function struct {
	name     string
	others   []string          // aliases
	maxRetry *int              // default for its tasks; nil: the worker's
	extras   []extra           // what its options write into the messages of its tasks
	locks    []func(*lockRule) // what they say about locks
	policy   *policy           // what its options tell workers; nil: nothing
	inMain   bool              // named after package main, as functions of other programs may be

	fn       reflect.Value
	method   bool          // the first parameter of fn is a receiver
	recv     reflect.Value // invalid unless a receiver is bound
	written  reflect.Value // what somebody has written of a bound method, where fn is the compiler's; invalid elsewhere
	takesCtx bool
	params   []param      // what is sent: without receiver and context
	variadic bool         // the last of params is the slice
	optional int          // how many of the last params a task may lack
	flat     bool         // whatever the arguments are, their payload is not too deep
	elem     param        // of that slice
	gather   *wire.Gather // how its calls are gathered; nil: the defaults
	result   bool         // returns a T
	returns  param        // that T
	noResult error        // why values of T cannot be kept; nil: they can
	fails    bool         // returns an error, as the last result

	chain  HandlerFunc // through its middleware; nil: it has none
	frames *sync.Pool  // of *frame
}

// param is one parameter and how its values travel.
type param struct {
	typ   reflect.Type
	codec *wire.Codec
}

func (f *function) path() string      { return f.name }
func (f *function) aliases() []string { return f.others }

// functionError says what is wrong with a function: what was expected, what was found, what to do.
func functionError(subject, want, got, do string) error {
	return fmt.Errorf("%w: %s: expected %s, found %s; %s", ErrFunction, subject, want, got, do)
}

// newFunction makes a function of a func value or takes it out of a *Function. Errors wrap ErrFunction.
func newFunction(f any) (*function, error) {
	if v, ok := f.(*Function); ok {
		switch {
		case v == nil:
			return nil, functionError("Function", "one made by Func", "nil", "call Func")
		case v.err != nil:
			return nil, v.err
		case v.f == nil:
			return nil, functionError("Function", "one made by Func", "a zero Function", "call Func")
		}
		return v.f, nil
	}
	return buildFunction(f, &funcDefaults{})
}

func buildFunction(fn any, d *funcDefaults) (*function, error) {
	switch v := fn.(type) {
	case context.Context:
		return nil, functionError("context", "a function", "a context.Context", "call DelayContext(ctx, fn, ...)")
	case *Function:
		return nil, functionError("Func", "a function", "a *Function", "give all options in one call of Func")
	case string:
		return nil, functionError(strconv.Quote(v), "a function", "a string", "make a task of a path with NewGoTask")
	}
	found, err := funcpath.Of(fn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; give a function declared at package level, a method expression or a *Function",
			ErrFunction, err)
	}
	if err := nameable(found, d.named); err != nil {
		return nil, err
	}
	f := &function{
		name: found.Path, inMain: found.Main, maxRetry: d.maxRetry, extras: d.extras, locks: d.locks, policy: d.policy,
		fn: reflect.ValueOf(fn), method: found.Kind.Receiver(), optional: d.optional,
	}
	f.gather = d.gather
	if d.named {
		f.name, f.inMain = d.name, false
	} else if found.Runtime != found.Path {
		f.others = append(f.others, found.Runtime) // go-delayed sends the path as the runtime spells it
	}
	f.others = append(f.others, d.aliases...)
	if err := f.checkPaths(); err != nil {
		return nil, err
	}
	if f.chain, err = chain(d.middleware, callTask); err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", f.name, err)
	}
	if err := f.plan(); err != nil {
		return nil, err
	}
	if err := f.checkOptional(); err != nil {
		return nil, err
	}
	return f, nil
}

// nameable refuses what has no path of its own.
func nameable(found funcpath.Func, named bool) error {
	const anyKind = "a function declared at package level or a method expression"
	switch found.Kind {
	case funcpath.Plain:
		return nil
	case funcpath.InterfaceMethod:
		return functionError(found.Path, anyKind, found.Kind.String(), "give the method of the type that implements it")
	case funcpath.Method:
		if name := found.Path[strings.LastIndexByte(found.Path, '.')+1:]; !named && !exported(name) {
			return functionError(found.Path, "an exported method", "method "+name,
				"export it, because RegisterMethods binds no others, or wrap it with Func and Name on both sides")
		}
		return nil
	default:
		if named {
			return nil
		}
		return functionError(found.Path, anyKind, found.Kind.String()+", whose path may mean another one elsewhere",
			"wrap it with Func and Name on both sides")
	}
}

func exported(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(r)
}

func (f *function) checkPaths() error {
	if err := funcpath.Check(f.name); err != nil {
		return fmt.Errorf("%w: %w; choose another Name", ErrFunction, err)
	}
	for i, alias := range f.others {
		if err := funcpath.Check(alias); err != nil {
			return fmt.Errorf("%w: alias of %s: %w; choose another Alias", ErrFunction, f.name, err)
		}
		if alias == f.name || slices.Contains(f.others[:i], alias) {
			return functionError(f.name, "aliases that differ from it and from each other", alias+" twice",
				"leave one out")
		}
	}
	return nil
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// plan checks the signature and prepares what every call of the function needs.
func (f *function) plan() error {
	t := f.fn.Type()
	first := 0
	if f.method {
		first++
	}
	if first < t.NumIn() && t.In(first) == contextType {
		f.takesCtx = true
		first++
	}
	f.variadic = t.IsVariadic()
	inline := uintptr(0)
	for i := first; i < t.NumIn(); i++ {
		typ := t.In(i)
		if typ.Implements(contextType) {
			return functionError(f.name, "a context as the first parameter or none", t.String(), "move it to the front")
		}
		p, err := newParam(typ)
		if err != nil {
			return fmt.Errorf("%w: %s: expected parameters that can travel, found parameter %d: %w", ErrFunction,
				f.name, len(f.params)+1, err)
		}
		f.params = append(f.params, p)
		if inline += typ.Size(); inline > maxInline {
			return functionError(f.name, fmt.Sprintf("parameters of at most %d bytes together by value", maxInline),
				fmt.Sprintf("%s of %d bytes", typ, typ.Size()), "take a pointer or a slice")
		}
	}
	if f.variadic {
		var err error
		if f.elem, err = newParam(t.In(t.NumIn() - 1).Elem()); err != nil {
			return fmt.Errorf("%w: %s: expected parameters that can travel, found the variadic one: %w", ErrFunction,
				f.name, err)
		}
	}
	f.flat = true
	for _, p := range f.params {
		depth, bounded := p.codec.Depth()
		f.flat = f.flat && bounded && depth+min(len(f.params), 2)-1 <= wire.Default.Depth
	}
	if err := f.planResults(t); err != nil {
		return err
	}
	f.frames = &sync.Pool{New: func() any { return f.newFrame() }}
	return nil
}

func (f *function) planResults(t reflect.Type) error {
	const accepted = "no result, error, T or (T, error)"
	n := t.NumOut()
	if n > 0 && t.Out(n-1) == errorType {
		f.fails = true
		n--
	}
	f.result = n == 1
	switch {
	case n > 1:
		return functionError(f.name, accepted, results(t), "return one value, a struct for instance")
	case n == 1 && t.Out(0).Implements(errorType):
		return functionError(f.name, accepted, results(t), "return error itself")
	case n == 1:
		return f.planResult(t.Out(0))
	}
	return nil
}

func results(t reflect.Type) string {
	var out []string
	for i := range t.NumOut() {
		out = append(out, t.Out(i).String())
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func newParam(t reflect.Type) (param, error) {
	c, err := wire.CodecFor(t)
	return param{t, c}, err
}

// functionKey tells functions apart. The type is part of it because a code pointer alone does not say how arguments are
// to be sent.
type functionKey struct {
	code uintptr
	typ  reflect.Type
}

// functionCache holds what functionOf has made. A program has a bounded number of functions that may be put here:
// declared ones. Function literals share code and are refused before.
var functionCache struct {
	read atomic.Pointer[map[functionKey]*function]
	mu   sync.Mutex // guards the replacement of the map, which never changes itself
}

// functionOf is newFunction for producers: the second time it is a look-up.
func functionOf(f any) (*function, error) {
	if _, ok := f.(*Function); ok {
		return newFunction(f)
	}
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func {
		return newFunction(f)
	}
	key := functionKey{v.Pointer(), v.Type()}
	if known := functionCache.read.Load(); known != nil {
		if fn := (*known)[key]; fn != nil {
			return fn, nil
		}
	}
	fn, err := newFunction(f)
	if err != nil {
		return nil, err
	}
	functionCache.mu.Lock()
	defer functionCache.mu.Unlock()
	next := map[functionKey]*function{}
	if known := functionCache.read.Load(); known != nil {
		if first := (*known)[key]; first != nil {
			return first, nil
		}
		next = maps.Clone(*known)
	}
	next[key] = fn
	functionCache.read.Store(&next)
	return fn, nil
}
