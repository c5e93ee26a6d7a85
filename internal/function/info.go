package function

import (
	"reflect"
	"runtime"
	"slices"
)

// Info describes a function.
type Info struct {
	Path     string         // that tasks carry
	Aliases  []string       // other paths that tasks may carry
	Params   []reflect.Type // of its arguments, without receiver and context
	Variadic bool           // the last of Params is the slice of a variadic parameter
	Optional int            // how many of the last Params a task may lack
	Result   reflect.Type   // of the result beside an error; nil if there is none, or it cannot be kept

	// Func has the function's name in the program and its place in the source; nil if they are unknown.
	Func *runtime.Func
}

// Info describes f. Its slices are the caller's.
func (f *Function) Info() Info {
	info := Info{Path: f.name, Aliases: slices.Clone(f.others), Variadic: f.variadic, Optional: f.optional}
	for _, p := range f.params {
		info.Params = append(info.Params, p.typ)
	}
	if f.result && f.NoResult == nil {
		info.Result = f.returns.typ
	}
	written := f.fn
	if f.written.IsValid() {
		written = f.written
	}
	info.Func = runtime.FuncForPC(written.Pointer())
	return info
}
