package function

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"

	"github.com/godelayed/delayed/internal/wire"
)

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
