package function

import (
	"fmt"
	"reflect"
)

// planResult prepares keeping what the function returns. A type that cannot travel is an error only for those who want
// to keep it.
func (f *Function) planResult(t reflect.Type) {
	var err error
	if f.returns, err = newParam(t); err != nil {
		f.NoResult = fmt.Errorf("%w: %s: expected a result that can travel, because KeepResult is given, found: %w",
			ErrFunction, f.name, err)
	}
}

// EncodeResult encodes what the function has returned; nil if it returns nothing.
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
	// Of the declared type: an interface does not say by itself that it is one.
	v := reflect.New(f.returns.typ).Elem()
	switch {
	case value != nil:
		v.Set(reflect.ValueOf(value))
	case v.Kind() != reflect.Interface:
		return nil, nil // middleware has not called the function
	}
	if b, err = f.returns.codec.Append(nil, v); err != nil {
		return nil, fmt.Errorf("delayed: result of %s: %w", f.name, err)
	}
	return b, nil
}
