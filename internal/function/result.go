package function

import (
	"fmt"
	"reflect"
)

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
