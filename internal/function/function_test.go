package function

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godelayed/delayed/internal/funcpath"
	"github.com/godelayed/delayed/internal/funcpath/testdata/program/mail.v3"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/wire"
)

func TestFunctionAccepts(t *testing.T) {
	if funcpath.MaxLen != wire.Default.Path {
		t.Fatalf("paths of %d bytes are registered, of %d bytes sent", funcpath.MaxLen, wire.Default.Path)
	}
	tests := []struct {
		fn                                        any
		path                                      string
		params                                    int
		ctx, variadic, result, fails, needsMethod bool
	}{
		{fn: fnNone, path: testPath + "fnNone"},
		{fn: fnTwo, path: testPath + "fnTwo", params: 2},
		{fn: fnMany, path: testPath + "fnMany", params: 12},
		{fn: fnVariadic, path: testPath + "fnVariadic", params: 1, variadic: true},
		{fn: fnOneAndVariadic, path: testPath + "fnOneAndVariadic", params: 2, variadic: true},
		{fn: fnTree, path: testPath + "fnTree", params: 1},
		{fn: fnCtx, path: testPath + "fnCtx", ctx: true},
		{fn: fnCtxTwo, path: testPath + "fnCtxTwo", params: 2, ctx: true, fails: true},
		{fn: fnError, path: testPath + "fnError", fails: true},
		{fn: fnResult, path: testPath + "fnResult", params: 1, result: true},
		{fn: fnBoth, path: testPath + "fnBoth", params: 2, result: true, fails: true},
		{
			fn: (*testMailer).Send, path: testPath + "(*testMailer).Send", params: 1, ctx: true, fails: true,
			needsMethod: true,
		},
		{fn: (*testMailer).Copy, path: testPath + "(*testMailer).Copy", params: 1, needsMethod: true},
		{fn: testMailer.Copy, path: testPath + "testMailer.Copy", params: 1, needsMethod: true},
		{
			fn: testPromoter.Send, path: testPath + "testPromoter.Send", params: 1, ctx: true, fails: true,
			needsMethod: true,
		},
		{fn: fmt.Println, path: "fmt.Println", params: 1, variadic: true, result: true, fails: true},
		{fn: os.Rename, path: "os.Rename", params: 2, fails: true},
		{fn: http.Get, path: "net/http.Get", params: 1, result: true, fails: true},
		{fn: os.Remove, path: "os.Remove", params: 1, fails: true},
		{fn: Func(fnInt), path: testPath + "fnInt", params: 1},
		{fn: Func(fnLiteral(), Name("literal")), path: "literal", params: 1},
		{fn: Func(fnGeneric[int], Name("generic.int")), path: "generic.int", params: 1, result: true},
		{fn: Func((&testMailer{}).Send, Name("mail")), path: "mail", params: 1, ctx: true, fails: true},
		{
			fn: Func((*testMailer).Send, Name("mail")), path: "mail", params: 1, ctx: true, fails: true,
			needsMethod: true,
		},
		{fn: Func((*testMailer).hidden, Name("mail")), path: "mail", params: 1, needsMethod: true},
		{fn: Func((*testBox[int]).Put, Name("box.int")), path: "box.int", params: 1, needsMethod: true},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			f := mustFunction(t, tt.fn)
			if f.Path() != tt.path {
				t.Errorf("path %q, want %q", f.Path(), tt.path)
			}
			if len(f.params) != tt.params {
				t.Errorf("%d parameters, want %d", len(f.params), tt.params)
			}
			if f.TakesCtx != tt.ctx || f.variadic != tt.variadic || f.result != tt.result || f.fails != tt.fails ||
				f.method != tt.needsMethod {
				t.Errorf("ctx %t, variadic %t, result %t, error %t, method %t; want %t, %t, %t, %t, %t", f.TakesCtx,
					f.variadic, f.result,
					f.fails, f.method, tt.ctx, tt.variadic, tt.result, tt.fails, tt.needsMethod)
			}
			if f.InMain {
				t.Error("said to be of package main")
			}
		})
	}
}

