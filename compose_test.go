package delayed_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/wire"
)

type pointForTest struct{ X, Y int16 }

// growingFunctions are functions of every kind that can be gathered: each returns its arguments.
var growingFunctions = []any{
	func(xs ...int64) any { return xs },
	func(xs []int64) any { return xs },
	func(_ context.Context, xs ...string) any { return xs },
	func(xs []pointForTest) any { return xs },
	func(xs ...[]byte) any { return xs },
	func(xs [][]uint16) any { return xs },
	func(xs []map[string]bool) any { return xs },
	func(xs []*string) any { return xs },
	func(xs ...any) any { return xs },
	func(tenant string, xs ...int64) any { return []any{tenant, xs} },
	func(_ context.Context, tenant []string, n uint8, xs []pointForTest) any { return []any{tenant, n, xs} },
	func(at pointForTest, xs ...[]int32) any { return []any{at, xs} },
}

// randomValue returns a random value of a type; for an interface type, one of a few.
func randomValue(r *rand.Rand, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> (64 - t.Bits() + r.IntN(t.Bits())))
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(uint64(r.Uint32()) >> (32 - t.Bits()))
	case reflect.String:
		v.SetString(strings.Repeat("é\x00", r.IntN(20)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(randomValue(r, t.Field(i).Type))
		}
	case reflect.Slice:
		if r.IntN(5) > 0 {
			v.Set(reflect.MakeSlice(t, 0, 0))
			for range r.IntN(6) {
				v.Set(reflect.Append(v, randomValue(r, t.Elem())))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		for range r.IntN(4) {
			v.SetMapIndex(randomValue(r, t.Key()), randomValue(r, t.Elem()))
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(randomValue(r, t.Elem()))
		}
	case reflect.Interface:
		some := []any{nil, int64(1), "two", []any{int64(3)}, true}
		if x := some[r.IntN(len(some))]; x != nil {
			v.Set(reflect.ValueOf(x))
		}
	default:
		panic(t)
	}
	return v
}

// gatheredForTest returns the messages of calls of one function, and the arguments of the calls, fixed ones first.
func gatheredForTest(
	t *testing.T, r *rand.Rand, q *delayed.Queue, f any, n int,
) (messages [][]byte, fixed []any, list reflect.Value) {
	t.Helper()
	fn := delayed.Func(f, delayed.Name("compose.f"))
	info := described(t, fn)
	last := len(info.Params) - 1
	for _, p := range info.Params[:last] {
		fixed = append(fixed, randomValue(r, p).Interface())
	}
	list = reflect.MakeSlice(info.Params[last], 0, 0)
	for range n {
		values := randomValue(r, info.Params[last])
		list = reflect.AppendSlice(list, values)
		args := slices.Clone(fixed)
		var task *delayed.Task
		switch {
		case r.IntN(3) == 0: // by path, with the ready slice
			task = delayed.NewGoTask(info.Path, append(args, values.Interface())...)
		case info.Variadic:
			for i := range values.Len() {
				args = append(args, values.Index(i).Interface())
			}
			task = delayed.Call(fn, args...)
		default:
			task = delayed.Call(fn, append(args, values.Interface())...)
		}
		messages = append(messages, messageOf(t, q, task))
	}
	return messages, fixed, list
}

// TestComposeConcatenates combines random calls: the combined calls have the arguments of all of them, in order.
func TestComposeConcatenates(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	q := offline(t)
	for round := range 600 {
		growing := growingFunctions[round%len(growingFunctions)]
		fn, err := function.New(growing, function.Spec{Name: "compose.f", Named: true})
		if err != nil {
			t.Fatal(err)
		}
		size := 1 + r.IntN(9)
		q := q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{MaxSize: size}))
		messages, fixed, list := gatheredForTest(t, r, q, growing, 1+r.IntN(20))
		got, left := reflect.MakeSlice(list.Type(), 0, 0), messages
		for len(left) > 0 {
			composed, members := group.Compose(left, size, 5, nil)
			if len(composed) != 1 || len(members) != min(size, len(left)) {
				t.Fatalf("seed %d: %d of %d calls became %d, expected one of %d", seed, len(members), len(left),
					len(composed), size)
			}
			left = left[len(members):]
			msg, err := wire.Parse(composed[0], wire.Default)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if x := msg.Meta.Extra; x != nil && (x.Group != "" || x.Gather != nil) || msg.Meta.HasN ||
				msg.Meta.EnqueuedAt != 5 {
				t.Fatalf("seed %d: meta %+v", seed, msg.Meta)
			}
			if members[0].Msg.Meta.ID != msg.Meta.ID || msg.Meta.ID == "" {
				t.Fatalf("seed %d: the call has the id %q, its first member %q", seed, msg.Meta.ID,
					members[0].Msg.Meta.ID)
			}
			result, err := fn.Call(t.Context(), &msg)
			if err != nil {
				t.Fatalf("seed %d: %T: %v", seed, growing, err)
			}
			if len(fixed) > 0 {
				all, _ := result.([]any)
				if want := append(slices.Clone(fixed),
					nil); fmt.Sprint(all[:len(fixed)]) != fmt.Sprint(want[:len(fixed)]) {
					t.Fatalf("seed %d: fixed arguments %v, expected %v", seed, all, want)
				}
				result = all[len(fixed)]
			}
			got = reflect.AppendSlice(got, reflect.ValueOf(result))
		}
		if !reflect.DeepEqual(canonical(got), canonical(list)) {
			t.Fatalf("seed %d: called with %v, expected %v", seed, got, list)
		}
	}
}

