package function

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Tasks that lack their last arguments, in each form in which they can arrive. Missing arguments become zero values.
func TestOptional(t *testing.T) {
	type got = []any
	none := func(ctx context.Context, a int) { note(ctx, a) } // took nothing before
	two := func(ctx context.Context, a int, b string) { note(ctx, a, b) }
	three := func(ctx context.Context, a int, b string, c *argItem) { note(ctx, a, b, c) }
	list := func(ctx context.Context, a []int, b int) { note(ctx, a, b) }
	anys := func(ctx context.Context, a []any, b, c int) { note(ctx, a, b, c) }
	loose := func(ctx context.Context, a, b any) { note(ctx, a, b) }
	tail := func(ctx context.Context, a int, b ...int) { note(ctx, a, b) }
	longTail := func(ctx context.Context, a int, b string, c ...int) { note(ctx, a, b, c) }
	only := func(ctx context.Context, a ...int) { note(ctx, a) }
	var noItem *argItem
	var noInts []int
	for _, c := range []struct {
		name     string
		fn       any
		optional int
		payload  any
		n        int
		want     got // nil: an error about the number
	}{
		{"none of one", none, 1, missing, noN, got{0}},
		{"none of one, nil", none, 1, nil, noN, got{0}},
		{"none of one, empty", none, 1, wireList{}, noN, got{0}},
		{"none of one, n", none, 1, wireList{}, 0, got{0}},
		{"none of one, n without payload", none, 1, missing, 0, got{0}},
		{"one, bare", none, 1, 5, noN, got{5}},
		{"one, list", none, 1, wireList{5}, noN, got{5}},
		{"one, n", none, 1, wireList{5}, 1, got{5}},
		{"one too many", none, 1, wireList{5, 6}, noN, nil},
		{"one too many, n", none, 1, wireList{5, 6}, 2, nil},

		{"one of two, bare", two, 1, 5, noN, got{5, ""}},
		{"one of two, list", two, 1, wireList{5}, noN, got{5, ""}},
		{"one of two, n", two, 1, wireList{5}, 1, got{5, ""}},
		{"two of two", two, 1, wireList{5, "x"}, noN, got{5, "x"}},
		{"two of two, n", two, 1, wireList{5, "x"}, 2, got{5, "x"}},
		{"three of two", two, 1, wireList{5, "x", 1}, noN, nil},
		{"three of two, n", two, 1, wireList{5, "x", 1}, 3, nil},
		{"none of two, where one must be there", two, 1, missing, noN, nil},
		{"none of two, where one must be there, empty", two, 1, wireList{}, noN, nil},
		{"none of two, where one must be there, n", two, 1, wireList{}, 0, nil},
		{"none of two", two, 2, missing, noN, got{0, ""}},
		{"none of two, nil", two, 2, nil, noN, got{0, ""}},
		{"none of two, empty", two, 2, wireList{}, noN, got{0, ""}},
		{"one of two, both optional, bare", two, 2, 5, noN, got{5, ""}},

		{"two of three", three, 1, wireList{5, "x"}, noN, got{5, "x", noItem}},
		{"two of three, n", three, 1, wireList{5, "x"}, 2, got{5, "x", noItem}},
		{"bare, where two must be there", three, 1, 5, noN, nil},
		{"one of three, n, where two must be there", three, 1, wireList{5}, 1, nil},
		{"one of three", three, 2, wireList{5}, noN, got{5, "", noItem}},

		{"a list alone, bare", list, 1, wireList{1, 2, 3}, noN, got{[]int{1, 2, 3}, 0}},
		{"a list alone of as many as there are parameters, bare", list, 1, wireList{1, 2}, noN, got{[]int{1, 2}, 0}},
		{"a list alone, empty, bare", list, 1, wireList{}, noN, got{[]int{}, 0}},
		{"a list alone, in a list", list, 1, wireList{wireList{1, 2}}, noN, got{[]int{1, 2}, 0}},
		{"a list alone, n", list, 1, wireList{wireList{1, 2}}, 1, got{[]int{1, 2}, 0}},
		{"a list and more", list, 1, wireList{wireList{1, 2}, 3}, noN, got{[]int{1, 2}, 3}},
		{
			"a list alone whose first elements could be arguments", anys, 2,
			wireList{wireList{1}, 5, "x"},
			noN,
			got{[]any{[]any{int64(1)}, int64(5), "x"}, 0, 0},
		},
		{"nil for a list", list, 1, nil, noN, got{noInts, 0}},
		{"what may be both is a list of arguments", loose, 1, wireList{1, 2}, noN, got{int64(1), int64(2)}},
		{"what may be both, n", loose, 1, wireList{wireList{1, 2}}, 1, got{[]any{int64(1), int64(2)}, nil}},

		{"no tail, bare", tail, 1, 5, noN, got{5, noInts}},
		{"no tail, list", tail, 1, wireList{5}, noN, got{5, noInts}},
		{"no tail, n", tail, 1, wireList{5}, 1, got{5, noInts}},
		{"tail", tail, 1, wireList{5, wireList{6}}, noN, got{5, []int{6}}},
		{"tail, n", tail, 1, wireList{5, 6, 7}, 3, got{5, []int{6, 7}}},
		{"neither argument nor tail", tail, 2, missing, noN, got{0, noInts}},
		{"neither argument nor tail, n", tail, 2, wireList{}, 0, got{0, noInts}},
		{"two before the tail are one short, n", longTail, 2, wireList{5}, 1, got{5, "", noInts}},
		{"two before the tail are one short", longTail, 2, wireList{5}, noN, got{5, "", noInts}},
		{"two before the tail are one short, bare", longTail, 2, 5, noN, got{5, "", noInts}},
		{"two before the tail", longTail, 2, wireList{5, "x"}, noN, got{5, "x", noInts}},
		{"two before the tail, and the tail", longTail, 2, wireList{5, "x", 6}, 3, got{5, "x", []int{6}}},
		{"one before the tail must be there", longTail, 1, wireList{5}, 1, nil},
		{"only a tail", only, 1, wireList{1, 2}, noN, got{[]int{1, 2}}},
		{"only a tail, none", only, 1, missing, noN, got{noInts}},
		{"only a tail, n", only, 1, wireList{1}, 1, got{[]int{1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mustFunction(t, Func(c.fn, Name("test.fn"), Optional(c.optional)))
			var notes []any
			ctx := context.WithValue(t.Context(), notesKey{}, &notes)
			for range 2 { // no call sees what another one has left in the frame
				_, err := f.Call(ctx, goMessage(t, f.Path(), payloadOf(c.payload), c.n))
				if c.want == nil {
					var misfit *ArgumentError
					if !errors.As(err, &misfit) || misfit.Index != -1 && c.optional < len(f.params) {
						t.Errorf("expected an error about the number of arguments, found %v, called with %#v", err,
							notes)
					}
					continue
				}
				if err != nil || !reflect.DeepEqual(notes, c.want) {
					t.Errorf("expected a call with %#v, found %#v, %v", c.want, notes, err)
				}
			}
		})
	}
}

func TestOptionalSaysWhatIsWrong(t *testing.T) {
	for _, n := range []int{-1, 3} {
		_, err := newFunction(Func(func(context.Context, int, string) {}, Name("test.fn"), Optional(n)))
		if !errors.Is(err, ErrFunction) || !strings.Contains(err.Error(), "Optional of 0 to 2") {
			t.Errorf("Optional(%d): expected ErrFunction, found %v", n, err)
		}
	}
	f := mustFunction(t, Func(func(int, string) {}, Name("test.fn"), Optional(1)))
	_, err := f.Call(t.Context(), goMessage(t, f.Path(), packed(wireList{1, "x", 2}), noN))
	if want := "expected 2 arguments (int, string), the last 1 of which may be missing, found 3"; !strings.Contains(
		errorText(err), want) {
		t.Errorf("expected %q, found %v", want, err)
	}
	_, err = f.Call(t.Context(), goMessage(t, f.Path(), packed("x"), noN))
	var misfit *ArgumentError
	if !errors.As(err, &misfit) || misfit.Index != 0 {
		t.Errorf("expected an error about argument 0, found %v", err)
	}
}
