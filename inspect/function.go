package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Function is a function that workers of a queue run.
type Function struct {
	Queue      string
	Path       string
	Aliases    []string    // other paths that tasks may carry
	Parameters []Parameter // without receiver and context
	Variadic   bool        // the last of Parameters is the slice of a variadic parameter
	Optional   int         // how many of the last Parameters a task may lack
	Result     string      // type of the result as it is written in the worker's language; "" for none
	Workers    []string    // ids of those that run it

	listed *catalog.Function // as it was published, with the types there
	types  map[string]*wire.Shape
}

// Parameter is one parameter of a function.
type Parameter struct {
	Name string // "" if it is unknown, as those of Go functions are
	Type string // as it is written in the worker's language
	// Shape is how tasks hold its values; of a variadic parameter, those of the slice.
	Shape *Shape
}

// Signature returns the function as it is declared: "mail.Welcome(int, string) error" without the error.
func (f *Function) Signature() string { return Printable(f.declared().Signature()) }

// TypeOf returns the type of a parameter as it is declared: "...string" of a variadic one.
func (f *Function) TypeOf(i int) string { return f.declared().TypeOf(i) }

// IsNamed reports whether a name means the function: it is the path, an alias, or the end of one behind a slash, dot or
// colon, such as mail.Welcome.
func (f *Function) IsNamed(name string) bool {
	means := func(path string) bool { return isNamed(path, name) }
	return means(f.Path) || slices.ContainsFunc(f.Aliases, means)
}

// declared returns the declaration.
func (f *Function) declared() *catalog.Function {
	d := &catalog.Function{Path: f.Path, Variadic: f.Variadic}
	for _, p := range f.Parameters {
		d.Params = append(d.Params, catalog.Parameter{Name: p.Name, Value: catalog.Value{Go: p.Type}})
	}
	if f.Result != "" {
		d.Result = &catalog.Value{Go: f.Result}
	}
	return d
}

