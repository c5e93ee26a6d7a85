package function

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

const (
	maxStack      = 4 << 10 // bytes of stack that are kept
	maxPanicText  = 1 << 10 // bytes of the panic's value that are kept
	maxPanicDepth = 128     // frames that are looked at
	cut           = "...\n" // stands for what was left out
)

// callFrame and protectFrame name the functions at which the stack of a task ends.
var (
	callFrame    = reflect.TypeFor[Function]().PkgPath() + ".(*Function).Call"
	protectFrame = reflect.TypeFor[Function]().PkgPath() + ".Protect[...]"
)

// PanicError is the error of a handler that panicked or called runtime.Goexit.
type PanicError struct {
	value any    // of the panic; nil after Goexit
	exit  bool   // runtime.Goexit: testing's FailNow, or a helper that ends its goroutine
	text  string // of the value, shortened
	file  string // where, as the compiler spells it; "" if unknown
	line  int
	Stack string // "function\n\tfile:line\n" per frame, innermost first, at most maxStack bytes
}

// NewPanic describes the present panic or Goexit, whichever the stack shows. Deferred functions call it: with the value
// of recover, or with nil in a caller of Function.Call that is unwound although Call recovers panics. Goexit cannot be
// stopped, and a goroutine for each task would cost more than most tasks do; so that caller ends the task and replaces
// the goroutine, which is about to end.
func NewPanic(value any) *PanicError {
	e := &PanicError{value: value, exit: true}
	var pcs [maxPanicDepth]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var stack []string
	unwinding := false
	for more := true; more; {
		var fr runtime.Frame
		fr, more = frames.Next()
		switch {
		case !unwinding:
			// Deferred functions are above the panic that runs them, so the first panic on the stack is the present
			// one.
			unwinding = fr.Function == "runtime.gopanic" || fr.Function == "runtime.Goexit"
			e.exit = fr.Function == "runtime.Goexit"
			continue
		case e.file == "" && inRuntime(fr.Function):
			continue // functions of the runtime between a nil map or a bad index and gopanic
		case fr.Function == callFrame || fr.Function == protectFrame:
			for len(stack) > 0 && strings.HasPrefix(stack[len(stack)-1], "reflect.Value.") {
				stack = stack[:len(stack)-1]
			}
			more = false
			continue
		case e.file == "":
			e.file, e.line = fr.File, fr.Line
		}
		stack = append(stack, fmt.Sprintf("%s\n\t%s:%d\n", fr.Function, fr.File, fr.Line))
	}
	for _, line := range stack {
		if len(e.Stack)+len(line)+len(cut) > maxStack {
			e.Stack += cut
			break
		}
		e.Stack += line
	}
	if !e.exit {
		e.text = fmt.Sprint(value)
		if len(e.text) > maxPanicText {
			e.text = strings.ToValidUTF8(e.text[:maxPanicText], "") + "..."
		}
	}
	return e
}

// Protect calls a user's function, and returns its error. A panic becomes a *PanicError whose stack begins there. When
// the function calls runtime.Goexit, Protect does not return: see NewPanic.
func Protect[T any](ctx context.Context, given T, call func(context.Context, T) error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := NewPanic(recover()); !p.exit {
			err = p
		}
	}()
	err = call(ctx, given)
	returned = true
	return err
}

func inRuntime(function string) bool {
	return strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "internal/runtime/")
}

// Error implements error.
func (e *PanicError) Error() string {
	where := ""
	if e.file != "" {
		where = fmt.Sprintf(" at %s:%d", e.file, e.line)
	}
	if e.exit {
		return "delayed: handler ended its goroutine by runtime.Goexit" + where + "; let it return an error"
	}
	return "delayed: panic" + where + ": " + e.text
}

// ErrorType returns the class of the error, which OpenTelemetry's package semconv asks for: panic or goexit.
func (e *PanicError) ErrorType() string {
	if e.exit {
		return "goexit"
	}
	return "panic"
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
