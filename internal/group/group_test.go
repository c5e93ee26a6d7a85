package group

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/wire"
)

const nowMs = 1_700_000_000_000

// list encodes integers as an array.
func list(values ...int) []byte {
	b := wire.AppendArrayHeader(nil, len(values))
	for _, v := range values {
		b = wire.AppendInt(b, int64(v))
	}
	return b
}

// call is a message with the tenant a as its only fixed argument, and a list to which each call adds.
func call(id string, values ...int) wire.Message {
	payload := append(wire.AppendString(wire.AppendArrayHeader(nil, 2), "a"), list(values...)...)
	return wire.Message{Kind: wire.GoExtended, Path: "f", Payload: payload, Meta: wire.Meta{
		ID: id, Extra: &wire.Extra{Group: "k", Gather: &wire.Gather{Grace: 1, MaxSize: 9, Fixed: 1}},
	}}
}

func raws(messages ...wire.Message) (all [][]byte) {
	for i := range messages {
		all = append(all, messages[i].Append(nil))
	}
	return all
}

func parse(t *testing.T, raw []byte) wire.Message {
	t.Helper()
	m, err := wire.Parse(raw, wire.WorkerLimits)
	if err != nil {
		t.Fatalf("%x: %v", raw, err)
	}
	return m
}

// shown describes the combined calls: the id and the values of each.
func shown(t *testing.T, calls [][]byte) string {
	t.Helper()
	var text []string
	for _, raw := range calls {
		m, err := wire.Parse(raw, wire.WorkerLimits)
		if err != nil {
			text = append(text, string(raw))
			continue
		}
		value, _, err := wire.DecodeAny(m.Payload)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, fmt.Sprint(m.Meta.ID, value))
	}
	return strings.Join(text, ", ")
}

// TestNewMember decodes calls in every form that their arguments may have.
func TestNewMember(t *testing.T) {
	nested := append(wire.AppendArrayHeader(nil, 2), append(list(1, 2), list(3)...)...)
	array := func(values ...[]byte) []byte {
		return append(wire.AppendArrayHeader(nil, len(values)), slices.Concat(values...)...)
	}
	text := wire.AppendString(nil, "a")
	for _, c := range []struct {
		name          string
		fixed         int
		n             int // number of arguments; -1: the message does not contain it
		payload       []byte
		count, values int
		bytes         int
		err           string
	}{
		{"nothing", 0, -1, nil, 0, 0, 0, ""},
		{"nil", 0, -1, wire.Nil, 0, 0, 0, ""},
		{"an empty list", 0, -1, list(), 0, 0, 0, ""},
		{"a list", 0, -1, list(1, 2, 3), 3, 3, 3, ""},
		{"lists in a list", 0, -1, nested, 2, 5, 5, ""},
		{"no list", 0, -1, text, 0, 0, 0, "expected arguments in an array"},
		{"one by one", 0, 3, list(1, 2, 3), 3, 3, 3, ""},
		{"fixed, one by one", 1, 3, list(1, 2, 3), 2, 2, 2, ""},
		{"fixed alone, one by one", 1, 1, list(1), 0, 0, 0, ""},
		{"too few, one by one", 2, 1, list(1), 0, 0, 0, "expected 2 arguments and a list, found 1"},
		{"fixed and a list", 1, -1, array(text, list(1, 2)), 2, 2, 2, ""},
		{"two fixed and a list", 2, -1, array(text, list(7, 8), list(1)), 1, 1, 1, ""},
		{"fixed and nil", 1, -1, array(text, wire.Nil), 0, 0, 0, ""},
		{"fixed and no list", 1, -1, array(text, text), 0, 0, 0, "expected a list as the last argument"},
		{"fixed alone", 1, -1, array(text), 0, 0, 0, "expected 1 arguments and a list, found 1"},
		{"one too many", 1, -1, array(text, list(1), list(2)), 0, 0, 0, "expected 1 arguments and a list, found 3"},
		{"nothing, but fixed", 1, -1, nil, 0, 0, 0, "expected arguments in an array"},
	} {
		msg := call("x")
		msg.Payload, msg.Meta.Extra.Gather.Fixed = c.payload, c.fixed
		if c.n >= 0 {
			msg.Meta.HasN, msg.Meta.N = true, c.n
		}
		raw := msg.Append(nil)
		m, err := NewMember(raw)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !bytes.Equal(m.Message, raw) {
				t.Errorf("%s: found %v, expected an error with %q", c.name, err, c.err)
			}
			continue
		}
		if err == nil && m.Group != groupName("f", "k", c.fixed, m.fixed) {
			t.Errorf("%s: the group is %q", c.name, m.Group)
		}
		if err != nil || m.count != c.count || m.Values != c.values || m.Bytes != c.bytes {
			t.Errorf("%s: %d in a list of %d values in %d bytes, %v; expected %d, %d and %d", c.name, m.count, m.Values,
				m.Bytes, err, c.count, c.values, c.bytes)
		}
	}
}

