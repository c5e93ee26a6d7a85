package function

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// panicSite returns the number of the line of this file that ends with a marker.
func panicSite(t *testing.T, marker string) int {
	t.Helper()
	source, err := os.ReadFile("panic_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(source), "\n") {
		if strings.HasSuffix(line, "// site: "+marker) {
			return i + 1
		}
	}
	t.Fatalf("no line is marked %q", marker)
	return 0
}

type panicky struct{ m map[string]int }

func (p *panicky) nilMap()   { p.m["x"] = 1 } // site: nil map
func (p *panicky) nilField() { p.m = nil }    // site: nil pointer

func panicInDefer() {
	defer func() {
		panic("second") // site: in defer
	}()
	panic("first")
}

func panicAgain() {
	defer func() {
		_ = recover()
		panic("again") // site: again
	}()
	panic("first")
}

func panicDeep(n int) {
	if n == 0 {
		panic("deep") // site: deep
	}
	panicDeep(n - 1)
}

type badError struct{}

func (*badError) Error() string { panic("Error panics") }

func TestCallPanics(t *testing.T) {
	var zero int
	var bad *panicky
	var strange any = "x"
	index, one := []int{1}, 1
	over := make(chan int)
	close(over)
	tests := []struct {
		site string
		fn   any
		text string // part of the error
	}{
		{"value", func() { panic("boom") }, "boom"},        // site: value
		{"error", func() { panic(errTest) }, "test error"}, // site: error
		{"nil map", (&panicky{}).nilMap, "assignment to entry in nil map"},
		{"nil pointer", bad.nilField, "nil pointer dereference"},
		{"index", func() { _ = index[one] }, "index out of range [1]"},        // site: index
		{"division", func() { _ = 1 / zero }, "integer divide by zero"},       // site: division
		{"conversion", func() { _ = strange.(int) }, "interface conversion"},  //nolint:errcheck // site: conversion
		{"nil", func() { panic(nil) }, "panic called with nil argument"},      //nolint:govet // site: nil
		{"closed channel", func() { close(over) }, "close of closed channel"}, // site: closed channel
		{"in defer", panicInDefer, "second"},
		{"again", panicAgain, "again"},
		{"deep", func() { panicDeep(3) }, "deep"},
		{"with context", func(context.Context) error { panic("ctx") }, "ctx"},            // site: with context
		{"variadic", func(...int) { panic("tail") }, "tail"},                             // site: variadic
		{"long", func() { panic(strings.Repeat("é", 10000)) }, "é..."},                   // site: long
		{"bad error", func() { panic(&badError{}) }, "PANIC=Error method: Error panics"}, // site: bad error
	}
	for _, tt := range tests {
		t.Run(tt.site, func(t *testing.T) {
			f := namedFunction(t, tt.fn)
			for range 3 { // the frame is reused after a panic
				result, err := f.Call(t.Context(), goMessage(t, f.Path(), nil, noN))
				var p *PanicError
				if !errors.As(err, &p) || result != nil || p.exit {
					t.Fatalf("%v, %v; want a *panicError", result, err)
				}
				if want := panicSite(t, tt.site); !strings.HasSuffix(p.file, "panic_test.go") || p.line != want {
					t.Errorf("at %s:%d, want panic_test.go:%d", p.file, p.line, want)
				}
				if !strings.Contains(p.text, tt.text) ||
					!strings.Contains(err.Error(), fmt.Sprintf("panic_test.go:%d: ", p.line)) {
					t.Errorf("%.200q lacks %q or its place", err, tt.text)
				}
				if len(p.Stack) > 4096 || len(err.Error()) > 2048 {
					t.Errorf("stack of %d bytes, text of %d", len(p.Stack), len(err.Error()))
				}
				if !strings.Contains(p.Stack, fmt.Sprintf("panic_test.go:%d\n", p.line)) ||
					strings.Contains(p.Stack, "reflect.Value") ||
					strings.Contains(p.Stack, "testing.tRunner") {
					t.Errorf("stack shows too much or too little:\n%s", p.Stack)
				}
			}
		})
	}
	f := namedFunction(t, func() { panic(fmt.Errorf("wrapped: %w", errTest)) })
	if _, err := f.Call(t.Context(), goMessage(t, f.Path(), nil, noN)); !errors.Is(err, errTest) {
		t.Error("the error that was panicked with is not to be found:", err)
	}
}

func TestPanicStackIsBounded(t *testing.T) {
	f := namedFunction(t, func() { panicDeep(500) })
	_, err := f.Call(t.Context(), goMessage(t, f.Path(), nil, noN))
	var p *PanicError
	if !errors.As(err, &p) || p.line != panicSite(t, "deep") {
		t.Fatal(err)
	}
	if n := len(p.Stack); n > 4096 || n < 3000 || !strings.HasSuffix(p.Stack, "\n...\n") {
		t.Errorf("stack of %d bytes that ends with %q", n, p.Stack[max(0, n-40):])
	}
}

// A handler that calls runtime.Goexit ends its goroutine. The caller notices that in a deferred function and learns
// where it was called.
func TestCallGoexit(t *testing.T) {
	tests := []struct {
		site string
		fn   any
	}{
		{"exit", func() { runtime.Goexit() }},                   // site: exit
		{"exit deep", func() { func() { runtime.Goexit() }() }}, // site: exit deep
		{"exit in defer", func() {
			defer runtime.Goexit()
			panic("aborted by the exit") // site: exit in defer
		}},
		{"exit after panic", func() {
			defer func() {
				_ = recover()
				runtime.Goexit() // site: exit after panic
			}()
			panic("recovered")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.site, func(t *testing.T) {
			f := namedFunction(t, tt.fn)
			m := goMessage(t, f.Path(), nil, noN)
			var wg sync.WaitGroup
			wg.Go(func() {
				returned := false
				defer func() {
					if returned {
						t.Error("call returned after Goexit")
						return
					}
					p := NewPanic(nil)
					want := panicSite(t, tt.site)
					if !p.exit || !strings.HasSuffix(p.file, "panic_test.go") || p.line != want {
						t.Errorf("%+v, want an exit at line %d", p, want)
					}
					if !strings.Contains(p.Error(), "runtime.Goexit at ") ||
						!strings.Contains(p.Stack, "panic_test.go") {
						t.Error(p, p.Stack)
					}
				}()
				_, _ = f.Call(t.Context(), m)
				returned = true
			})
			wg.Wait()
		})
	}
}

// A panic in a deferred function of a goroutine that is ending neither keeps the goroutine alive nor hides its end.
func TestCallGoexitThenPanic(t *testing.T) {
	f := namedFunction(t, func() {
		defer func() { panic("while ending") }()
		runtime.Goexit()
	})
	m := goMessage(t, f.Path(), nil, noN)
	var wg sync.WaitGroup
	wg.Go(func() {
		returned := false
		defer func() {
			if p := NewPanic(nil); returned || !p.exit {
				t.Errorf("returned %t, %v", returned, p)
			}
		}()
		_, _ = f.Call(t.Context(), m)
		returned = true
	})
	wg.Wait()
}
