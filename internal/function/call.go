package function

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/internal/wire"
)

// frame is the memory of one call. One call at a time uses it, and it is zeroed between calls. The function gets copies
// of the values, never a pointer into the frame.
type frame struct {
	in   []reflect.Value  // what the function is called with: receiver, context, arguments
	args []reflect.Value  // the tail of in: the arguments
	ctx  *context.Context // points at the context of in; nil if the function takes none
}

func (f *Function) newFrame() *frame {
	fr := &frame{}
	if f.recv.IsValid() {
		fr.in = append(fr.in, f.recv)
	}
	if f.TakesCtx {
		fr.ctx = new(context.Context)
		fr.in = append(fr.in, reflect.ValueOf(fr.ctx).Elem())
	}
	first := len(fr.in)
	for _, p := range f.params {
		fr.in = append(fr.in, reflect.New(p.typ).Elem())
	}
	fr.args = fr.in[first:]
	return fr
}

// free zeroes the values and returns the frame to the pool.
func (f *Function) free(fr *frame) {
	for _, v := range fr.args {
		v.SetZero()
	}
	if fr.ctx != nil {
		*fr.ctx = nil //nolint:fatcontext // the frame holds one context at a time, not a chain of them
	}
	f.frames.Put(fr)
}

// Call calls the function with the arguments of a message that wire.Parse has accepted. The error is an *ArgumentError
// when they do not fit, and then nothing was called; a *PanicError when the function panicked; otherwise that of the
// function. Calls may run concurrently, and none sees a value of another.
//
// When the function calls runtime.Goexit, Call does not return: see NewPanic.
func (f *Function) Call(ctx context.Context, m *wire.Message) (result any, err error) {
	fr, _ := f.frames.Get().(*frame)
	if err := f.decode(fr, m); err != nil {
		f.free(fr)
		return nil, err
	}
	if fr.ctx != nil {
		*fr.ctx = ctx //nolint:fatcontext // as in free
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		// Nothing stops a Goexit; leave the frame to the collector then.
		if p := NewPanic(recover()); !p.exit {
			f.free(fr)
			result, err = nil, p
		}
	}()
	var out []reflect.Value
	if f.variadic {
		out = f.fn.CallSlice(fr.in)
	} else {
		out = f.fn.Call(fr.in)
	}
	returned = true
	f.free(fr)
	if f.fails {
		if last := out[len(out)-1]; !last.IsNil() {
			err, _ = last.Interface().(error)
		}
	}
	if f.result {
		result = out[0].Interface()
	}
	return result, err
}

// decode fills the frame with the arguments of a message. Errors are *ArgumentError.
func (f *Function) decode(fr *frame, m *wire.Message) (err error) {
	defer func() {
		// The codec should not panic on any input. If it does all the same, only this message suffers.
		if p := recover(); p != nil {
			err = &ArgumentError{
				Func: f.name, Index: -1, Want: "arguments",
				Got: fmt.Sprintf("bytes on which decoding fails (%T)", p),
			}
		}
	}()
	b := m.Payload
	n, rest, isArray := wire.ArrayHeader(b)
	if m.Meta.HasN {
		if len(b) > 0 && !isArray || n != m.Meta.N {
			return f.wrongForm(fmt.Sprintf("an array of the %d arguments announced", m.Meta.N), b)
		}
		return f.decodeCounted(fr.args, b, n, rest)
	}
	switch {
	case len(b) == 0:
		if f.required() == 0 || len(f.params) == 1 && f.variadic {
			return nil
		}
		return f.wrongNumber("none")
	case len(f.params) == 0:
		// go-delayed writes nil for no arguments, Python an empty array for an empty tuple.
		if isArray && n == 0 || bytes.Equal(b, wire.Nil) {
			return nil
		}
		return f.wrongCount(wire.Found(b))
	case f.optional > 0:
		return f.decodeOptional(fr.args, b, n, rest, isArray)
	case len(f.params) == 1:
		if isArray && n == 1 && !f.params[0].codec.FromArray() {
			b = rest
		}
		return f.decodeAll(fr.args, 0, b)
	case !isArray:
		return f.wrongCount("one value, " + wire.Found(b))
	case n != len(f.params):
		return f.wrongCount(strconv.Itoa(n))
	}
	return f.decodeAll(fr.args, 0, rest)
}

