package delayed

import (
	"reflect"
	"runtime"
)

// FunctionInfo describes a registered function.
type FunctionInfo struct {
	Path     string         // under which tasks name it
	Aliases  []string       // other paths that tasks may name it by
	Params   []reflect.Type // of its arguments, without receiver and context
	Variadic bool           // the last of Params is the slice of a variadic parameter
	Optional int            // how many of the last Params a task may lack
	Result   reflect.Type   // of what it returns beside an error; nil if that is nothing, or cannot be kept

	// Func is the function in the program: its name there, and where it stands in the source. Nil where that is
	// unknown.
	Func *runtime.Func
}

// Functions describes what is registered, sorted by path. Its slices are the caller's.
func (w *Worker) Functions() []FunctionInfo {
	must(w.check())
	var infos []FunctionInfo
	for _, f := range w.registry.All() {
		infos = append(infos, FunctionInfo(f.Info()))
	}
	return infos
}
