package function

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	if !v.IsValid() {
		return nil, Refusal("receiver", "a value with methods", "nil",
			"give the receiver that tasks shall run with")
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		if v.IsNil() {
			return nil, Refusal("receiver", "a value with methods", "a nil "+v.Type().String(),
				"give the receiver that tasks shall run with")
		}
	default:
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