// decodeCounted decodes the array b of n arguments, which begin at rest. Those of a variadic tail stand there one by
// one. A list in the place of the whole tail counts as the tail if it cannot be an element of it.
func (f *Function) decodeCounted(args []reflect.Value, b []byte, n int, rest []byte) error {
	if !f.variadic {
		if n < f.required() || n > len(f.params) {
			return f.wrongNumber(strconv.Itoa(n))
		}
		return f.decodeAll(args[:n], 0, rest)
	}
	fixed := len(f.params) - 1
	if n < min(f.required(), fixed) {
		return f.wrongNumber(strconv.Itoa(n))
	}
	if n < fixed {
		return f.decodeAll(args[:n], 0, rest)
	}
	rest, err := f.decodeSome(args[:fixed], 0, rest)
	if err != nil {
		return err
	}
	_, _, isArray := wire.ArrayHeader(rest)
	switch {
	case n == fixed: // also when there is no payload at all
		return nil
	case n == fixed+1 && isArray && !f.elem.codec.FromArray():
		b = rest
	case fixed > 0:
		b = append(wire.AppendArrayHeader(make([]byte, 0, len(rest)+5), n-fixed), rest...)
	}
	return f.decodeAll(args[fixed:], fixed, b)
}

// decodeAll decodes the parameters from first on, and fails if bytes are left.
func (f *Function) decodeAll(args []reflect.Value, first int, b []byte) error {
	rest, err := f.decodeSome(args, first, b)
	if err == nil && len(rest) > 0 {
		return f.wrongForm("nothing after the arguments", rest)
	}
	return err
}

func (f *Function) decodeSome(args []reflect.Value, first int, b []byte) (rest []byte, err error) {
	for i, v := range args {
		p := &f.params[first+i]
		if b, err = p.codec.Decode(b, v); err != nil {
			return nil, f.decodeError(first+i, err)
		}
	}
	return b, nil
}

// decodeError turns an error of a codec into one that counts arguments as the function's caller does.
func (f *Function) decodeError(i int, err error) *ArgumentError {
	var ve *wire.ValueError
	if f.variadic && i == len(f.params)-1 && errors.As(err, &ve) {
		if inner, ok := strings.CutPrefix(ve.Where, "["); ok {
			if index, where, ok := strings.Cut(inner, "]"); ok {
				if k, convErr := strconv.Atoi(index); convErr == nil {
					elem := *ve
					elem.Where = where
					return codecError(f.name, i+k, f.elem.typ, &elem)
				}
			}
		}
	}
	return codecError(f.name, i, f.params[i].typ, err)
}

func (f *Function) wrongForm(want string, b []byte) *ArgumentError {
	return &ArgumentError{Func: f.name, Index: -1, Want: want, Got: wire.Found(b)}
}

// ArgsOf decodes the arguments of a message for f, those of a variadic tail one by one.
func (f *Function) ArgsOf(message []byte) (args []any, ok bool, err error) {
	m, err := wire.Parse(message, wire.WorkerLimits)
	if err != nil || m.Path != f.name && !slices.Contains(f.others, m.Path) {
		return nil, false, nil //nolint:nilerr // an undecodable message is no call of f
	}
	fr := f.newFrame()
	if err := f.decode(fr, &m); err != nil {
		return nil, true, err
	}
	values := fr.args
	if f.variadic {
		var tail reflect.Value
		values, tail = values[:len(values)-1], values[len(values)-1]
		for i := range tail.Len() {
			values = append(values, tail.Index(i))
		}
	}
	args = make([]any, len(values))
	for i, v := range values {
		args[i] = v.Interface()
	}
	return args, true, nil
}

// planResult prepares keeping the function's result. A type that cannot travel is an error only if KeepResult is given.
func (f *Function) planResult(t reflect.Type) {
	var err error
	if f.returns, err = newParam(t); err != nil {
		f.NoResult = fmt.Errorf("%w: %s: expected a result that can travel, because KeepResult is given, found: %w",
			ErrFunction, f.name, err)
	}
}

// EncodeResult encodes the function's result; nil if it has none.
func (f *Function) EncodeResult(value any) (b []byte, err error) {
	switch {
	case !f.result:
		return nil, nil
	case f.NoResult != nil:
		return nil, f.NoResult
	}
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("delayed: encoding the result of %s panicked: %v", f.name, p)
		}
	}()
	// Encode the declared type, which may be an interface.
	v := reflect.New(f.returns.typ).Elem()
	switch {
	case value != nil:
		v.Set(reflect.ValueOf(value))
	case v.Kind() != reflect.Interface:
		return nil, nil // the middleware did not call the function
	}
	if b, err = f.returns.codec.Append(nil, v); err != nil {
		return nil, fmt.Errorf("delayed: result of %s: %w", f.name, err)
	}
	return b, nil
}
