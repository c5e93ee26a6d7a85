// Package function deals with func values: it checks whether they can be delayed, encodes arguments into the payload of
// a message, decodes a payload and calls the function. It knows neither Redis nor workers.
package function

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
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/funcpath"
	"github.com/godelayed/delayed/internal/wire"
)

// maxInline bounds the size of a function's parameters in memory, in bytes, because each call allocates that much
// before it decodes any argument.
const maxInline = 16 << 10

// Function is a func value, checked and prepared for making and running tasks. It is immutable: producers and executors
// share it.
type Function struct {
	name     string
	others   []string // aliases
	Policy   Policy
	Attached any  // see Spec
	InMain   bool // named after package main, as functions of other programs may be

	fn       reflect.Value
	method   bool          // the first parameter of fn is a receiver
	recv     reflect.Value // invalid unless a receiver is bound
	written  reflect.Value // the method as the user wrote it, if fn is a wrapper of the compiler; else invalid
	TakesCtx bool
	params   []param // parameters that are sent: without receiver and context
	variadic bool    // the last of params is the slice
	optional int     // how many of the last params a task may lack
	flat     bool    // no arguments make the payload too deep
	elem     param   // of that slice
	result   bool    // returns a T
	returns  param   // that T
	NoResult error   // why values of T cannot be kept; nil: they can
	fails    bool    // returns an error, as the last result

	frames *sync.Pool // of *frame
}

// param is one parameter and how its values travel.
type param struct {
	typ   reflect.Type
	codec *wire.Codec
}

// Path returns the path under which tasks name the function.
func (f *Function) Path() string { return f.name }

// Aliases returns other paths that tasks may name it by.
func (f *Function) Aliases() []string { return f.others }

// Type returns the type of the func value.
func (f *Function) Type() reflect.Type { return f.fn.Type() }

// Spec holds the settings of a function beside the func value. The zero value sets nothing.
type Spec struct {
	Name     string // if Named, replaces the name that Go gives it
	Named    bool
	Aliases  []string
	Optional int // how many of the last parameters a task may lack
	Policy   Policy
	Attached any // kept with the function for the caller
}

// Policy is how workers treat the tasks of a function. It is immutable, and its zero value leaves all to the worker.
// Settings that a message carries take precedence.
type Policy struct {
	MaxRetry      *int          // nil: the worker's
	Timeout       time.Duration // 0: the worker's
	FailOnTimeout bool
	Delays        []time.Duration
	Backoff       func(retried int, err error) time.Duration
	Longest       time.Duration // wait before a retry; 0: any
	Isolated      bool          // run in a child process
}

// New makes a function of a func value. Errors wrap ErrFunction.
func New(fn any, spec Spec) (*Function, error) {
	switch v := fn.(type) {
	case context.Context:
		return nil, Refusal("context", "a function", "a context.Context", "call DelayContext(ctx, fn, ...)")
	case string:
		return nil, Refusal(strconv.Quote(v), "a function", "a string",
			"give the function itself; Name, an option of Func, gives "+
				"it another path, and NewGoTask makes a task of a path alone")
	}
	found, err := funcpath.Of(fn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; give a function declared at package level, a method expression or a *Function",
			ErrFunction, err)
	}
	if err := nameable(found, spec.Named); err != nil {
		return nil, err
	}
	f := &Function{
		name: found.Path, InMain: found.Main, Policy: spec.Policy, Attached: spec.Attached,
		fn: reflect.ValueOf(fn), method: found.Kind.Receiver(), optional: spec.Optional,
	}
	if spec.Named {
		f.name, f.InMain = spec.Name, false
	} else if found.Runtime != found.Path {
		f.others = append(f.others, found.Runtime) // go-delayed sends the runtime's name
	}
	f.others = append(f.others, spec.Aliases...)
	if err := f.checkPaths(); err != nil {
		return nil, err
	}
	if err := f.plan(); err != nil {
		return nil, err
	}
	if err := f.checkOptional(); err != nil {
		return nil, err
	}
	return f, nil
}