// TestWhatIsNoMember: some messages cannot be gathered, but their size is reported all the same.
func TestWhatIsNoMember(t *testing.T) {
	alone, plain := call("x", 1), call("x", 1)
	alone.Meta.Extra.Group = ""
	plain.Meta.Extra = nil
	python := call("x")
	python.Kind, python.Payload, python.Meta.Extra.Gather.Fixed = wire.PyExtended, nil, 0
	for name, raw := range map[string][]byte{
		"without a group": alone.Append(nil), "without options": plain.Append(nil), "python": python.Append(nil),
		"garbage": []byte("garbage"),
	} {
		if m, err := NewMember(raw); err == nil || m.Group != "" || m.Bytes != len(raw) {
			t.Errorf("%s: found %+v, %v", name, m, err)
		}
	}
}

// TestPolicyOfAMember: a member has the policy of its message, limited to what a script can read at once.
func TestPolicyOfAMember(t *testing.T) {
	for most, want := range map[int]int{
		0: MaxGroupSize, 1: 1, 7: 7, MaxGroupSize: MaxGroupSize, MaxGroupSize + 1: MaxGroupSize,
	} {
		msg := call("x", 1)
		msg.Meta.Extra.Gather = &wire.Gather{Grace: 5, MaxDelay: 6, MaxSize: most, Fixed: 1}
		got, err := NewMember(msg.Append(nil))
		if err != nil || got.How != (wire.Gather{Grace: 5, MaxDelay: 6, MaxSize: want, Fixed: 1}) {
			t.Errorf("MaxSize %d: found %+v, %v", most, got.How, err)
		}
	}
	msg := call("x")
	msg.Meta.Extra.Gather, msg.Payload = nil, list(1)
	m, err := NewMember(msg.Append(nil))
	if err != nil || m.How != (wire.Gather{Grace: DefaultGrace.Milliseconds(), MaxSize: DefaultGroupSize}) {
		t.Errorf("without a policy: found %+v, %v", m.How, err)
	}
}

// TestNamesOfGroups: the names differ if anything differs that calls of one group have in common.
func TestNamesOfGroups(t *testing.T) {
	seen := map[string]string{}
	for what, name := range map[string]string{
		"f, k":                 groupName("f", "k", 0, nil),
		"g, k":                 groupName("g", "k", 0, nil),
		"f, l":                 groupName("f", "l", 0, nil),
		"fk and no key":        groupName("fk", "", 0, nil),
		"no path and fk":       groupName("", "fk", 0, nil),
		"one fixed":            groupName("f", "k", 1, []byte{1}),
		"another fixed":        groupName("f", "k", 1, []byte{2}),
		"two fixed":            groupName("f", "k", 2, []byte{1}),
		"the same, in the key": groupName("f", "k\x01\x01", 0, nil),
	} {
		if other := seen[name]; other != "" || len(name) != 32 {
			t.Errorf("%s and %s are both %q", what, other, name)
		}
		seen[name] = what
	}
	if a, b := groupName("f", "k", 0, nil), groupName("f", "k", -1, nil); a != b {
		t.Errorf("a negative number of fixed arguments makes %s of %s", b, a)
	}
}

