package function

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/internal/wire"
)

// Refuser returns what is wrong with an argument that must not be sent, and where it belongs; "" if it is fine. nil
// refuses none.
type Refuser func(argument any) string

func (r Refuser) refuses(a any) string {
	if r == nil {
		return ""
	}
	return r(a)
}

// Encode writes args as the payload of a task of f, in the form for messages that do not count their arguments:
// nothing, the bare value, or an array. A variadic function takes the values of its tail one by one, as in Go, or as a
// slice, without "...": a slice counts as the tail if it is the only value there and cannot be an element. Structs are
// written as maps. Errors are *ArgumentError.
func (f *Function) Encode(args []any) ([]byte, error) {
	b, _, err := f.AppendPayload(wire.ByName, make([]byte, 0, 64), args, nil)
	return b, err
}

// AppendPayload is Encode into the memory of dst, which is empty, with structs in either form. It also reports whether
// there is a struct among args: if not, both forms are the same.
func (f *Function) AppendPayload(
	form wire.Form, dst []byte, args []any, refuse Refuser,
) (_ []byte, structs bool, _ error) {
	fixed := len(f.params)
	if f.variadic {
		fixed--
	}
	if len(args) < fixed || len(args) > fixed && !f.variadic {
		for i, a := range args {
			if _, ok := a.(context.Context); ok || refuse.refuses(a) != "" {
				return nil, false, f.misfit(i, f.wantAt(i), a, refuse)
			}
		}
		return nil, false, f.wrongCount(strconv.Itoa(len(args)))
	}
	if len(f.params) == 0 {
		return nil, false, nil
	}
	p := payload{f: f, form: form, b: dst, refuse: refuse}
	if len(f.params) > 1 {
		p.b = wire.AppendArrayHeader(p.b, len(f.params))
	}
	for i, a := range args[:fixed] {
		if err := p.arg(&f.params[i], i, a); err != nil {
			return nil, false, err
		}
	}
	if f.variadic {
		if err := p.tail(fixed, args[fixed:]); err != nil {
			return nil, false, err
		}
	}
	// Each value is within the limits; check all together, unless they are certainly within them: every value takes a
	// byte, and flat types are not deep.
	if f.flat && len(p.b) <= min(wire.Default.Elems, wire.Default.Bytes) {
		return p.b, p.structs, nil
	}
	if err := wire.Check(p.b, wire.Default); err != nil {
		return nil, false, OverLimits(f.name, err)
	}
	return p.b, p.structs, nil
}

// payload collects the encoded arguments of a function.
type payload struct {
	f       *Function
	form    wire.Form
	refuse  Refuser
	b       []byte
	structs bool // there is a struct among them
}

func (p *payload) tail(fixed int, tail []any) error {
	f := p.f
	slice := &f.params[fixed]
	if len(tail) == 1 {
		if _, ok := f.elem.fit(tail[0], p.refuse); !ok && tail[0] != nil &&
			reflect.TypeOf(tail[0]).AssignableTo(slice.typ) {
			return p.arg(slice, fixed, tail[0])
		}
	}
	p.b = wire.AppendArrayHeader(p.b, len(tail))
	for i, a := range tail {
		if err := p.arg(&f.elem, fixed+i, a); err != nil {
			return err
		}
	}
	return nil
}

func (p *payload) arg(as *param, i int, a any) error {
	v, ok := as.fit(a, p.refuse)
	if !ok {
		return p.f.misfit(i, as.typ.String(), a, p.refuse)
	}
	b, structs, err := as.codec.AppendAs(p.form, p.b, v)
	if err != nil {
		return codecError(p.f.name, i, as.typ, err)
	}
	p.b, p.structs = b, p.structs || structs
	return nil
}

// wantAt returns the type of the argument at i, for error texts.
func (f *Function) wantAt(i int) string {
	switch {
	case f.variadic && i >= len(f.params)-1:
		return f.elem.typ.String()
	case i < len(f.params):
		return f.params[i].typ.String()
	default:
		return "no argument"
	}
}

// misfit returns the error for an argument of the wrong type. It shows the value of numbers; of all else only the type,
// because arguments may be secret.
func (f *Function) misfit(i int, want string, a any, refuse Refuser) *ArgumentError {
	got := "nil"
	if v := reflect.ValueOf(a); v.IsValid() {
		got = v.Type().String()
		if v.CanInt() || v.CanUint() || v.CanFloat() {
			got = fmt.Sprintf("%s %v", got, v)
		}
	}
	if _, ok := a.(context.Context); ok {
		got = "a context.Context, which is no argument: call DelayContext(ctx, fn, ...)"
	} else if what := refuse.refuses(a); what != "" {
		got = what
	}
	return &ArgumentError{Func: f.name, Index: i, Want: want, Got: got}
}