// nameable returns an error for a func value that has no path of its own, such as a literal.
func nameable(found funcpath.Func, named bool) error {
	const anyKind = "a function declared at package level or a method expression"
	switch found.Kind {
	case funcpath.Plain:
		return nil
	case funcpath.InterfaceMethod:
		return Refusal(found.Path, anyKind, found.Kind.String(), "give the method of the type that implements it")
	case funcpath.Method:
		if name := found.Path[strings.LastIndexByte(found.Path, '.')+1:]; !named && !exported(name) {
			return Refusal(found.Path, "an exported method", "method "+name,
				"export it, because RegisterMethods binds no others, or wrap it with Func and Name on both sides")
		}
		return nil
	default:
		if named {
			return nil
		}
		return Refusal(found.Path, anyKind, found.Kind.String()+", whose path may mean another one elsewhere",
			"wrap it with Func and Name on both sides")
	}
}

func exported(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(r)
}

func (f *Function) checkPaths() error {
	if err := funcpath.Check(f.name); err != nil {
		return fmt.Errorf("%w: %w; choose another Name", ErrFunction, err)
	}
	for i, alias := range f.others {
		if err := funcpath.Check(alias); err != nil {
			return fmt.Errorf("%w: alias of %s: %w; choose another Alias", ErrFunction, f.name, err)
		}
		if alias == f.name || slices.Contains(f.others[:i], alias) {
			return Refusal(f.name, "aliases that differ from it and from each other", alias+" twice",
				"leave one out")
		}
	}
	return nil
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// plan checks the signature and prepares calls of the function.
func (f *Function) plan() error {
	t := f.fn.Type()
	first := 0
	if f.method {
		first++
	}
	if first < t.NumIn() && t.In(first) == contextType {
		f.TakesCtx = true
		first++
	}
	f.variadic = t.IsVariadic()
	inline := uintptr(0)
	for i := first; i < t.NumIn(); i++ {
		typ := t.In(i)
		if typ.Implements(contextType) {
			return Refusal(f.name, "a context as the first parameter or none", t.String(), "move it to the front")
		}
		p, err := newParam(typ)
		if err != nil {
			return fmt.Errorf("%w: %s: expected parameters that can travel, found parameter %d: %w", ErrFunction,
				f.name, len(f.params)+1, err)
		}
		f.params = append(f.params, p)
		if inline += typ.Size(); inline > maxInline {
			return Refusal(f.name, fmt.Sprintf("parameters of at most %d bytes together by value", maxInline),
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

func (f *Function) planResults(t reflect.Type) error {
	const accepted = "no result, error, T or (T, error)"
	n := t.NumOut()
	if n > 0 && t.Out(n-1) == errorType {
		f.fails = true
		n--
	}
	f.result = n == 1
	switch {
	case n > 1:
		return Refusal(f.name, accepted, results(t), "return one value, a struct for instance")
	case n == 1 && t.Out(0).Implements(errorType):
		return Refusal(f.name, accepted, results(t), "return error itself")
	case n == 1:
		f.planResult(t.Out(0))
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

// Arity returns how many parameters can be sent.
func (f *Function) Arity() int { return len(f.params) }

// Growing reports whether the function can take the values of many calls in one list.
func (f *Function) Growing() bool {
	n := len(f.params)
	return n > 0 && (f.variadic || f.params[n-1].typ.Kind() == reflect.Slice) && f.params[n-1].codec.FromArray()
}

// functionKey identifies a function. The type is part of it because the code pointer alone does not determine how
// arguments are sent.
type functionKey struct {
	code uintptr
	typ  reflect.Type
}

// functionCache holds the results of Of. Only declared functions get here, of which a program has a bounded number;
// function literals are refused before.
var functionCache struct {
	read atomic.Pointer[map[functionKey]*Function]
	mu   sync.Mutex // guards the replacement of the map, which never changes itself
}

// Of is New without a spec, for producers. It looks up functions that it has seen before.
func Of(f any) (*Function, error) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func {
		return New(f, Spec{})
	}
	key := functionKey{v.Pointer(), v.Type()}
	if known := functionCache.read.Load(); known != nil {
		if fn := (*known)[key]; fn != nil {
			return fn, nil
		}
	}
	fn, err := New(f, Spec{})
	if err != nil {
		return nil, err
	}
	functionCache.mu.Lock()
	defer functionCache.mu.Unlock()
	next := map[functionKey]*Function{}
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
