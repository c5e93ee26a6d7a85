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
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/funcpath"
	"github.com/godelayed/delayed/internal/wire"
)

// maxInline bounds what the parameters of a function take by value, in bytes: that much is allocated before any
// argument is looked at.
const maxInline = 16 << 10

// function is what there is to know about a function before a task is made of it or run. It is immutable: producers and
// executors share it.
type function struct {
	name     string
	others   []string // aliases
	policy   policy
	attached any  // what the package above keeps with it
	inMain   bool // named after package main, as functions of other programs may be

	fn       reflect.Value
	method   bool          // the first parameter of fn is a receiver
	recv     reflect.Value // invalid unless a receiver is bound
	written  reflect.Value // what somebody has written of a bound method, where fn is the compiler's; invalid elsewhere
	takesCtx bool
	params   []param // what is sent: without receiver and context
	variadic bool    // the last of params is the slice
	optional int     // how many of the last params a task may lack
	flat     bool    // whatever the arguments are, their payload is not too deep
	elem     param   // of that slice
	result   bool    // returns a T
	returns  param   // that T
	noResult error   // why values of T cannot be kept; nil: they can
	fails    bool    // returns an error, as the last result

	frames *sync.Pool // of *frame
}

// param is one parameter and how its values travel.
type param struct {
	typ   reflect.Type
	codec *wire.Codec
}

func (f *function) path() string      { return f.name }
func (f *function) aliases() []string { return f.others }

// functionSpec is what is said about a function beside the func value. Its zero value says nothing.
type functionSpec struct {
	name     string // in place of the one that Go gives it, if named
	named    bool
	aliases  []string
	optional int // how many of the last parameters a task may lack
	policy   policy
	attached any // kept with the function for the caller
}

// policy is what a function says about how workers treat its tasks. It is immutable, and its zero value leaves all to
// the worker. What messages can carry stands in them as well, and holds.
type policy struct {
	maxRetry      *int          // nil: the worker's
	timeout       time.Duration // 0: the worker's
	failOnTimeout bool
	delays        []time.Duration
	backoff       func(retried int, err error) time.Duration
	longest       time.Duration // wait before a retry; 0: any
}

// buildFunction makes a function of a func value. Errors wrap errFunction.
func buildFunction(fn any, spec functionSpec) (*function, error) {
	switch v := fn.(type) {
	case context.Context:
		return nil, functionError("context", "a function", "a context.Context", "call DelayContext(ctx, fn, ...)")
	case string:
		return nil, functionError(strconv.Quote(v), "a function", "a string", "make a task of a path with NewGoTask")
	}
	found, err := funcpath.Of(fn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; give a function declared at package level, a method expression or a *Function",
			errFunction, err)
	}
	if err := nameable(found, spec.named); err != nil {
		return nil, err
	}
	f := &function{
		name: found.Path, inMain: found.Main, policy: spec.policy, attached: spec.attached,
		fn: reflect.ValueOf(fn), method: found.Kind.Receiver(), optional: spec.optional,
	}
	if spec.named {
		f.name, f.inMain = spec.name, false
	} else if found.Runtime != found.Path {
		f.others = append(f.others, found.Runtime) // go-delayed sends the path as the runtime spells it
	}
	f.others = append(f.others, spec.aliases...)
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
		return fmt.Errorf("%w: %w; choose another Name", errFunction, err)
	}
	for i, alias := range f.others {
		if err := funcpath.Check(alias); err != nil {
			return fmt.Errorf("%w: alias of %s: %w; choose another Alias", errFunction, f.name, err)
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
			return fmt.Errorf("%w: %s: expected parameters that can travel, found parameter %d: %w", errFunction,
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
			return fmt.Errorf("%w: %s: expected parameters that can travel, found the variadic one: %w", errFunction,
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

// arity returns how many parameters can be sent.
func (f *function) arity() int { return len(f.params) }

// growing says whether the function can take the values of many calls at once.
func (f *function) growing() bool {
	n := len(f.params)
	return n > 0 && (f.variadic || f.params[n-1].typ.Kind() == reflect.Slice) && f.params[n-1].codec.FromArray()
}

// functionKey tells functions apart. The type is part of it because a code pointer alone does not say how arguments are
// to be sent.
type functionKey struct {
	code uintptr
	typ  reflect.Type
}

// functionCache holds what cachedFunction has made. A program has a bounded number of functions that may be put here:
// declared ones. Function literals share code and are refused before.
var functionCache struct {
	read atomic.Pointer[map[functionKey]*function]
	mu   sync.Mutex // guards the replacement of the map, which never changes itself
}

// cachedFunction is buildFunction without a spec for producers: the second time it is a look-up.
func cachedFunction(f any) (*function, error) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func {
		return buildFunction(f, functionSpec{})
	}
	key := functionKey{v.Pointer(), v.Type()}
	if known := functionCache.read.Load(); known != nil {
		if fn := (*known)[key]; fn != nil {
			return fn, nil
		}
	}
	fn, err := buildFunction(f, functionSpec{})
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