func (f *Function) wrongCount(got string) *ArgumentError {
	types := make([]string, len(f.params))
	for i, p := range f.params {
		types[i] = p.typ.String()
	}
	n := len(f.params)
	want := "no arguments"
	switch {
	case f.variadic && n == 1:
		want = "any number of arguments"
	case f.variadic:
		n--
		want = fmt.Sprintf("at least %d arguments", n)
	case n > 0:
		want = fmt.Sprintf("%d arguments", n)
	}
	if n == 1 {
		want = strings.TrimSuffix(want, "s")
	}
	if f.variadic {
		types[len(types)-1] = "..." + f.elem.typ.String()
	}
	if len(types) > 0 {
		want += " (" + strings.Join(types, ", ") + ")"
	}
	return &ArgumentError{Func: f.name, Index: -1, Want: want, Got: got}
}

// fit turns an argument into a value of the parameter's type. It accepts assignable values, integers that fit, integers
// for a float that represents them exactly, nil for types that have it, and types with the same underlying type.
func (p *param) fit(a any, refuse Refuser) (reflect.Value, bool) {
	v := reflect.ValueOf(a)
	if !v.IsValid() {
		switch p.typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
			return reflect.Zero(p.typ), true
		default:
			return v, false
		}
	}
	t := v.Type()
	if t == p.typ {
		return v, true
	}
	if refuse.refuses(a) != "" { // its underlying type may be a number or a string
		return v, false
	}
	switch p.typ.Kind() {
	case reflect.Interface:
		if _, isContext := a.(context.Context); isContext || !t.AssignableTo(p.typ) {
			return v, false
		}
		return v.Convert(p.typ), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		ok := v.CanInt() && !p.typ.OverflowInt(v.Int()) ||
			v.CanUint() && v.Uint() <= math.MaxInt64 && !p.typ.OverflowInt(int64(v.Uint())) //nolint:gosec // checked
		return converted(v, p.typ, ok)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		ok := v.CanUint() && !p.typ.OverflowUint(v.Uint()) ||
			v.CanInt() && v.Int() >= 0 && !p.typ.OverflowUint(uint64(v.Int())) //nolint:gosec // checked
		return converted(v, p.typ, ok)
	case reflect.Float32, reflect.Float64:
		if v.CanInt() || v.CanUint() {
			return converted(v, p.typ, exact(v, p.typ.Kind() == reflect.Float32))
		}
	default:
	}
	return converted(v, p.typ, t.Kind() == p.typ.Kind() && t.ConvertibleTo(p.typ))
}

func converted(v reflect.Value, t reflect.Type, ok bool) (reflect.Value, bool) {
	if !ok {
		return v, false
	}
	return v.Convert(t), true
}

// exact reports whether a float represents an integer exactly. Above 2^24 or 2^53 it does so for some only, and the
// greatest int64 and uint64 round up to a power of two that is out of their range.
func exact(v reflect.Value, single bool) bool {
	if v.CanInt() {
		f := float64(v.Int())
		if single {
			f = float64(float32(v.Int()))
		}
		return f < 1<<63 && int64(f) == v.Int()
	}
	f := float64(v.Uint())
	if single {
		f = float64(float32(v.Uint()))
	}
	return f < 1<<64 && uint64(f) == v.Uint()
}

// EncodeArgs writes the arguments of a task that is given by path, so that its parameters are unknown: always an array,
// each argument by its own type. It also reports whether there is a struct among them. Errors are *ArgumentError.
func EncodeArgs(form wire.Form, path string, args []any, refuse Refuser) (payload []byte, structs bool, _ error) {
	if len(args) == 0 {
		return nil, false, nil // the same bytes as from Delay, so that UniqueFor takes both for the same call
	}
	dst := wire.AppendArrayHeader(make([]byte, 0, 64), len(args))
	for i, a := range args {
		got := refuse.refuses(a)
		if _, ok := a.(context.Context); ok {
			got = "a context.Context, which is no argument: pass it to Enqueue(ctx, task)"
		}
		if got != "" {
			return nil, false, &ArgumentError{Func: path, Index: i, Want: "a value", Got: got}
		}
		if a == nil {
			dst = wire.AppendNil(dst)
			continue
		}
		t := reflect.TypeOf(a)
		c, err := wire.CodecFor(t)
		one := false
		if err == nil {
			dst, one, err = c.AppendAs(form, dst, reflect.ValueOf(a))
		}
		if err != nil {
			return nil, false, codecError(path, i, t, err)
		}
		structs = structs || one
	}
	if err := wire.Check(dst, wire.Default); err != nil {
		return nil, false, OverLimits(path, err)
	}
	return dst, structs, nil
}

