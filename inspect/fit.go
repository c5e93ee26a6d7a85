package inspect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/godelayed/delayed"
)

// checkCall returns an error if workers of the queue have published the function of Edit's task, and its arguments fit
// no version of it.
func (w *hand) checkCall(ctx context.Context) error {
	call := w.action.call
	published, err := functionsOf(ctx, w.store)
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
// arguments of a call. What the worker has not published fits, such as the types of many of Python's parameters. The
// path of the call is not compared.
func (f *Function) Fits(call *delayed.Task) error {
	args, kwargs, err := call.Args()
	if err == nil {
		err = f.fit(args, kwargs)
	}
	if err != nil && !errors.Is(err, delayed.ErrArguments) {
		err = fmt.Errorf("%w: %w", delayed.ErrArguments, err)
	}
	return err
}

// fit returns an error if a worker would refuse the arguments. What a function has not published, such as the types of
// many of Python's parameters and the names of its keyword-only ones, fits.
func (f *Function) fit(args []any, kwargs map[string]any) error {
	fixed, least := len(f.Parameters), len(f.Parameters)-f.Optional
	if f.Variadic {
		fixed--
		least = min(least, fixed)
		if len(args) == len(f.Parameters) && f.Parameters[fixed].Shape.holds(args[fixed]) {
			args = args[:fixed] // on the wire, the variadic arguments of Go are one list
		}
	}
	if len(args) > fixed && !f.Variadic {
		return fmt.Errorf("expected the arguments of %s, found %d", f.Signature(), len(args))
	}
	for i := len(args); i < least; i++ {
		if _, named := kwargs[f.Parameters[i].Name]; !named {
			return fmt.Errorf("expected the arguments of %s, found %d", f.Signature(), len(args)+len(kwargs))
		}
	}
	for i, v := range args {
		shape := f.Parameters[min(i, len(f.Parameters)-1)].Shape
		if i >= fixed && shape.Kind == "list" {
			shape = shape.Elem
		}
		if !shape.holds(v) {
			return fmt.Errorf("argument %d of %s does not fit: found %s", i+1, f.Signature(), kindOf(v))
		}
	}
	for i, p := range f.Parameters[:fixed] {
		v, named := kwargs[p.Name]
		switch {
		case !named:
		case i < len(args):
			return fmt.Errorf("argument %s of %s is given twice, by position and by name", p.Name, f.Signature())
		case !p.Shape.holds(v):
			return fmt.Errorf("argument %s of %s does not fit: found %s", p.Name, f.Signature(), kindOf(v))
		}
	}
	return nil
}

// holds reports whether a decoded value may be one of the shape.
func (s *Shape) holds(v any) bool {
	if s == nil {
		return true
	}
	switch s.Kind {
	case "optional":
		return v == nil || s.Elem.holds(v)
	case "bool":
		return isA[bool](v)
	case "string":
		return isA[string](v)
	case "bytes":
		return v == nil && s.Length < 0 || isA[string](v) || bytesFit(v, s.Length)
	case "time":
		return isA[time.Time](v)
	case "float32", "float64":
		return isA[float64](v) || isA[float32](v) || isA[int64](v) || isA[uint64](v)
	case "list":
		return v == nil && s.Length < 0 || listFits(v, s)
	case "map":
		return v == nil || mapFits(v, s)
	case "struct":
		return structFits(v, s)
	}
	if bounds, ok := integerBounds[s.Kind]; ok {
		return integerFits(v, bounds.least, bounds.most)
	}
	return true // of any kind, or one of a newer version
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// integerBounds are the least and the largest value of each kind of integer.
var integerBounds = map[string]struct {
	least int64
	most  uint64
}{
	"int8": {math.MinInt8, math.MaxInt8}, "int16": {math.MinInt16, math.MaxInt16},
	"int32": {math.MinInt32, math.MaxInt32}, "int64": {math.MinInt64, math.MaxInt64},
	"uint8": {0, math.MaxUint8}, "uint16": {0, math.MaxUint16}, "uint32": {0, math.MaxUint32},
	"uint64": {0, math.MaxUint64},
}

func integerFits(v any, least int64, most uint64) bool {
	switch v := v.(type) {
	case int64:
		return v >= least && (v < 0 || uint64(v) <= most)
	case uint64:
		return v <= most
	}
	return false
}

func bytesFit(v any, length int) bool {
	b, ok := v.([]byte)
	return ok && (length < 0 || len(b) == length)
}

func listFits(v any, s *Shape) bool {
	list, ok := v.([]any)
	if !ok || s.Length >= 0 && len(list) != s.Length {
		return false
	}
	return !slices.ContainsFunc(list, func(e any) bool { return !s.Elem.holds(e) })
}

func mapFits(v any, s *Shape) bool {
	switch m := v.(type) {
	case map[string]any:
		for k, e := range m {
			if !s.Key.holds(k) || !s.Elem.holds(e) {
				return false
			}
		}
		return true
	case map[any]any:
		for k, e := range m {
			if !s.Key.holds(k) || !s.Elem.holds(e) {
				return false
			}
		}
		return true
	}
	return false
}

// structFits reports whether a value may be a struct: a map with fields that it has, or its fields by position.
func structFits(v any, s *Shape) bool {
	if list, ok := v.([]any); ok {
		return len(list) <= len(s.Fields)
	}
	m, ok := v.(map[string]any)
	for name, e := range m {
		i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
		if i < 0 || !s.Fields[i].Shape.holds(e) {
			return false
		}
	}
	return ok
}

// kindOf names the kind of a decoded value, which itself may be secret.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "a bool"
	case int64, uint64:
		return "an integer"
	case float32, float64:
		return "a float"
	case string:
		return "a string"
	case []byte:
		return "bytes"
	case time.Time:
		return "a time"
	case []any:
		return "a list"
	default:
		return "a map"
	}
}