// TestComposedCall: the combined call has the id of the first call and everything else of the last one, but its
// attempts and deaths begin at 0.
func TestComposedCall(t *testing.T) {
	first, last := call("first", 1), call("last", 2, 3)
	first.Meta.HasMaxRetry, first.Meta.MaxRetry = true, 9
	first.Meta.Extra.Headers = map[string]string{"tenant": "a"}
	last.Meta.EnqueuedAt, last.Meta.Retried, last.Meta.Deaths, last.Meta.DiedAt = 5, 6, 7, 8
	last.Meta.HasMaxRetry, last.Meta.MaxRetry = true, 4
	last.Meta.Extra.Timeout, last.Meta.Extra.FirstFailed, last.Meta.Extra.AloneDeaths = 1000, 11, 2
	last.Meta.Extra.Headers = map[string]string{"tenant": "b"}
	calls, members := Compose(raws(first, last), 9, nowMs, nil)
	if len(calls) != 1 || len(members) != 2 {
		t.Fatalf("%d calls of %d members", len(calls), len(members))
	}
	got := parse(t, calls[0])
	want := wire.Message{Kind: wire.GoExtended, Path: "f", Payload: call("", 1, 2, 3).Payload, Meta: wire.Meta{
		ID: "first", EnqueuedAt: nowMs, HasMaxRetry: true, MaxRetry: 4,
		Extra: &wire.Extra{Timeout: 1000, Headers: map[string]string{"tenant": "b"}},
	}}
	want = parse(t, want.Append(nil))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v with %+v\nexpected %+v with %+v", got, got.Meta.Extra, want, want.Meta.Extra)
	}
	if first, err := wire.Parse(members[0].Message, wire.WorkerLimits); err != nil || first.Meta.Extra.Group != "k" {
		t.Errorf("the members were changed: %+v, %v", first, err)
	}
}

// TestComposedCallKeepsWhatNewerVersionsAdd: the combined call keeps unknown keys in the meta of the last call.
func TestComposedCallKeepsWhatNewerVersionsAdd(t *testing.T) {
	last := call("last", 2)
	last.Meta.Rest = &wire.Pairs{N: 1, Raw: append(wire.AppendString(nil, "zz"), wire.AppendInt(nil, 7)...)}
	calls, _ := Compose(raws(call("first", 1), last), 9, nowMs, nil)
	if got := parse(t, calls[0]); !reflect.DeepEqual(got.Meta.Rest, last.Meta.Rest) {
		t.Errorf("found %+v behind the keys of this version", got.Meta.Rest)
	}
}

func TestCompose(t *testing.T) {
	other := call("other", 7)
	other.Payload = append(wire.AppendString(wire.AppendArrayHeader(nil, 2), "b"), list(7)...)
	unnamed := call("", 5)
	garbage := []byte("garbage")
	abc := raws(call("a", 1), call("b", 2), call("c", 3))
	for _, c := range []struct {
		name     string
		raws     [][]byte
		size     int
		canceled []string
		calls    string
		members  int
	}{
		{"none", nil, 9, nil, "", 0},
		{"all", abc, 9, nil, "a[a [1 2 3]]", 3},
		{"as many as asked for", abc, 3, nil, "a[a [1 2 3]]", 3},
		{"one more than asked for", abc, 2, nil, "a[a [1 2]]", 2},
		{"the first canceled", abc, 9, []string{"a"}, "b[a [2 3]]", 3},
		{"the last canceled", abc, 9, []string{"c"}, "a[a [1 2]]", 3},
		{"the canceled do not count", abc, 2, []string{"b"}, "a[a [1 3]]", 3},
		{"all canceled", abc, 9, []string{"a", "b", "c"}, "", 3},
		{
			"another group between",
			[][]byte{abc[0], raws(other)[0], abc[1]},
			9, nil, "a[a [1]], other[b [7]], b[a [2]]",
			3,
		},
		{"garbage between", [][]byte{abc[0], garbage, abc[1], abc[2]}, 9, nil, "a[a [1]], garbage, b[a [2 3]]", 4},
		{"garbage alone", [][]byte{garbage}, 9, nil, "garbage", 1},
	} {
		canceled := map[string]bool{}
		for _, id := range c.canceled {
			canceled[id] = true
		}
		calls, members := Compose(c.raws, c.size, nowMs, canceled)
		if got := shown(t, calls); got != c.calls || len(members) != c.members {
			t.Errorf("%s: found %s of %d members, expected %s of %d", c.name, got, len(members), c.calls, c.members)
		}
	}
	x, y := call("x"), call("y")
	x.Meta.Extra.Gather.Fixed, x.Payload = 0, list(1, 2)
	y.Meta.Extra.Gather.Fixed, y.Payload = 0, list(3)
	calls, _ := Compose(raws(x, y), 9, nowMs, nil)
	if got := shown(t, calls); got != "x[1 2 3]" {
		t.Errorf("found %s of lists alone", got)
	}
	calls, _ = Compose(raws(unnamed), 9, nowMs, nil)
	if got := parse(t, calls[0]); got.Meta.ID == "" {
		t.Error("a call of one without an id has none")
	}
}

