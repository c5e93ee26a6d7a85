package function

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestRegistryAdd(t *testing.T) {
	var r Registry
	if r.Lookup("x") != nil || r.paths() != nil {
		t.Error("the zero registry is not empty")
	}
	sum := Func(fnGeneric[int], Name("sum.int"), Alias("old.sum", "older.sum"))
	if err := register(&r, fnNone, fnTwo, sum); err != nil {
		t.Fatal(err)
	}
	if err := register(&r); err != nil {
		t.Error("nothing to add:", err)
	}
	want := []string{testPath + "fnNone", testPath + "fnTwo", "old.sum", "older.sum", "sum.int"}
	if got := r.paths(); !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
	if f := r.Lookup("old.sum"); f == nil || f != r.Lookup("sum.int") {
		t.Error("an alias is not the function")
	}
	if r.Lookup("unknown") != nil {
		t.Error("unknown path found")
	}
}

func TestRegistryRefuses(t *testing.T) {
	tests := []struct {
		name string
		fns  []any
		want []string
	}{
		{"same function", []any{fnNone}, []string{testPath + "fnNone", "taken already", "register it once"}},
		{"same function in one call", []any{fnInt, fnInt}, []string{testPath + "fnInt", "taken already"}},
		{"name is taken", []any{Func(fnInt, Name("taken"))}, []string{"taken: expected a path of its own"}},
		{"alias is taken by a name", []any{Func(fnInt, Alias("taken"))}, []string{"taken: expected"}},
		{
			"name is taken by an alias",
			[]any{Func(fnInt, Name("alias"))},
			[]string{"alias: expected", "found one taken by taken"},
		},
		{
			"method expression",
			[]any{(*testMailer).Send},
			[]string{testPath + "(*testMailer).Send", "receiver is missing", "RegisterMethods"},
		},
		{
			"named method expression",
			[]any{Func((*testMailer).Send, Name("mail"))},
			[]string{"mail: expected", "RegisterMethods", "Func and the same Name"},
		},
		{
			"method expression behind a function",
			[]any{fnInt, (*testMailer).Send},
			[]string{testPath + "(*testMailer).Send", "receiver is missing"},
		},
		{
			"all that is wrong",
			[]any{fnInt, fnNone, fnChan, nil, fnLiteral()},
			[]string{"fnNone", "fnChan", "found nil", "literal"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r Registry
			if err := register(&r, fnNone, Func(fnTwo, Name("taken"), Alias("alias"))); err != nil {
				t.Fatal(err)
			}
			before := r.paths()
			err := register(&r, tt.fns...)
			if !errors.Is(err, ErrFunction) {
				t.Fatalf("%v, want an error that wraps ErrFunction", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if got := r.paths(); !slices.Equal(got, before) {
				t.Errorf("the refused call left %q of %q", got, before)
			}
		})
	}
}

// Every way to spell a method of the receiver's type gives the one registered receiver.
func TestRegistryMethods(t *testing.T) {
	got := make(chan string, 1)
	tests := []struct {
		recv  any
		fn    any
		args  []any
		want  string
		paths []string
	}{
		{
			&testMailer{got}, (*testMailer).Send,
			[]any{7},
			"Send 7",
			[]string{testPath + "(*testMailer).Copy", testPath + "(*testMailer).Send", testPath + "testMailer.Copy"},
		},
		{&testMailer{got}, (*testMailer).Copy, []any{"x"}, "Copy x", nil},
		{&testMailer{got}, testMailer.Copy, []any{"x"}, "Copy x", nil},
		{
			testMailer{got},
			testMailer.Copy,
			[]any{"x"},
			"Copy x",
			[]string{testPath + "(*testMailer).Copy", testPath + "testMailer.Copy"},
		},
		{testMailer{got}, (*testMailer).Copy, []any{"x"}, "Copy x", nil},
		{
			testByValue{got},
			(*testByValue).Run,
			[]any{7},
			"Run 7",
			[]string{testPath + "(*testByValue).Run", testPath + "testByValue.Run"},
		},
		{
			&testByValue{got}, testByValue.Run,
			[]any{7},
			"Run 7",
			[]string{testPath + "(*testByValue).Run", testPath + "testByValue.Run"},
		},
		{testPromoter{&testMailer{got}}, testPromoter.Send, []any{7}, "Send 7", nil},
		{&testPromoter{&testMailer{got}}, testPromoter.Send, []any{7}, "Send 7", []string{
			testPath + "(*testPromoter).Copy", testPath + "(*testPromoter).Send", testPath + "testPromoter.Copy",
			testPath + "testPromoter.Send",
		}},
	}
	for _, tt := range tests {
		f := mustFunction(t, tt.fn)
		t.Run(fmt.Sprintf("%T/%s", tt.recv, f.Path()), func(t *testing.T) {
			var r Registry
			skipped, err := r.AddMethods(tt.recv)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range skipped {
				if !errors.Is(err, ErrFunction) || !strings.Contains(err.Error(), "Chan") {
					t.Errorf("skipped: %v", err)
				}
			}
			if tt.paths != nil && !slices.Equal(r.paths(), tt.paths) {
				t.Errorf("paths %q, want %q", r.paths(), tt.paths)
			}
			bound := r.Lookup(f.Path())
			if bound == nil {
				t.Fatalf("%s not found among %q", f.Path(), r.paths())
			}
			payload, err := f.Encode(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bound.Call(t.Context(), goMessage(t, f.Path(), payload, noN)); err != nil {
				t.Fatal(err)
			}
			if got := <-got; got != tt.want {
				t.Errorf("called %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRegistryMethodsRefuses(t *testing.T) {
	type local struct{ testMailer }
	for _, tt := range []struct {
		name string
		recv any
		want []string
	}{
		{"nil", nil, []string{"found nil"}},
		{"nil pointer", (*testMailer)(nil), []string{"found a nil *function.testMailer"}},
		{"second receiver", &testMailer{}, []string{testPath + "(*testMailer).Send", "one receiver of a type"}},
		{"second receiver by value", testMailer{}, []string{"testMailer.Copy", "one receiver of a type"}},
		{"no methods", testNoMethod{}, []string{"function.testNoMethod", "none among 0", "pointer"}},
		{"pointer to pointer", new(*testMailer), []string{"none among 0"}},
		{"none accepted", testOnlyBad{}, []string{"function.testOnlyBad", "none among 1", "chan int"}},
		{"generic type", &testBox[int]{}, []string{"testBox[int]", "none among 1", "generic", "Func and Name"}},
		{"local type", local{}, []string{"local", "no name outside its function"}},
		{"number", 42, []string{"int: expected", "none among 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r Registry
			if _, err := r.AddMethods(&testMailer{}); err != nil {
				t.Fatal(err)
			}
			before := r.paths()
			_, err := r.AddMethods(tt.recv)
			if !errors.Is(err, ErrFunction) {
				t.Fatalf("%v, want an error that wraps ErrFunction", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if got := r.paths(); !slices.Equal(got, before) {
				t.Errorf("the refused call left %q of %q", got, before)
			}
		})
	}
}

// A method value with a Name runs the tasks of a method expression with the same Name.
func TestRegistryNamedMethod(t *testing.T) {
	var r Registry
	got := make(chan string, 1)
	if err := register(&r, Func((&testMailer{got}).Send, Name("mail.send"))); err != nil {
		t.Fatal(err)
	}
	producers := mustFunction(t, Func((*testMailer).Send, Name("mail.send")))
	payload, err := producers.Encode([]any{9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lookup(producers.Path()).Call(t.Context(), goMessage(t, "mail.send", payload, noN)); err != nil {
		t.Fatal(err)
	}
	if got := <-got; got != "Send 9" {
		t.Error(got)
	}
}

func TestRegistryWhileRunning(t *testing.T) {
	var r Registry
	stop, stopped := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for stop.Err() == nil {
				if f := r.Lookup("w0.f0"); f != nil && f.Path() != "w0.f0" {
					t.Error("found", f.Path())
				}
			}
		})
	}
	for w := range 4 {
		writers.Go(func() {
			for i := range 50 {
				if err := register(&r, Func(fnNone, Name(fmt.Sprintf("w%d.f%d", w, i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	stopped()
	readers.Wait()
	if n := len(r.paths()); n != 200 {
		t.Errorf("%d of 200 functions registered", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	var r Registry
	for i := range 100 {
		if err := register(&r, Func(fnNone, Name(fmt.Sprintf("example.com/app/mail.Function%d", i)))); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Lookup("example.com/app/mail.Function42")
	}
}

// register adds functions to a registry, as Worker.Register does.
func register(r *Registry, fns ...any) error {
	var good []*Function
	var errs []error
	for _, fn := range fns {
		f, err := newFunction(fn)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		good = append(good, f)
	}
	return r.Add(good, errs)
}