// Functions describes the functions that workers of the given queues have published, of all queues if none is given.
// They are sorted by queue and path. Two versions of one function, as there are during a deploy, are two Functions.
func (ins *Inspector) Functions(ctx context.Context, queues ...string) ([]Function, error) {
	stores, err := ins.stores(ctx, queues)
	if err != nil {
		return nil, err
	}
	var all []Function
	for _, s := range stores {
		of, err := functionsOf(ctx, s)
		if len(queues) == 0 && redisstore.IsWrongType(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// functionsOf describes the functions of one queue.
func functionsOf(ctx context.Context, s *redisstore.Store) ([]Function, error) {
	workers, err := s.Workers(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(workers)
	versions := map[string]int{} // a version of a function, as JSON, to its place
	var all []Function
	for _, w := range workers {
		listing, err := s.FunctionsOf(ctx, w)
		if err != nil {
			return nil, err
		}
		list := catalog.ParseListing(listing)
		if list == nil {
			continue
		}
		types := shapes{list.Types, map[string]*Shape{}}
		for i := range list.Functions {
			f, key := functionOf(s.Name, &list.Functions[i], &types)
			place, known := versions[key]
			if !known {
				place = len(all)
				versions[key] = place
				all = append(all, f)
			}
			all[place].Workers = append(all[place].Workers, w)
		}
	}
	slices.SortStableFunc(all, func(a, b Function) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// functionOf describes a published function, and returns a text that differs for other versions of it.
func functionOf(queue string, f *catalog.Function, types *shapes) (fn Function, key string) {
	fn = Function{
		Queue: queue, Path: f.Path, Aliases: f.Aliases, Variadic: f.Variadic, Optional: f.Optional,
		listed: f, types: types.types,
	}
	var b strings.Builder
	published, _ := json.Marshal(f) //nolint:errchkjson // it was JSON
	b.Write(published)
	var seen []*Shape
	for _, p := range f.Params {
		shape := types.of(p.Type)
		shape.text(&b, &seen)
		fn.Parameters = append(fn.Parameters, Parameter{Name: p.Name, Type: p.Go, Shape: shape})
	}
	if f.Result != nil {
		fn.Result = f.Result.Go
	}
	return fn, b.String()
}

// checkCall returns an error if workers of the queue have published the function of Edit's task, and its arguments fit
// no version of it.
func (a *actor) checkCall(ctx context.Context) error {
	call := a.action.call
	published, err := functionsOf(ctx, a.store)
	if err != nil {
		return err
	}
	var misfit error
	for i := range published {
		f := &published[i]
		if f.Path != call.Path() && !slices.Contains(f.Aliases, call.Path()) {
			continue
		}
		if misfit = f.Fits(call); misfit == nil {
			return nil
		}
	}
	if misfit != nil {
		return fmt.Errorf("inspect: Edit: %w", misfit)
	}
	return nil
}

// Fits returns an error, which wraps delayed.ErrArguments, if a worker that has published the function would refuse the
// arguments of a call. What the worker has not published fits, such as the types of many parameters of Python. So does
// every call of a Function that Inspector.Functions has not returned. The path of the call is not compared.
func (f *Function) Fits(call *delayed.Task) error {
	args, kwargs, err := call.Args()
	if err == nil && f.listed != nil {
		err = f.listed.Fit(f.types, args, kwargs)
	}
	if misfit := (*catalog.MisfitError)(nil); errors.As(err, &misfit) {
		return fmt.Errorf("%w: %s", delayed.ErrArguments, Printable(misfit.Error()))
	}
	return err
}

// Lacks reports whether the function's parameters lack a field of Task.UnknownFields, such as "1.Items[].SKU". A task
// that has been parked for such fields runs once a worker knows its function and lacks none of its fields. Lacks is
// false for a path that does not fit the parameters otherwise.
func (f *Function) Lacks(field string) bool {
	digits := len(field) - len(strings.TrimLeft(field, "0123456789"))
	i, err := strconv.Atoi(field[:digits])
	if err != nil || i < 1 || i > len(f.Parameters) {
		return false
	}
	s, path := f.Parameters[i-1].Shape, field[digits:]
	for path != "" && s != nil {
		for s != nil && s.Kind == "optional" {
			s = s.Elem
		}
		if s == nil {
			return false
		}
		if rest, ok := strings.CutPrefix(path, "[]"); ok {
			s, path = s.Elem, rest // nil if it has no elements
			continue
		}
		key, rest, ok := wire.CutField(path)
		if !ok || s.Kind != "struct" {
			return false
		}
		at := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == key })
		if at < 0 {
			return true
		}
		s, path = s.Fields[at].Shape, rest
	}
	return false
}

// Shape is how tasks hold the values of a type, in terms of all languages. Shapes of types that contain themselves
// are circles, so print and encode them with care.
type Shape struct {
	// Kind is "bool", "string", "bytes", "time", "any", "int8" to "int64", "uint8" to "uint64", "float32", "float64",
	// "optional" (an Elem, or nil), "list", "map" or "struct".
	Kind   string
	Name   string // of a struct or of a type that contains itself, as its language writes it; "" if it has none
	Length int    // of a list or of bytes with a fixed length; else -1
	Key    *Shape // of a map
	Elem   *Shape // of an optional, a list or a map
	Fields []Field
}

// Field is one field of a struct.
type Field struct {
	Name  string // its key in a task
	Shape *Shape
}

// shapes turns what a worker has published into shapes.
type shapes struct {
	types map[string]*wire.Shape // those that refs name
	known map[string]*Shape
}

// of returns the shape of s. What is strange is "any": it may come from a worker of a newer version.
func (all *shapes) of(s *wire.Shape) *Shape {
	if s == nil {
		return &Shape{Kind: "any", Length: -1}
	}
	if s.Kind != "ref" {
		shape := &Shape{Length: -1}
		all.fill(shape, s)
		return shape
	}
	if shape := all.known[s.Name]; shape != nil {
		return shape
	}
	shape := &Shape{Kind: "any", Name: s.Name, Length: -1}
	all.known[s.Name] = shape // before its parts, which may contain it
	if named := all.types[s.Name]; named != nil && named.Kind != "ref" {
		all.fill(shape, named)
	}
	return shape
}

func (all *shapes) fill(shape *Shape, s *wire.Shape) {
	shape.Kind = s.Kind
	if s.Length != nil {
		shape.Length = *s.Length
	}
	switch s.Kind {
	case "map":
		shape.Key, shape.Elem = all.of(s.Key), all.of(s.Elem)
	case "list", "optional":
		shape.Elem = all.of(s.Elem)
	case "struct":
		for _, f := range s.Fields {
			shape.Fields = append(shape.Fields, Field{f.Name, all.of(f.Type)})
		}
	}
}

// text writes what distinguishes a shape from others, each named one once.
func (s *Shape) text(b *strings.Builder, seen *[]*Shape) {
	if s == nil {
		return
	}
	fmt.Fprintf(b, "%s %q %d(", s.Kind, s.Name, s.Length)
	defer b.WriteByte(')')
	if s.Name != "" {
		if slices.Contains(*seen, s) {
			return
		}
		*seen = append(*seen, s)
	}
	s.Key.text(b, seen)
	s.Elem.text(b, seen)
	for _, f := range s.Fields {
		fmt.Fprintf(b, "%q:", f.Name)
		f.Shape.text(b, seen)
	}
}
