package function

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"
)

// isolated is a function with one parameter and three messages for it: one that fills everything, one that contains as
// little as its type allows, and nil. The test compares what its calls receive with what each message must give, in
// whatever order calls follow one another.
type isolated struct {
	f        *Function
	payloads [3][]byte
	want     [3]any // nil for a message that must be refused
}

type gotKey struct{}

// isolate makes the case of a type. short is written by hand, because it leaves out what Go would send.
func isolate[T any](t *testing.T, full T, short any, wantShort T, nilable bool) isolated {
	t.Helper()
	f := namedFunction(t, func(ctx context.Context, v T) {
		if got, ok := ctx.Value(gotKey{}).(*any); ok {
			*got = v
		}
	})
	payload, err := f.Encode([]any{full})
	if err != nil {
		t.Fatal(err)
	}
	c := isolated{f: f, payloads: [3][]byte{payload, packed(short), packed(nil)}, want: [3]any{full, wantShort, nil}}
	if nilable {
		var zero T
		c.want[2] = isolatedNil{zero}
	}
	return c
}

// isolatedNil stands for an accepted nil, whose value may itself be a nil interface.
type isolatedNil struct{ v any }

type sparse struct {
	Tenant string          `msgpack:"tenant,omitempty"`
	Admin  bool            `msgpack:"admin,omitempty"`
	Note   *string         `msgpack:"note,omitempty"`
	Tags   map[string]int  `msgpack:"tags,omitempty"`
	List   []int           `msgpack:"list,omitempty"`
	Inner  *sparse         `msgpack:"inner,omitempty"`
	Any    any             `msgpack:"any,omitempty"`
	Array  [2]int          `msgpack:"array,omitempty"`
	Times  []time.Time     `msgpack:"times,omitempty"`
	Items  map[int]argItem `msgpack:"items,omitempty"`
}

// isolatedTypes are 30 types with all kinds of parts that could keep a value of an earlier call.
func isolatedTypes(t *testing.T) []isolated {
	t.Helper()
	note, n := "secret", 7
	full := sparse{
		Tenant: "A", Admin: true, Note: &note, Tags: map[string]int{"a": 1}, List: []int{1, 2, 3}, Any: []any{"x"},
		Array: [2]int{1, 2},
		Times: []time.Time{argTime}, Items: map[int]argItem{1: {"x", 1}},
	}
	whole := full
	whole.Inner = &full
	item := argItem{"x", 1}
	return []isolated{
		isolate(t, 7, 8, 8, false),
		isolate(t, uint8(7), 8, 8, false),
		isolate(t, 7.5, 8, 8, false),
		isolate(t, true, false, false, false),
		isolate(t, "secret", "", "", false),
		isolate(t, argUserID(7), 0, 0, false),
		isolate(t, argTime, time.Unix(0, 0), time.Unix(0, 0).UTC(), false),
		isolate(t, []byte("secret"), []byte("s"), []byte("s"), true),
		isolate(t, []int{1, 2, 3}, wireList{4}, []int{4}, true),
		isolate(t, []string{"a", "secret"}, wireList{"b"}, []string{"b"}, true),
		isolate(t, []*int{&n, &n}, wireList{nil}, []*int{nil}, true),
		isolate(t, []any{1, "secret"}, wireList{nil}, []any{nil}, true),
		isolate(t, [][]int{{1, 2}, {3}}, wireList{wireList{}, nil}, [][]int{{}, nil}, true),
		isolate(t, [2]int{1, 2}, wireList{0, 0}, [2]int{}, false),
		isolate(t, [2]*int{&n, &n}, wireList{nil, 8}, [2]*int{nil, ptr(8)}, false),
		isolate(t, map[string]int{"a": 1, "secret": 2}, wireDict{{"b", 3}}, map[string]int{"b": 3}, true),
		isolate(t, map[int]string{1: "secret"}, wireDict{}, map[int]string{}, true),
		isolate(t, map[string]any{"admin": true}, wireDict{{"x", nil}}, map[string]any{"x": nil}, true),
		isolate(t, map[string][]int{"a": {1, 2}}, wireDict{{"a", wireList{3}}}, map[string][]int{"a": {3}}, true),
		isolate(t, map[string]*argItem{"a": &item}, wireDict{{"a", nil}}, map[string]*argItem{"a": nil}, true),
		isolate(t, &n, 8, ptr(8), true),
		isolate(t, &note, "", ptr(""), true),
		isolate(t, &item, wireList{"", 0}, &argItem{}, true),
		isolate(t, ptr(&item), nil, nil, true),
		isolate(t, item, wireList{"y", 2}, argItem{"y", 2}, false),
		isolate(t, argOrder{7, []argItem{item}, &note}, wireList{8, nil, nil}, argOrder{ID: 8}, false),
		isolate(t, whole, wireDict{{"tenant", "B"}}, sparse{Tenant: "B"}, false),
		isolate(t, &whole, wireDict{{"inner", wireDict{}}}, &sparse{Inner: &sparse{}}, true),
		isolate(t, []sparse{whole, full}, wireList{wireDict{}, wireDict{{"list", wireList{9}}}},
			[]sparse{{}, {List: []int{9}}}, true),
		isolate(t, any([]any{"secret", int64(1)}), 8, any(int64(8)), true),
	}
}