// canonical shows values as they are sent, where an empty slice differs from nil.
func canonical(v reflect.Value) string {
	c, err := wire.CodecFor(v.Type())
	if err != nil {
		return err.Error()
	}
	b, err := c.Append(nil, v)
	return fmt.Sprintf("%x %v", b, err)
}

// TestMembersOfGroups: calls that belong to different groups stay apart.
func TestMembersOfGroups(t *testing.T) {
	q := offline(t)
	index := delayed.Func(func(string, ...int) {}, delayed.Name("a.index"))
	other := delayed.Func(func(string, ...int) {}, delayed.Name("a.other"))
	name := func(key string, task *delayed.Task) string {
		m, err := group.NewMember(messageOf(t, q.With(delayed.Group(key)), task))
		if err != nil {
			t.Fatal(err)
		}
		return m.Group
	}
	same := name("k", delayed.Call(index, "t", 1))
	for _, task := range []*delayed.Task{
		delayed.Call(index, "t"), delayed.Call(index, "t", 1, 2, 3), delayed.NewGoTask("a.index", "t", []int{1}),
		delayed.NewGoTask("a.index", "t", []string(nil)),
	} {
		if got := name("k", task); got != same {
			t.Errorf("another group: %s, expected %s", got, same)
		}
	}
	for what, got := range map[string]string{
		"key": name("l", delayed.Call(index, "t", 1)), "function": name("k", delayed.Call(other, "t", 1)),
		"argument": name("k", delayed.Call(index, "u", 1)),
		"fixed":    name("k", delayed.NewGoTask("a.index", []string{"t"})),
	} {
		if got == same {
			t.Errorf("another %s is in the same group", what)
		}
	}
	if len(same) != 32 {
		t.Errorf("name of %d characters", len(same))
	}
}

// TestForeignMembers combines calls that other programs may gather.
func TestForeignMembers(t *testing.T) {
	member := func(payload []byte, n int, how *wire.Gather) []byte {
		m := wire.Message{
			Kind: wire.GoExtended, Path: "f", Payload: payload,
			Meta: wire.Meta{HasN: n >= 0, N: max(n, 0), Extra: &wire.Extra{Group: "g", Gather: how}},
		}
		return m.Append(nil)
	}
	one := &wire.Gather{Fixed: 1}
	for _, c := range []struct {
		name     string
		messages [][]byte
		want     string // payloads
	}{
		{"counted", [][]byte{
			member([]byte("\x93\xa1t\x01\x02"), 3, one), member([]byte("\x91\xa1t"), 1, one),
			member([]byte("\x92\xa1t\x03"), 2, one),
		}, "92a17493010203"},
		{"counted, none fixed", [][]byte{
			member([]byte("\x92\x01\x02"), 2, nil), member(nil, 0, nil),
			member([]byte("\x91\x03"), 1, nil),
		}, "93010203"},
		{"not counted", [][]byte{
			member([]byte("\x92\x01\x02"), -1, nil), member(nil, -1, nil),
			member([]byte("\xc0"), -1, nil),
		}, "920102"},
		{"counted and not", [][]byte{
			member([]byte("\x93\xa1t\x01\x02"), 3, one),
			member([]byte("\x92\xa1t\x91\x03"), -1, one), member([]byte("\x92\xa1t\xc0"), -1, one),
		}, "92a17493010203"},
		{"lists that are not packed tightly", [][]byte{
			member([]byte("\xdc\x00\x01\x01"), -1, nil),
			member([]byte("\xdd\x00\x00\x00\x01\x02"), -1, nil),
		}, "920102"},
	} {
		composed, members := group.Compose(c.messages, 100, 1, nil)
		var got []string
		for _, b := range composed {
			m, err := wire.Parse(b, wire.Default)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if m.Meta.ID == "" {
				t.Errorf("%s: no id", c.name)
			}
			got = append(got, fmt.Sprintf("%x", m.Payload))
		}
		if strings.Join(got, " ") != c.want || len(members) != len(c.messages) {
			t.Errorf("%s: %d members became %q, expected %q", c.name, len(members), got, c.want)
		}
	}
	// A message that cannot be combined becomes pending unchanged, and those around it do not wait for it.
	good := func(i byte) []byte { return member([]byte{0x91, i}, -1, nil) }
	for name, bad := range map[string][]byte{
		"no message": []byte("garbage"),
		"no group":   (&wire.Message{Kind: wire.GoExtended, Path: "f", Payload: []byte("\x91\x01")}).Append(nil),
		"Python": (&wire.Message{
			Kind: wire.PyExtended, Path: "m:f",
			Meta: wire.Meta{Extra: &wire.Extra{Group: "g"}},
		}).Append(nil),
		"no list": member([]byte{7}, -1, nil), "no list behind the fixed argument": member([]byte{0x92, 1, 2}, -1, one),
		"no payload": member(nil, -1, one),
		"too few":    member([]byte{0x90}, 0, one), "too many": member([]byte{0x93, 1, 0x90, 0x90}, -1, one),
		"no array": member([]byte{7}, -1, one),
	} {
		composed, members := group.Compose([][]byte{good(1), good(2), bad, good(3), bad}, 100, 1, nil)
		if len(members) != 5 || len(composed) != 4 || !bytes.Equal(composed[1], bad) || !bytes.Equal(composed[3], bad) {
			t.Errorf("%s: %d members became %d tasks: %q", name, len(members), len(composed), composed)
		}
	}
	strange := (&wire.Message{
		Kind: wire.GoExtended, Path: "h", Payload: []byte("\x91\x09"),
		Meta: wire.Meta{Extra: &wire.Extra{Group: "g"}},
	}).Append(nil)
	if composed, members := group.Compose([][]byte{good(1), good(2), strange, strange, good(3)}, 100, 1,
		nil); len(composed) != 3 || len(members) != 5 {
		t.Errorf("%d members became %d tasks, expected 5 and 3", len(members), len(composed))
	}
	if composed, members := group.Compose(slices.Repeat([][]byte{[]byte("garbage")}, 3000), 100, 1,
		nil); len(composed) != len(members) || len(composed) > group.MaxCalls {
		t.Errorf("%d members became %d tasks", len(members), len(composed))
	}
	mixed := append([][]byte{[]byte("garbage")}, slices.Repeat([][]byte{good(1), []byte("garbage")}, 1500)...)
	for first := range 2 {
		composed, members := group.Compose(mixed[first:], 100, 1, nil)
		if len(composed) != len(members) || len(composed) > group.MaxCalls || len(composed) < group.MaxCalls-2 {
			t.Errorf("%d members, good and bad ones in turn, became %d tasks", len(members), len(composed))
		}
	}
	if composed, members := group.Compose(nil, 100, 1, nil); len(composed)+len(members) > 0 {
		t.Errorf("no members became %q", composed)
	}
}

