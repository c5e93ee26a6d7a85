package wire

import "reflect"

// IsNil reports whether v is nil or an interface that holds a nil pointer, map, slice, function or channel.
func IsNil(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return r.IsNil()
	default:
		return false
	}
}