// OverLimits returns the error for arguments that together exceed the limits of a message.
func OverLimits(path string, err error) *ArgumentError {
	want := fmt.Sprintf("at most %d values, %d deep, in %d bytes for all arguments together", wire.Default.Elems,
		wire.Default.Depth, wire.Default.Bytes)
	e := &ArgumentError{Func: path, Index: -1, Want: want, Got: err.Error()}
	var fe *wire.FormatError
	if errors.As(err, &fe) {
		e.Got = fe.Got
	}
	return e
}

// codecError turns the error of a codec of type t into one about the argument at i.
func codecError(path string, i int, t reflect.Type, err error) *ArgumentError {
	e := &ArgumentError{Func: path, Index: i, Want: t.String(), Got: err.Error()}
	var ve *wire.ValueError
	if errors.As(err, &ve) {
		e.Want, e.Got = ve.Want, ve.Got
		if ve.Where != "" {
			e.Want = fmt.Sprintf("%s at %s of %s", ve.Want, ve.Where, t)
		}
	}
	return e
}

// Split returns the encoded arguments of a message by position, as their caller gave them: those of a variadic tail one
// by one. f is nil if the function is unknown here; then a tail that was sent as one list is one argument. Keyword
// arguments of Python are not among them.
func Split(f *Function, m *wire.Message) ([][]byte, error) {
	b := m.Payload
	if m.Python() {
		b = m.Args()
	}
	if len(b) == 0 {
		return nil, nil
	}
	n, rest, isArray := wire.ArrayHeader(b)
	switch {
	case !isArray && (m.Python() || f != nil && len(f.params) == 0): // nil stands for no arguments
		return nil, nil
	case !isArray:
		return [][]byte{b}, nil
	case f != nil && len(f.params) == 1 && !f.variadic && !m.Meta.HasN && (n != 1 || f.params[0].codec.FromArray()):
		return [][]byte{b}, nil
	}
	args, err := values(make([][]byte, 0, n), n, rest)
	if err != nil || f == nil || !f.variadic || len(args) != len(f.params) || len(f.params) == 1 && !m.Meta.HasN {
		return args, err
	}
	last := len(args) - 1
	n, rest, isArray = wire.ArrayHeader(args[last])
	if !isArray || m.Meta.HasN && f.elem.codec.FromArray() {
		return args, nil
	}
	return values(args[:last], n, rest)
}

// values appends the n values at the front of b.
func values(list [][]byte, n int, b []byte) ([][]byte, error) {
	for range n {
		rest, _, err := wire.Skip(b)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", len(list)+1, err)
		}
		list, b = append(list, b[:len(b)-len(rest)]), rest
	}
	return list, nil
}

// checkOptional returns an error if the function has fewer parameters than may be missing.
func (f *Function) checkOptional() error {
	if f.optional < 0 || f.optional > len(f.params) {
		return Refusal(f.name, fmt.Sprintf("Optional of 0 to %d, as the function takes so many arguments",
			len(f.params)), strconv.Itoa(f.optional),
			"change it")
	}
	return nil
}

// required returns the least number of arguments of a task, in the form that writes the tail of a variadic function as
// one argument.
func (f *Function) required() int { return len(f.params) - f.optional }

// decodeOptional is decode for messages that do not count their arguments, when some may be missing. b is the payload,
// an array of n values that begin at rest, or another value. It is taken for a list of arguments if it can be one, else
// for the first argument if the others may be missing.
func (f *Function) decodeOptional(args []reflect.Value, b []byte, n int, rest []byte, isArray bool) error {
	required := f.required()
	if required == 0 && bytes.Equal(b, wire.Nil) {
		return nil
	}
	bare := required <= 1
	if isArray && n >= required && n <= len(f.params) && (len(f.params) > 1 || !f.params[0].codec.FromArray()) {
		err := f.decodeAll(args[:n], 0, rest)
		if err == nil || !bare || !f.params[0].codec.FromArray() {
			return err
		}
		for _, v := range args {
			v.SetZero()
		}
		if f.decodeAll(args[:1], 0, b) == nil {
			return nil
		}
		return err
	}
	switch {
	case bare && (!isArray || f.params[0].codec.FromArray()):
		return f.decodeAll(args[:1], 0, b)
	case isArray:
		return f.wrongNumber(strconv.Itoa(n))
	}
	return f.wrongNumber("one value, " + wire.Found(b))
}

// wrongNumber is wrongCount for a task, in which arguments may be missing.
func (f *Function) wrongNumber(got string) *ArgumentError {
	e := f.wrongCount(got)
	if f.optional > 0 {
		e.Want = fmt.Sprintf("%s, the last %d of which may be missing", e.Want, f.optional)
	}
	return e
}