// TestComposedCallsAreBounded: there are no more combined calls than one script may make pending.
func TestComposedCallsAreBounded(t *testing.T) {
	garbage := slices.Repeat([][]byte{[]byte("garbage")}, 2*MaxCalls)
	calls, members := Compose(garbage, 9, nowMs, nil)
	if len(calls) != MaxCalls-1 || len(members) != len(calls) {
		t.Errorf("%d calls of %d members, expected %d", len(calls), len(members), MaxCalls-1)
	}
	// One turn may add two calls: the combined one before, and a message that is no member.
	pair := [][]byte{raws(call("a", 1))[0], []byte("garbage")}
	calls, members = Compose(slices.Concat(garbage[:MaxCalls-2], pair, pair), 9, nowMs, nil)
	if len(calls) > MaxCalls || len(members) < MaxCalls-1 {
		t.Errorf("%d calls of %d members, expected at most %d", len(calls), len(members), MaxCalls)
	}
}

// TestComposedCallFitsAMessage: a call ends where one more member would make it larger than producers may send.
func TestComposedCallFitsAMessage(t *testing.T) {
	large := func(id string, size int) wire.Message {
		m := call(id)
		m.Payload = append(wire.AppendString(wire.AppendArrayHeader(nil, 2), "a"), wire.AppendArrayHeader(nil, 1)...)
		m.Payload = wire.AppendBin(m.Payload, make([]byte, size))
		return m
	}
	many := func(id string, n int) wire.Message { return call(id, make([]int, n)...) }
	for name, c := range map[string]struct {
		raws [][]byte
		want int // members
	}{
		"bytes":           {raws(large("a", 500_000), large("b", 500_000), large("c", 500_000)), 2},
		"bytes, the rest": {raws(large("a", 600_000), large("b", 600_000)), 1},
		"values":          {raws(many("a", 30_000), many("b", 30_000), many("c", 30_000)), 2},
		"values in lists": {raws(many("a", 40_000), many("b", 40_000)), 1},
	} {
		calls, members := Compose(c.raws, 9, nowMs, nil)
		if len(calls) != 1 || len(members) != c.want {
			t.Errorf("%s: %d calls of %d members, expected one of %d", name, len(calls), len(members), c.want)
			continue
		}
		if _, err := wire.Parse(calls[0], wire.Default); err != nil {
			t.Errorf("%s: the call is no message: %v", name, err)
		}
	}
	// Up to the last value: everything that producers may send is gathered, and no more.
	for extra, want := range map[int]int{0: 2, 1: 1} {
		half := (wire.Default.Elems - 3) / 2
		rest := wire.Default.Elems - 3 - half
		_, members := Compose(raws(many("a", half), many("b", rest+extra)), 9, nowMs, nil)
		if len(members) != want {
			t.Errorf("%d values more: %d members, expected %d", extra, len(members), want)
		}
	}
}