func TestFunctionRefuses(t *testing.T) {
	var none func()
	long := strings.Repeat("x", 513)
	tests := []struct {
		name string
		fn   any
		want []string // parts of the error
	}{
		{"nil", nil, []string{"expected a function, found nil", "give a function"}},
		{"nil func", none, []string{"found a nil func()"}},
		{"number", 42, []string{"found a value of type int"}},
		{"path", "example.com/app/mail.Welcome", []string{"found a string", "NewGoTask"}},
		{"context", t.Context(), []string{"found a context.Context", "DelayContext"}},
		{"literal", fnLiteral(), []string{"found a function literal", "Func and Name"}},
		{
			"method value", (&testMailer{}).Send,
			[]string{testPath + "(*testMailer).Send-fm", "found a method value", "Func and Name"},
		},
		{"generic", fnGeneric[int], []string{testPath + "fnGeneric[...]", "generic", "Func and Name"}},
		{"method of generic type", (*testBox[int]).Put, []string{"generic type", "Func and Name"}},
		{"interface method", testSender.Copy, []string{"method expression on an interface", "type that implements it"}},
		{"interface method with name", Func(testSender.Copy, Name("x")), []string{"method expression on an interface"}},
		{
			"unexported method", (*testMailer).hidden,
			[]string{"expected an exported method", "hidden", "RegisterMethods"},
		},

		{"two results", fnTwoResults, []string{testPath + "fnTwoResults", "(T, error), found (int, string)", "struct"}},
		{"three results", fnThreeResults, []string{"found (int, string, error)"}},
		{"error first", fnErrorFirst, []string{"found (error, int)"}},
		{"own error type", fnOwnError, []string{"found (*function.ArgumentError)", "return error itself"}},
		{"channel", fnChan, []string{testPath + "fnChan", "parameter 1", "chan int"}},
		{"function parameter", fnFunc, []string{"parameter 1", "func()"}},
		{"interface with methods", fnReader, []string{"parameter 1", "fmt.Stringer"}},
		{
			"context at the end", fnCtxLast,
			[]string{"first parameter", "found func(int, context.Context)", "move it to the front"},
		},
		{"context among the variadic", fnVariadicCtx, []string{"context.Context"}},
		{"channel in a struct", fnChanHolder, []string{"parameter 1", "C", "chan int"}},
		{"variadic channels", fnChans, []string{"chan int"}},
		{"big array", fnBig, []string{"at most 16384 bytes", "[4096]int64 of 32768 bytes", "pointer"}},

		{
			"name with colon", Func(fnNone, Name("mod:fn")),
			[]string{"without a colon", `"mod:fn"`, "choose another Name"},
		},
		{"no name", Func(fnNone, Name("")), []string{"found an empty one"}},
		{"long name", Func(fnNone, Name(long)), []string{"at most 512 bytes", "513"}},
		{"unprintable name", Func(fnNone, Name("a\n")), []string{"printable", `"a\n"`}},
		{
			"alias with colon", Func(fnNone, Alias("ok", "mod:fn")),
			[]string{testPath + "fnNone", "without a colon", "choose another Alias"},
		},
		{"alias twice", Func(fnNone, Alias("a", "b", "a")), []string{"a twice"}},
		{"alias is name", Func(fnNone, Name("a"), Alias("a")), []string{"a twice"}},
		{"Func of nil", Func(nil), []string{"found nil"}},
		{"Func of literal", Func(fnLiteral()), []string{"found a function literal"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for side, make := range map[string]func(any) (*Function, error){
				"worker":   newFunction,
				"producer": functionOf,
			} {
				f, err := make(tt.fn)
				if f != nil || !errors.Is(err, ErrFunction) {
					t.Fatalf("%s: %v, %v; want an error that wraps ErrFunction", side, f, err)
				}
				for _, part := range tt.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %q lacks %q", side, err, part)
					}
				}
			}
		})
	}
}

// go-delayed sends paths as the runtime spells them: a dot in the last element of the import path is %2e there.
func TestFunctionHasRuntimeAlias(t *testing.T) {
	const dir = "github.com/godelayed/delayed/internal/funcpath/testdata/program/mail"
	f := mustFunction(t, mail.Welcome)
	if f.Path() != dir+".v3.Welcome" || !slices.Equal(f.Aliases(), []string{dir + "%2ev3.Welcome"}) {
		t.Errorf("%q, aliases %q", f.Path(), f.Aliases())
	}
	if f := mustFunction(t, Func(mail.Welcome, Name("welcome"))); f.Aliases() != nil {
		t.Errorf("a function with a name has aliases %q", f.Aliases())
	}
	var r Registry
	if _, err := r.AddMethods(new(mail.Mailer)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		dir + "%2ev3.(*Mailer).Send", dir + "%2ev3.(*Mailer).Sent", dir + "%2ev3.Mailer.Sent",
		dir + ".v3.(*Mailer).Send", dir + ".v3.(*Mailer).Sent", dir + ".v3.Mailer.Sent",
	}
	if !slices.Equal(r.paths(), want) {
		t.Errorf("paths %q, want %q", r.paths(), want)
	}
}

func TestFunctionOfIsCached(t *testing.T) {
	type fnType func(int64, string)
	first := make(chan *Function, 64)
	var wg sync.WaitGroup
	for range cap(first) {
		wg.Go(func() {
			f, err := Of(fnTwo)
			if err != nil {
				t.Error(err)
			}
			first <- f
		})
	}
	wg.Wait()
	want := <-first
	for range cap(first) - 1 {
		if f := <-first; f != want {
			t.Fatal("two functions for one func value")
		}
	}
	// One code pointer, two types.
	if f, err := Of(fnType(fnTwo)); err != nil || f == want || f.Path() != want.Path() {
		t.Errorf("of another type: %v, %v", f, err)
	}
	// Function literals share code, and must be refused every time.
	for range 3 {
		if _, err := Of(fnLiteral()); err == nil {
			t.Fatal("literal accepted")
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = Of(fnTwo) }); n != 0 {
		limits.Errorf(t, "%v allocations for a known function", n)
	}
}

func BenchmarkFunctionOf(b *testing.B) {
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Of(fnCtxTwo); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("uncached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := newFunction(fnCtxTwo); err != nil {
				b.Fatal(err)
			}
		}
	})
}
