package function

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/wire"
)

// Registry holds the functions that a worker runs, by path and by alias. The zero value is empty. It is safe for
// concurrent use; looking up takes no lock.
type Registry struct {
	mu        sync.Mutex // guards the replacement of the map, which never changes itself
	known     atomic.Pointer[map[string]*Function]
	published atomic.Pointer[published]
}

// Lookup returns the function of a path or an alias, or nil.
func (r *Registry) Lookup(path string) *Function {
	if known := r.known.Load(); known != nil {
		return (*known)[path]
	}
	return nil
}

// paths returns all paths and aliases, sorted.
func (r *Registry) paths() []string {
	if known := r.known.Load(); known != nil {
		return slices.Sorted(maps.Keys(*known))
	}
	return nil
}

// All returns the functions, sorted by path.
func (r *Registry) All() []*Function {
	var fns []*Function
	for _, path := range r.paths() {
		if f := r.Lookup(path); f.Path() == path { // else an alias
			fns = append(fns, f)
		}
	}
	return fns
}

// Add registers functions: all of them, or none if any is refused or errs is not empty. The error joins errs and all
// refusals.
func (r *Registry) Add(fns []*Function, errs []error) error {
	for _, f := range fns {
		if f.method {
			errs = append(errs, Refusal(f.name, "a function", "a method expression, whose receiver is missing",
				"give the receiver to RegisterMethods, or register its method value wrapped with Func "+
					"and the same Name"))
		}
	}
	return r.put(fns, errs)
}

// put adds all functions under all their paths, or none if there is any error.
func (r *Registry) put(fns []*Function, errs []error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := map[string]*Function{}
	if known := r.known.Load(); known != nil {
		next = maps.Clone(*known)
	}
	for _, f := range fns {
		for _, path := range append([]string{f.Path()}, f.Aliases()...) {
			if other := next[path]; other != nil {
				errs = append(errs, taken(path, f, other))
				continue
			}
			next[path] = f
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	r.known.Store(&next)
	return nil
}

func taken(path string, f, by *Function) error {
	do := "register it once, or give one of them a Name"
	if f.recv.IsValid() && by.recv.IsValid() {
		do = "register one receiver of a type; others by Func and Name for each method value"
	}
	found := "one taken by " + by.Path()
	if path == by.Path() {
		found = "one that is taken already"
	}
	return Refusal(path, "a path of its own", found, do)
}

// AddMethods registers every exported method of recv that has an accepted signature, bound to recv, under the paths of
// its method expressions T.M and (*T).M. It returns an error for each method that it skipped. It registers nothing when
// no method is accepted, recv is nil, or another receiver of the type is registered already.
func (r *Registry) AddMethods(recv any) (skipped []error, err error) {
	v := reflect.ValueOf(recv)
	if wire.IsNil(recv) {
		got := "nil"
		if v.IsValid() {
			got = "a nil " + v.Type().String()
		}
		return nil, Refusal("receiver", "a value with methods", got, "give the receiver that tasks shall run with")
	}
	var good []*Function
	for i := range v.NumMethod() {
		f, err := boundMethod(v, v.Type().Method(i))
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		good = append(good, f)
	}
	if len(good) == 0 {
		err := Refusal(v.Type().String(), "an exported method with an accepted signature",
			fmt.Sprintf("none among %d", len(skipped)),
			"export one, or give a pointer if the methods have pointer receivers")
		return skipped, errors.Join(append([]error{err}, skipped...)...)
	}
	return skipped, r.put(good, nil)
}

// boundMethod makes the function of a method of a receiver.
func boundMethod(recv reflect.Value, m reflect.Method) (*Function, error) {
	f, err := New(m.Func.Interface(), Spec{})
	if err != nil {
		return nil, err
	}
	f.recv = recv // before f is shared, and before its first frame is made
	t := recv.Type()
	pointed := t
	if t.Kind() == reflect.Pointer {
		pointed = t.Elem()
	}
	if written, ok := pointed.MethodByName(m.Name); ok {
		f.written = written.Func
		for _, path := range append([]string{f.name}, f.others...) {
			f.others = append(f.others, otherExpression(path, pointed.Name(), t.Kind() == reflect.Pointer))
		}
	}
	return f, nil
}

// otherExpression turns pkg.(*T).M into pkg.T.M, or back.
func otherExpression(path, typeName string, pointer bool) string {
	from, to := "."+typeName+".", ".(*"+typeName+")."
	if pointer {
		from, to = to, from
	}
	i := strings.LastIndex(path, from)
	return path[:i] + to + path[i+len(from):]
}

// Accepts reports whether the function that a message names can be called with its arguments.
func (r *Registry) Accepts(message []byte) bool {
	m, err := wire.Parse(message, wire.WorkerLimits)
	if err != nil {
		return false
	}
	f := r.Lookup(m.Path)
	return f != nil && f.accepts(&m)
}

// Info describes a function.
type Info struct {
	Path     string         // that tasks carry
	Aliases  []string       // other paths that tasks may carry
	Params   []reflect.Type // of its arguments, without receiver and context
	Variadic bool           // the last of Params is the slice of a variadic parameter
	Optional int            // how many of the last Params a task may lack
	Result   reflect.Type   // of the result beside an error; nil if there is none, or it cannot be kept

	// Func has the function's name in the program and its place in the source; nil if they are unknown.
	Func *runtime.Func
}

// Info describes f. Its slices are the caller's.
func (f *Function) Info() Info {
	info := Info{Path: f.name, Aliases: slices.Clone(f.others), Variadic: f.variadic, Optional: f.optional}
	for _, p := range f.params {
		info.Params = append(info.Params, p.typ)
	}
	if f.result && f.NoResult == nil {
		info.Result = f.returns.typ
	}
	written := f.fn
	if f.written.IsValid() {
		written = f.written
	}
	info.Func = runtime.FuncForPC(written.Pointer())
	return info
}

// maxListing bounds the listing of its functions that a worker publishes on each queue, in bytes.
const maxListing = 64 << 10

// published is the listing of the functions that a registry held at some time.
type published struct {
	known   *map[string]*Function
	listing []byte
}

// Listing describes the functions as docs/PROTOCOL.md defines that, within maxListing. It also returns a value that
// differs after each change.
func (r *Registry) Listing() ([]byte, any) {
	known := r.known.Load()
	if t := r.published.Load(); t != nil && t.known == known {
		return t.listing, known
	}
	t := &published{known, r.list()}
	r.published.Store(t)
	return t.listing, known
}

// list encodes the listing, in the order of paths, of as many functions as fit.
func (r *Registry) list() []byte {
	fns := r.All()
	for n := len(fns); ; n /= 2 {
		all := catalog.List{Version: catalog.Version, Functions: make([]catalog.Function, 0, n), More: len(fns) - n}
		var shapes wire.Shapes
		for _, fn := range fns[:n] {
			info := fn.Info()
			f := catalog.Function{
				Path: info.Path, Aliases: info.Aliases, Variadic: info.Variadic,
				Optional: info.Optional,
			}
			// The types were accepted when the function was registered.
			if f.SetTypes(&shapes, info.Params, info.Result) == nil {
				all.Functions = append(all.Functions, f)
			}
		}
		all.Types = shapes.Types
		if b, err := json.Marshal(all); err == nil && len(b) <= maxListing || n == 0 {
			return b
		}
	}
}