func ptr[T any](v T) *T { return &v }

// No call sees argument values of another one, and its own values stay the same after the call.
func TestCallsAreIsolated(t *testing.T) {
	cases := isolatedTypes(t)
	if len(cases) != 30 {
		t.Fatalf("%d types", len(cases))
	}
	const workers, calls = 8, 1250
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			type kept struct{ got, want any }
			var retained []kept
			refused := 0
			for i := range calls {
				c, k := cases[random.IntN(len(cases))], i%3
				var got any
				_, err := c.f.Call(context.WithValue(t.Context(), gotKey{}, &got),
					goMessage(t, c.f.Path(), c.payloads[k], noN))
				want := c.want[k]
				if accepted, ok := want.(isolatedNil); ok {
					want = accepted.v
				} else if k == 2 {
					if !errors.Is(err, ErrArguments) || got != nil {
						t.Errorf("nil for %s: %v, called with %v", c.f.params[0].typ, err, got)
					}
					refused++
					continue
				}
				if err != nil || !sameValue(got, want) {
					t.Errorf("message %d for %s: %v, called with %s, want %s", k, c.f.params[0].typ, err, show(got),
						show(want))
				}
				retained = append(retained, kept{got, want})
			}
			for _, r := range retained {
				if !sameValue(r.got, r.want) {
					t.Errorf("a value changed after its call: %s, was %s", show(r.got), show(r.want))
				}
			}
			if refused == 0 || len(retained) < calls/2 {
				t.Errorf("only %d refused and %d accepted", refused, len(retained))
			}
		})
	}
	wg.Wait()
}

// sameValue compares what a function received; []any and any hold integers as int64 after decoding.
func sameValue(got, want any) bool {
	if w, ok := want.([]any); ok && len(w) == 2 && w[0] == 1 {
		want = []any{int64(1), w[1]}
	}
	return reflect.DeepEqual(got, want)
}

func show(v any) string { return fmt.Sprintf("%#v", v) }

// The predecessor mixed up two arguments: (7, "secret") followed by [8] must not call the function with (8, "secret").
func TestShortPayloadIsNoCall(t *testing.T) {
	var got []any
	f := namedFunction(t, func(id int, s string, p *int) { got = []any{id, s, p} })
	call := func(p any) error {
		got = nil
		_, err := f.Call(t.Context(), goMessage(t, f.Path(), payloadOf(p), noN))
		return err
	}
	if err := call(wireList{7, "secret", 1}); err != nil || got[1] != "secret" {
		t.Fatal(err, got)
	}
	for _, p := range []any{wireList{8}, wireList{8, "x"}, missing, nil, wireList{}} {
		if err := call(p); !errors.Is(err, ErrArguments) || got != nil {
			t.Errorf("payload %v: %v, called with %v", p, err, got)
		}
	}
	if err := call(wireList{8, "", nil}); err != nil || got[1] != "" || got[2] != (*int)(nil) {
		t.Error(err, got)
	}
}

// A returned frame keeps nothing of the call, neither for the next call nor from the garbage collector.
func TestFramesAreZeroed(t *testing.T) {
	note := "secret"
	f := namedFunction(t, func(_ context.Context, _ string, _ []int, _ map[string]int, p *string, fail ...bool) {
		if len(fail) > 0 {
			panic(*p)
		}
	})
	for _, args := range [][]any{{"a", []int{1}, map[string]int{"a": 1}, &note}, {"a", nil, nil, &note, true}} {
		payload, err := f.Encode(args)
		if err != nil {
			t.Fatal(err)
		}
		fr := f.newFrame()
		f.frames = &sync.Pool{New: func() any { return fr }}
		_, _ = f.Call(t.Context(), goMessage(t, f.Path(), payload, noN))
		for i, v := range fr.in {
			if !v.IsZero() {
				t.Errorf("the frame keeps argument %d: %v", i, v)
			}
		}
	}
}
