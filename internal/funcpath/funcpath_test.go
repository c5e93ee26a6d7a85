package funcpath

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const here = "github.com/godelayed/delayed/internal/funcpath."

//nolint:recvcheck // receivers of both kinds are tested
type small struct{ n int }

func (s small) Get(int) int     { return s.n }
func (s *small) Put(n int)      { s.n = n }
func (s small) func1(int)       {}
func (s *small) unexported(int) {}

type (
	outer  struct{ small }
	outerP struct{ *small }
	getter interface{ Get(int) int }
	held   struct{ getter }
	named  func(int)
	alias  = small
	// Aliases, because go vet fails on the expressions themselves.
	anonymous = interface{ Get(int) int }
	nameless  = struct{ small }
)

type box[T any] struct{ v T }

func (b *box[T]) Put(v T) { b.v = v }
func (b box[T]) Get() T   { return b.v }

func plain()                    {}
func inlined(i int) int         { return innermost(i) }
func innermost(i int) int       { return i + 1 }
func onlyInlined()              { plain() }
func generic[T any](v T) T      { return v }
func closure() func(int)        { return func(int) {} }
func nested() func()            { return func() func() { n := 0; return func() { n++ } }() }
func genericLit[T any](v T) any { return func(x T) { v = x } }
func literalOfSmall() any       { return func(small, int) {} }
func literalOfPointer() any     { return func(*small) {} }
func rangeBody() (body any) {
	for n := range func(y func(int) bool) { body = y } {
		body = n
	}
	return body
}
func localType() (v, p any)      { type local struct{ small }; return local.Get, (*local).Get }
func small2(s small) func(small) { return func(small) {} }

var (
	inVar    = func(int) {}
	inVars   = []func(){func() {}, func() {}}
	inInit   func()
	inGenVar = generic[int]
)

func init() { inInit = func() {} }

func TestOf(t *testing.T) {
	s := &small{}
	var g getter = s
	localV, localP := localType()
	tests := []struct {
		name string
		fn   any
		path string // "" when only the kind is known: the names of literals depend on what the compiler inlines
		kind Kind
	}{
		{"plain", plain, here + "plain", Plain},
		{"body is one inlined call", inlined, here + "inlined", Plain},
		{"nothing but an inlined empty call", onlyInlined, here + "onlyInlined", Plain},
		{"of another package", strings.ToUpper, "strings.ToUpper", Plain},
		{"of a package with a slash", filepath.Join, "path/filepath.Join", Plain},
		{"variadic", fmt.Println, "fmt.Println", Plain},
		{"written in assembly", atomic.AddInt64, "sync/atomic.AddInt64", Plain},
		{"of a named function type", named(closureless), here + "closureless", Plain},

		{"method of value", small.Get, here + "small.Get", Method},
		{"method of value through pointer", (*small).Get, here + "(*small).Get", Method},
		{"method of pointer", (*small).Put, here + "(*small).Put", Method},
		{"method through alias", (*alias).Put, here + "(*small).Put", Method},
		{"unexported method", (*small).unexported, here + "(*small).unexported", Method},
		{"method called like a literal", small.func1, here + "small.func1", Method},
		{"promoted", outer.Get, here + "outer.Get", Method},
		{"promoted through pointer", (*outer).Put, here + "(*outer).Put", Method},
		{"promoted from embedded pointer", outerP.Put, here + "outerP.Put", Method},
		{"promoted from embedded interface", held.Get, here + "held.Get", Method},
		{"of another package", (*strings.Builder).Grow, "strings.(*Builder).Grow", Method},
		{"named kind", time.Duration.Round, "time.Duration.Round", Method},

		{"interface", getter.Get, here + "getter.Get", InterfaceMethod},
		{"interface of another package", io.Reader.Read, "io.Reader.Read", InterfaceMethod},
		{"error", error.Error, "", InterfaceMethod},
		{"interface without name", anonymous.Get, "", InterfaceMethod},
		{"struct without name", nameless.Get, "", LocalMethod},
		{"pointer to struct without name", (*nameless).Get, "", LocalMethod},
		{"local type", localV, "", LocalMethod},
		{"pointer to local type", localP, "", LocalMethod},

		{"method value", s.Put, here + "(*small).Put-fm", MethodValue},
		{"method value of value", s.Get, here + "small.Get-fm", MethodValue},
		{"method value of interface", g.Get, here + "getter.Get-fm", MethodValue},
		{"method value of generic type", (&box[int]{}).Put, here + "(*box[...]).Put-fm", MethodValue},

		{"literal", closure(), "", Closure},
		{"literal in literal", nested(), "", Closure},
		{"literal in generic function", genericLit(1), "", Closure},
		{"literal in variable", inVar, "", Closure},
		{"literals in variable", inVars[1], "", Closure},
		{"literal in init", inInit, "", Closure},
		{"literal with the type as parameter", literalOfSmall(), "", Closure},
		{"literal with the pointer as parameter", literalOfPointer(), "", Closure},
		{"literal in a function called like a type", small2(*s), "", Closure},
		{"body of range over func", rangeBody(), "", Closure},
		{"literal of this test", func() { s.Put(1) }, "", Closure},

		{"generic", generic[int], here + "generic[...]", Generic},
		{"generic in variable", inGenVar, here + "generic[...]", Generic},
		{"method of generic", (*box[int]).Put, here + "(*box[...]).Put", GenericMethod},
		{"method of generic value", box[string].Get, here + "box[...].Get", GenericMethod},

		{
			"reflect.MakeFunc", reflect.MakeFunc(reflect.TypeFor[func()](), nil).Interface(), "reflect.makeFuncStub",
			Made,
		},
		{"method of reflect.Value", reflect.ValueOf(s).Method(0).Interface(), "reflect.methodValueCall", Made},
	}
	for _, tt := range tests {
		t.Run(tt.kind.String()+"/"+tt.name, func(t *testing.T) {
			f, err := Of(tt.fn)
			if err != nil {
				t.Fatal(err)
			}
			if f.Kind != tt.kind {
				t.Errorf("%s is %s, want %s", f.Runtime, f.Kind, tt.kind)
			}
			if tt.path != "" && f.Path != tt.path {
				t.Errorf("path %q, want %q", f.Path, tt.path)
			}
			if f.Main {
				t.Errorf("%s said to be of package main", f.Path)
			}
		})
	}
}