// TestComposeWithinLimits: Compose makes no call that a producer could not have sent.
func TestComposeWithinLimits(t *testing.T) {
	q := offline(t).With(delayed.Group("k"))
	blobs := delayed.Func(func(string, ...[]byte) {}, delayed.Name("compose.blobs"))
	numbers := delayed.Func(func([]int) {}, delayed.Name("compose.numbers"))
	many := make([]int, 20_000)
	for name, c := range map[string]struct {
		task *delayed.Task
		fits int
	}{
		"bytes":  {delayed.Call(blobs, strings.Repeat("t", 100_000), make([]byte, 300_000)), 3},
		"values": {delayed.Call(numbers, many), 3},
		"one":    {delayed.Call(blobs, "t", make([]byte, 1<<20-200)), 1},
		"most":   {delayed.Call(numbers, make([]int, 65_535)), 1},
	} {
		raw := messageOf(t, q, c.task)
		messages := slices.Repeat([][]byte{raw}, 10)
		composed, members := group.Compose(messages, 10, 1, nil)
		if len(composed) != 1 || len(members) != c.fits {
			t.Errorf("%s: %d members became %d tasks, expected %d and 1", name, len(members), len(composed), c.fits)
			continue
		}
		if _, err := wire.Parse(composed[0], wire.Default); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestComposedOptions: the combined call has the options of the last call. It counts as never failed and never died,
// whatever happened to that call.
func TestComposedOptions(t *testing.T) {
	q := offline(t).With(delayed.Group("k"))
	fn := delayed.Func(func([]int) {}, delayed.Name("compose.options"), delayed.MaxRetry(9))
	first := messageOf(t, q.With(delayed.MaxRetry(1), delayed.Header("a", "1")), delayed.Call(fn, []int{1}))
	last, err := wire.Parse(messageOf(t, q.With(delayed.Header("b", "2")), delayed.Call(fn, []int{2})), wire.Default)
	if err != nil {
		t.Fatal(err)
	}
	last.Meta.Retried, last.Meta.Deaths, last.Meta.DiedAt = 1, 2, 3
	last.Meta.Extra.AloneDeaths, last.Meta.Extra.FirstFailed = 1, 4
	composed, _ := group.Compose([][]byte{first, last.Append(nil)}, 10, 1, nil)
	msg, err := wire.Parse(composed[0], wire.Default)
	if err != nil {
		t.Fatal(err)
	}
	if m := &msg.Meta; m.MaxRetry != 9 || m.Retried+m.Deaths != 0 || m.DiedAt != 0 ||
		!reflect.DeepEqual(m.Extra, &wire.Extra{Headers: map[string]string{"b": "2"}}) {
		t.Errorf("meta %+v with %+v", m, m.Extra)
	}
}
