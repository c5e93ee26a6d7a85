package catalog

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// MisfitError is the error of a call that a worker which has published a function would refuse.
type MisfitError struct {
	Function string // its signature
	Index    int    // of the argument by position, from 0; -1: their number is wrong
	Name     string // of the argument, if it was given by name
	Want     string // what the function takes
	Got      string // what was found; of values only the kind, because they may be secret, and numbers
}

// Error implements error.
func (m *MisfitError) Error() string {
	argument := m.Name
	switch {
	case m.Index < 0:
		return fmt.Sprintf("expected %s, found %s", m.Want, m.Got)
	case argument == "":
		argument = strconv.Itoa(m.Index + 1)
	}
	return fmt.Sprintf("argument %s of %s does not fit: expected %s, found %s", argument, m.Function, m.Want, m.Got)
}

// Signature returns the function as it is declared: "mail.Welcome(int, string) error" without the error.
func (f *Function) Signature() string {
	params := make([]string, len(f.Params))
	for i, p := range f.Params {
		params[i] = f.TypeOf(i)
		if p.Name != "" {
			params[i] = p.Name + " " + params[i]
		}
	}
	name := f.Path
	if !f.python() {
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	text := name + "(" + strings.Join(params, ", ") + ")"
	if f.Result != nil {
		text += " " + f.Result.Go
	}
	return text
}

// TypeOf returns the type of a parameter as it is declared: "...string" of a variadic one.
func (f *Function) TypeOf(i int) string {
	text := f.Params[i].Go
	if !f.Variadic || i < len(f.Params)-1 {
		return text
	}
	if elem, ok := strings.CutPrefix(text, "list["); ok { // Python's
		return "..." + strings.TrimSuffix(elem, "]")
	}
	return "..." + strings.TrimPrefix(text, "[]")
}

func (f *Function) python() bool { return strings.Contains(f.Path, ":") }

// Fit returns a *MisfitError if a worker would refuse the decoded arguments. What a function has not published, such as
// the types of many of Python's parameters and the names of its keyword-only ones, fits. types are those of the list
// that the function is from.
func (f *Function) Fit(types map[string]*wire.Shape, args []any, kwargs map[string]any) error {
	r := reader{types, f.python()}
	fixed, least := len(f.Params), len(f.Params)-f.Optional
	if f.Variadic {
		fixed--
		least = min(least, fixed)
		if len(args) == len(f.Params) && args[fixed] != nil && r.misfit(f.Params[fixed].Type, args[fixed], 0) == nil {
			args = args[:fixed] // on the wire, the variadic arguments of Go are one list
		}
	}
	misfit := func(i int, name, want, got string) error {
		return &MisfitError{f.Signature(), i, name, want, got}
	}
	wrongCount := func(n int) error { return misfit(-1, "", "the arguments of "+f.Signature(), strconv.Itoa(n)) }
	if len(args) > fixed && !f.Variadic {
		return wrongCount(len(args))
	}
	for i := len(args); i < least; i++ {
		if _, named := kwargs[f.Params[i].Name]; !named {
			return wrongCount(len(args) + len(kwargs))
		}
	}
	for i, v := range args {
		p := &f.Params[min(i, len(f.Params)-1)]
		shape, text := p.Type, p.Go
		if tail := r.shape(shape); i >= fixed && tail != nil && tail.Kind == "list" {
			shape, text = tail.Elem, strings.TrimPrefix(f.TypeOf(len(f.Params)-1), "...")
		}
		if bad := r.misfit(shape, v, 0); bad != nil {
			return misfit(i, "", bad.wanted(text), bad.got)
		}
	}
	for i, p := range f.Params[:fixed] {
		v, named := kwargs[p.Name]
		switch {
		case !named:
		case i < len(args):
			return misfit(i, p.Name, "it once", "it given twice, by position and by name")
		default:
			if bad := r.misfit(p.Type, v, 0); bad != nil {
				return misfit(i, p.Name, bad.wanted(p.Go), bad.got)
			}
		}
	}
	return nil
}

// place is where in an argument a value does not fit.
type place struct {
	where string // within the argument; "" for all of it
	want  string
	got   string
}

// wanted says what was expected of an argument of a type.
func (p *place) wanted(text string) string {
	switch {
	case p.where != "":
		return p.want + " at " + p.where
	case text == "" || strings.HasPrefix(p.want, "fields ") || strings.HasPrefix(p.want, "at most "):
		return p.want
	}
	return text
}

// in adds the way to the value.
func (p *place) in(step string) *place {
	if p != nil {
		p.where = step + p.where
	}
	return p
}

// reader compares values with shapes.
type reader struct {
	types  map[string]*wire.Shape // those that refs name
	python bool                   // annotations of Python say less than types of Go
}

// mostSteps bounds the shapes within each other that hold one value, which a strange list may make endless.
const mostSteps = 100

// shape returns what a shape refers to, nil for anything: shapes of newer versions are unknown.
func (r reader) shape(s *wire.Shape) *wire.Shape {
	if s != nil && s.Kind == "ref" {
		return r.types[s.Name]
	}
	return s
}

// misfit returns where a decoded value is not one of the shape, nil if it is.
func (r reader) misfit(s *wire.Shape, v any, steps int) *place {
	ref := s
	if s = r.shape(s); s == nil || steps > mostSteps {
		return nil
	}
	fits := true
	switch s.Kind {
	case "optional":
		if v == nil {
			return nil
		}
		return r.misfit(s.Elem, v, steps+1)
	case "bool":
		fits = isA[bool](v)
	case "string":
		fits = isA[string](v)
	case "time":
		fits = isA[time.Time](v)
	case "bytes":
		b, is := v.([]byte)
		fits = v == nil && s.Length == nil || r.python && isA[string](v) ||
			is && (s.Length == nil || len(b) == *s.Length)
	case "float32":
		fits = r.floatFits(v, 24)
	case "float64":
		fits = r.floatFits(v, 53)
	case "list":
		return r.list(s, v, steps)
	case "map":
		return r.mapping(s, v, steps)
	case "struct":
		return r.structure(s, name(ref), v, steps)
	default:
		if bounds, is := integerBounds[s.Kind]; is { // else of any kind, or one of a newer version
			fits = integerFits(v, bounds.least, bounds.most) ||
				r.python && (isA[int64](v) || isA[uint64](v) || isA[bool](v))
		}
	}
	if fits {
		return nil
	}
	return &place{want: s.Kind, got: kindOf(v)}
}

// name returns the name of a struct, as the language of the worker writes it.
func name(ref *wire.Shape) string {
	if ref.Name == "" {
		return "the struct"
	}
	return ref.Name[strings.LastIndexByte(ref.Name, '/')+1:]
}

func (r reader) list(s *wire.Shape, v any, steps int) *place {
	list, is := v.([]any)
	switch {
	case v == nil && s.Length == nil:
		return nil
	case !is:
		return &place{want: "a list", got: kindOf(v)}
	case s.Length != nil && len(list) != *s.Length:
		return &place{want: fmt.Sprintf("a list of %d", *s.Length), got: strconv.Itoa(len(list))}
	}
	for i, e := range list {
		if bad := r.misfit(s.Elem, e, steps+1); bad != nil {
			return bad.in("[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}

func (r reader) mapping(s *wire.Shape, v any, steps int) *place {
	one := func(k, e any) *place {
		if bad := r.misfit(s.Key, k, steps+1); bad != nil {
			return bad.in("a key")
		}
		return r.misfit(s.Elem, e, steps+1).in("a value")
	}
	switch m := v.(type) {
	case nil:
		return nil
	case map[string]any:
		return firstBad(m, one)
	case map[any]any:
		return firstBad(m, one)
	}
	return &place{want: "a map", got: kindOf(v)}
}

// firstBad returns what one returns for a pair of m that does not fit.
func firstBad[K comparable](m map[K]any, one func(k, e any) *place) *place {
	for k, e := range m {
		if bad := one(k, e); bad != nil {
			return bad
		}
	}
	return nil
}

// structure compares a value with a struct: a map with fields that it has, or its fields by position.
func (r reader) structure(s *wire.Shape, name string, v any, steps int) *place {
	switch v := v.(type) {
	case []any:
		if len(v) > len(s.Fields) {
			return &place{want: fmt.Sprintf("at most %d fields of %s", len(s.Fields), name), got: strconv.Itoa(len(v))}
		}
		for i, e := range v {
			if bad := r.misfit(s.Fields[i].Type, e, steps+1); bad != nil {
				return bad.in("." + s.Fields[i].Name)
			}
		}
	case map[string]any:
		for key, e := range v {
			i := slices.IndexFunc(s.Fields, func(f wire.ShapeField) bool { return f.Name == key })
			if i < 0 {
				return &place{want: "fields of " + name + ": " + fieldNames(s), got: "another one"}
			}
			if bad := r.misfit(s.Fields[i].Type, e, steps+1); bad != nil {
				return bad.in("." + s.Fields[i].Name)
			}
		}
	default:
		return &place{want: name, got: kindOf(v)}
	}
	return nil
}

// mostFields bounds the fields that an error names.
const mostFields = 20

func fieldNames(s *wire.Shape) string {
	var names []string
	for i, f := range s.Fields {
		if i == mostFields {
			names = append(names, "…")
			break
		}
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
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

// floatFits reports whether a floating-point number with so many bits of mantissa holds a value exactly. Workers in Go
// demand that.
func (r reader) floatFits(v any, mantissa int) bool {
	whole := func(n uint64) bool { return bits.Len64(n)-bits.TrailingZeros64(n) <= mantissa }
	switch v := v.(type) {
	case float32:
		return true
	case float64:
		return r.python || mantissa == 53 || float64(float32(v)) == v || v != v
	case int64:
		if v < 0 {
			v = -v // which the least one stays, and that is a power of two
		}
		return r.python || whole(uint64(v)) //nolint:gosec // as meant
	case uint64:
		return r.python || whole(v)
	}
	return false
}

// kindOf names the kind of a decoded value, which itself may be secret unless it is a number.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case bool:
		return "a bool"
	case int64, uint64, float32, float64:
		return fmt.Sprintf("the number %v", v)
	case string:
		return "a string"
	case []byte:
		return "bytes"
	case time.Time:
		return "a time"
	case []any:
		return "a list"
	}
	return "a map"
}