func closureless(int) {}

func TestOfRefuses(t *testing.T) {
	var none func()
	for want, fn := range map[string]any{
		"expected a function, found nil":                       nil,
		"expected a function, found a nil func()":              none,
		"expected a function, found a value of type string":    "mail.Welcome",
		"expected a function, found a value of type *errors.e": errors.New("x"),
	} {
		if _, err := Of(fn); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Of(%T): %v, want %s", fn, err, want)
		}
	}
}

// Names as other packages, build modes and compilers form them.
func TestParse(t *testing.T) {
	none := reflect.TypeFor[func()]()
	tests := []struct {
		name string
		typ  reflect.Type
		want Func
	}{
		{"main.hello", none, Func{Path: "main.hello", Kind: Plain, Main: true}},
		{"example.com/app/mail.Welcome", none, Func{Path: "example.com/app/mail.Welcome", Kind: Plain}},
		{"gopkg.in/yaml%2ev3.Marshal", none, Func{Path: "gopkg.in/yaml.v3.Marshal", Kind: Plain}},
		{"example.com/a.b/c%2ed%2ee.F", none, Func{Path: "example.com/a.b/c.d.e.F", Kind: Plain}},
		{"example.com/%c3%a4.F", none, Func{Path: "example.com/ä.F", Kind: Plain}},
		{"example.com/a%25.F", none, Func{Path: "example.com/a%.F", Kind: Plain}},
		{"example.com/a%2.F", none, Func{Path: "example.com/a%2.F", Kind: Plain}},
		{"example.com/a/cmd/main.F", none, Func{Path: "example.com/a/cmd/main.F", Kind: Plain}},
		{"example.com/app/vendor/gopkg.in/yaml%2ev3.F", none, Func{Path: "gopkg.in/yaml.v3.F", Kind: Plain}},
		{"vendor/golang.org/x/net/idna.ToASCII", none, Func{Path: "golang.org/x/net/idna.ToASCII", Kind: Plain}},
		{"example.com/myvendor/a.F", none, Func{Path: "example.com/myvendor/a.F", Kind: Plain}},
		{"example.com/a.glob..func1", none, Func{Path: "example.com/a.glob..func1", Kind: Closure}},
		{"example.com/a.init.0.func1", none, Func{Path: "example.com/a.init.0.func1", Kind: Closure}},
		{"example.com/a.F.gowrap1", none, Func{Path: "example.com/a.F.gowrap1", Kind: Closure}},
		{"example.com/a.F.deferwrap2", none, Func{Path: "example.com/a.F.deferwrap2", Kind: Closure}},
		{"example.com/a.F-range1", none, Func{Path: "example.com/a.F-range1", Kind: Closure}},
		{"example.com/a.F[...].func1", none, Func{Path: "example.com/a.F[...].func1", Kind: Closure}},
		{
			"example.com/b.small.Get", reflect.TypeFor[func(small)](),
			Func{Path: "example.com/b.small.Get", Kind: Closure},
		},
		{here + "(*small).Get", reflect.TypeFor[func(small)](), Func{Path: here + "(*small).Get", Kind: Closure}},
		{here + "small.Get", reflect.TypeFor[func(*small)](), Func{Path: here + "small.Get", Kind: Closure}},
		{"nodots", none, Func{Path: "nodots", Kind: LocalMethod}},
	}
	for _, tt := range tests {
		tt.want.Runtime = tt.name
		if got := parse(tt.name, tt.typ); got != tt.want {
			t.Errorf("parse(%q) = %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// Names in a program of its own, built in ways that change names: package main, an import path with a dot in its last
// element, with and without inlining.
func TestOfInProgram(t *testing.T) {
	want, err := os.ReadFile("testdata/program/want.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-trimpath", "-gcflags=-l", "-ldflags=-s -w"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			got, err := exec.CommandContext(t.Context(), "go", "run", flag, "./testdata/program").CombinedOutput()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("go run: %v, printed\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for _, good := range []string{
		"f", "main.F", "example.com/app/mail.(*Mailer).Send", "sum.int", "grüße.senden",
		strings.Repeat("x", MaxLen),
	} {
		if err := Check(good); err != nil {
			t.Errorf("Check(%q): %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "mod:func", "go:builtin.error.Error", strings.Repeat("x", MaxLen+1), "a\xffb",
		"a\nb", "a\x00b", "a\u200bb",
	} {
		if err := Check(bad); err == nil || !strings.HasPrefix(err.Error(), "expected ") {
			t.Errorf("Check(%q): %v", bad, err)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Of((*small).Put)
	}
}
