package delayed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// TestStructChanges has the rules of docs/DEPLOYING.md: what a function of one version makes of the calls of another.
func TestStructChanges(t *testing.T) {
	type (
		v1        struct{ First, Last string }
		reordered struct{ Last, First string }
		added     struct {
			First, Last string
			Age         int
		}
		removed struct{ First string }
		renamed struct{ Given, Last string }
		tagged  struct {
			Given string `msgpack:"First"`
			Last  string
		}
		optional struct {
			First string
			Last  *string
		}
		changed struct {
			First string
			Last  int
		}
		docs1 struct {
			ID    int64
			Count int
			Mail  string
		}
		docs2 struct {
			Note  string
			Items int `msgpack:"Count"`
			ID    int64
			Mail  *string
		}
		docs2WithoutNote struct {
			Items int `msgpack:"Count"`
			ID    int64
			Mail  *string
		}
		wider  struct{ N int64 }
		narrow struct{ N int8 }
		nested struct {
			ID   int
			Of   []v1
			ByID map[string]*v1
		}
		nestedAdded struct {
			ID   int
			Of   []added
			ByID map[string]*added
		}
	)
	ada := v1{"Ada", "Lovelace"}
	last := "Lovelace"
	more := added{First: "Ada", Last: "Lovelace"}
	for _, c := range []struct {
		name string
		sent any
		to   any    // a value of the parameter's type in the other version
		want any    // what arrives there; missing: it does not fit
		park string // the fields for which the task is parked
	}{
		{"reordered", ada, reordered{}, reordered{"Lovelace", "Ada"}, ""},
		{"reordered, back", reordered{"Lovelace", "Ada"}, v1{}, ada, ""},
		{"added, old task", ada, added{}, more, ""},
		{"added, new task", added{"Ada", "Lovelace", 36}, v1{}, nil, "1.Age"},
		{"added, new task without a value", more, v1{}, nil, "1.Age"},
		{"removed, old task", ada, removed{}, nil, "1.Last"},
		{"removed, new task", removed{"Ada"}, v1{}, v1{First: "Ada"}, ""},
		{"renamed, old task", ada, renamed{}, nil, "1.First"},
		{"renamed, new task", renamed{"Ada", "Lovelace"}, v1{}, nil, "1.Given"},
		{"renamed with a tag, old task", ada, tagged{}, tagged{"Ada", "Lovelace"}, ""},
		{"renamed with a tag, new task", tagged{"Ada", "Lovelace"}, v1{}, ada, ""},
		{"made optional, old task", ada, optional{}, optional{"Ada", &last}, ""},
		{"made optional, new task", optional{"Ada", &last}, v1{}, ada, ""},
		{"made optional, new task with nil", optional{"Ada", nil}, v1{}, missing, ""},
		{"type changed, old task", ada, changed{}, missing, ""},
		{"type changed, new task", changed{"Ada", 1}, v1{}, missing, ""},
		{"type widened", narrow{5}, wider{}, wider{5}, ""},
		{"type narrowed, it fits", wider{5}, narrow{}, narrow{5}, ""},
		{"type narrowed, it does not fit", wider{500}, narrow{}, missing, ""},
		{"type changed and field added", struct{ First, Last, More any }{1, 2, 3}, v1{}, nil, "1.More"},
		{
			"inside, old task",
			nested{1, []v1{ada}, map[string]*v1{"a": &ada}},
			nestedAdded{},
			nestedAdded{1, []added{more}, map[string]*added{"a": &more}},
			"",
		},
		{
			"inside, new task",
			nestedAdded{1, []added{{}}, map[string]*added{"a": {}}},
			nested{},
			nil, "1.Of[].Age 1.ByID[].Age",
		},
		{"optional no more, old task", optional{"Ada", &last}, v1{}, ada, ""},
		{"optional no more, old task with nil", optional{"Ada", nil}, v1{}, missing, ""},
		{"the example, old task", docs1{1, 2, last}, docs2{}, docs2{Items: 2, ID: 1, Mail: &last}, ""},
		{"the example, new task", docs2{"n", 2, 1, &last}, docs1{}, nil, "1.Note"},
		{
			"the example, new task without the added field",
			docs2WithoutNote{2, 1, &last},
			docs1{},
			docs1{1, 2, last},
			"",
		},
		{"integer to float", struct{ N int }{5}, struct{ N float64 }{}, struct{ N float64 }{5}, ""},
		{"integer to float, not exact", struct{ N int }{1<<53 + 1}, struct{ N float64 }{}, missing, ""},
		{
			"another type of the same fields", ada,
			struct{ First, Last string }{},
			struct{ First, Last string }{"Ada", "Lovelace"},
			"",
		},
		{"pointer for a struct", ada, &v1{}, &ada, ""},
		{"struct for a pointer", &ada, v1{}, ada, ""},
		{"struct for a map", ada, map[string]string{}, map[string]string{"First": "Ada", "Last": "Lovelace"}, ""},
		{"map for a struct", map[string]string{"First": "Ada"}, v1{}, v1{First: "Ada"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			sender, receiver := functionOn(t, reflect.TypeOf(c.sent)), functionOn(t, reflect.TypeOf(c.to))
			payload, err := sender.encode([]any{c.sent})
			if err != nil {
				t.Fatal(err)
			}
			m := goMessage(t, receiver.path(), payload, noN)
			got, err := receiver.call(t.Context(), m)
			if fields := strings.Join(receiver.unknownFields(m), " "); fields != c.park {
				t.Errorf("unknown fields %q, expected %q", fields, c.park)
			}
			var wrong *ArgumentError
			switch {
			case c.want == missing || c.park != "":
				if !errors.As(err, &wrong) {
					t.Errorf("found %v, %v, expected an *ArgumentError", got, err)
				}
			case err != nil || !reflect.DeepEqual(got, c.want):
				t.Errorf("found %+v, %v, expected %+v", got, err, c.want)
			}
		})
	}
}

// TestFunctionChanges has the rules of docs/DEPLOYING.md for functions.
func TestFunctionChanges(t *testing.T) {
	type call struct{ args []any }
	ran := func(args ...any) call { return call{args} }
	var got call
	named := func(fn any, opts ...FuncOption) *Function { return Func(fn, append(opts, Name("test.fn"))...) }
	one := named(func(a int) { got = ran(a) })
	two := named(func(a, b int) { got = ran(a, b) })
	swapped := named(func(b, a int) { got = ran(a, b) })
	mixed, mixedSwapped := named(func(a int, s string) { got = ran(a, s) }),
		named(func(s string, a int) { got = ran(a, s) })
	optional := named(func(a, b int) { got = ran(a, b) }, Optional(1))
	full := named(func(_ context.Context, a int) (string, error) { got = ran(a); return "", nil })
	for _, c := range []struct {
		name     string
		from, to *Function
		args     []any
		want     []any // nil: it does not fit
	}{
		{"parameter added with Optional, old task", one, optional, []any{1}, []any{1, 0}},
		{"parameter added with Optional, new task", optional, one, []any{1, 2}, nil},
		{"parameter added, old task", one, two, []any{1}, nil},
		{"parameter added, new task", two, one, []any{1, 2}, nil},
		{"parameters swapped", two, swapped, []any{1, 2}, []any{2, 1}},
		{"parameters of two types swapped", mixed, mixedSwapped, []any{1, "x"}, nil},
		{"context and results added", one, full, []any{1}, []any{1}},
		{"context and results removed", full, one, []any{1}, []any{1}},
	} {
		from, to := mustFunction(t, c.from), mustFunction(t, c.to)
		payload, err := from.encode(c.args)
		if err != nil {
			t.Fatal(c.name, err)
		}
		got = call{}
		m := goMessage(t, to.path(), payload, noN)
		_, err = to.call(t.Context(), m)
		var wrong *ArgumentError
		if errors.As(err, &wrong) != (c.want == nil) || !reflect.DeepEqual(got.args, c.want) ||
			to.unknownFields(m) != nil {
			t.Errorf("%s: called with %v, %v, expected %v", c.name, got.args, err, c.want)
		}
	}
}

// functionOn returns a function that returns its one argument, of a type.
func functionOn(t *testing.T, typ reflect.Type) *function {
	t.Helper()
	signature := reflect.FuncOf([]reflect.Type{typ}, []reflect.Type{typ}, false)
	fn := reflect.MakeFunc(signature, func(args []reflect.Value) []reflect.Value { return args })
	return mustFunction(t, Func(fn.Interface(), Name("test.fn")))
}

// Fields are found in whatever place an argument has, and by their paths the workers that lack them are known.
func TestUnknownFieldsOfAnyArgument(t *testing.T) {
	type old struct{ A int }
	type current struct{ A, B int }
	x, list := current{1, 2}, []any{current{1, 2}, current{3, 4}}
	named := func(fn any, opts ...FuncOption) *Function { return Func(fn, append(opts, Name("test.fn"))...) }
	for _, c := range []struct {
		name     string
		old, new *Function
		args     []any
		fields   string
	}{
		{"second of two", named(func(int, old) {}), named(func(int, current) {}), []any{1, x}, "2.B"},
		{"both", named(func(old, *old) {}), named(func(current, *current) {}), []any{x, &x}, "1.B 2.B"},
		{"tail", named(func(int, ...old) {}), named(func(int, ...current) {}), append([]any{1}, list...), "2[].B"},
		{"tail alone", named(func(...old) {}), named(func(...current) {}), list, "1[].B"},
		{
			"tail of maps", named(func(...map[string]old) {}), named(func(...map[string]current) {}),
			[]any{map[string]current{"k": x}},
			"1[][].B",
		},
		{"one, which is a list", named(func([]old) {}), named(func([]current) {}), []any{[]current{x, x}}, "1[].B"},
		{"beside a missing one", named(func(old, int) {}, Optional(1)), named(func(current) {}), []any{x}, "1.B"},
		{
			"beside a missing one, a list", named(func([]old, int) {}, Optional(1)), named(func([]current) {}),
			[]any{[]current{x, x}},
			"1[].B",
		},
		{"beside one more", named(func(old) {}), named(func(current, int) {}), []any{x, 1}, "1.B"},
	} {
		before, after := mustFunction(t, c.old), mustFunction(t, c.new)
		payload, err := after.encode(c.args)
		if err != nil {
			t.Fatal(c.name, err)
		}
		counted, _, err := encodeArgs(wire.ByName, c.args)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for n, b := range map[int][]byte{noN: payload, len(c.args): counted} {
			if n == noN && c.name == "beside one more" {
				continue // by position of the arguments it is one struct for the old version, of another length
			}
			fields := before.unknownFields(goMessage(t, before.path(), b, n))
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("%s, n=%d: found %q, expected %q", c.name, n, got, c.fields)
			}
			for _, path := range fields {
				if !before.lacks(path) || after.lacks(path) {
					t.Errorf("%s: %s is lacked: before %v, after %v", c.name, path, before.lacks(path),
						after.lacks(path))
				}
			}
			if fields := after.unknownFields(goMessage(t, after.path(), b, n)); fields != nil {
				t.Errorf("%s, n=%d: the sender lacks %v", c.name, n, fields)
			}
		}
	}
	f := mustFunction(t, named(func(old) {}))
	for _, path := range []string{"", "1", "1.A", "0.B", "2.B", "-1.B", ".B", "x.B", "99999999999999999999.B", "1B"} {
		if f.lacks(path) {
			t.Errorf("%q is lacked", path)
		}
	}
	many := wireDict{}
	for i := range 3 * wire.MaxUnknownFields {
		many = append(many, wirePair{fmt.Sprintf("F%d", i), i})
	}
	if fields := f.unknownFields(goMessage(t, f.path(), packed(many), noN)); len(fields) != wire.MaxUnknownFields {
		t.Errorf("%d fields are told, expected %d", len(fields), wire.MaxUnknownFields)
	}
}

// What the versions of a program send in TestRollingDeployOfAStruct.
type (
	order1 struct{ ID, Count int64 }
	order2 struct {
		Note  string
		Count int64 // has changed places
		ID    int64
	}
	order3 struct {
		ID    int64
		Items int64 `msgpack:"Count"` // has another name in Go
		Note  *string
		Lines []struct{ SKU string }
	}
)

// TestRollingDeployOfAStruct has three versions of a struct: the second adds a field and changes the order, the third
// renames one with a tag, makes one optional and adds another. Each task runs once, at a worker that has its fields,
// whoever comes first.
func TestRollingDeployOfAStruct(t *testing.T) {
	d := &deploy{bench: newBench(t), runs: map[string]map[int64]int{}}
	name := Name(d.Name + ".Place")
	var mu sync.Mutex
	wrong := []string{}
	ran := func(version string, id, count int64) {
		if count != 2*id {
			mu.Lock()
			wrong = append(wrong, fmt.Sprintf("%s: task %d with %d", version, id, count))
			mu.Unlock()
		}
		d.ran(version, id)
	}
	f1 := Func(func(o order1) { ran("v1", o.ID, o.Count) }, name)
	f2 := Func(func(o order2) { ran("v2", o.ID, o.Count) }, name)
	f3 := Func(func(o order3) { ran("v3", o.ID, o.Items) }, name)
	produce := func(version, n int) {
		t.Helper()
		for range n {
			d.next++
			switch id, note := d.next, "n"; version {
			case 1:
				d.delay(f1, order1{id, 2 * id})
			case 2:
				d.delay(f2, order2{note, 2 * id, id})
			case 3:
				d.delay(f3, order3{ID: id, Items: 2 * id, Note: &note, Lines: []struct{ SKU string }{{"x"}}})
			}
		}
	}

	one := d.work(d.config(), f1)
	produce(1, 10)
	d.settled(0)
	produce(2, 10) // new producers come first: their tasks wait
	produce(3, 10)
	d.settled(20)
	page, total, err := d.q.Parked(t.Context(), 0, 30)
	if err != nil || total != 20 {
		t.Fatalf("parked: %d, %v", total, err)
	}
	said := map[string]int{}
	for _, task := range page {
		if task.Reason != reasonFields || task.Function != d.Name+".Place" {
			t.Errorf("parked: %+v", task)
		}
		_, fields, _ := strings.Cut(task.Error, "(argument.field): ")
		said[strings.SplitN(fields, ";", 2)[0]]++
	}
	if said["1.Note"] != 10 || said["1.Note, 1.Lines"] != 10 {
		t.Errorf("the fields that are told: %v", said)
	}
	two := d.work(d.config(), f2)
	d.settled(10) // those of the second version ran; the first worker may have taken and parked some of them again
	produce(1, 10)
	produce(2, 10)
	produce(3, 10)
	d.settled(20)
	one.mustStop()
	produce(1, 10) // an old producer is left
	d.settled(20)
	three := d.work(d.config(), f3)
	d.settled(0)
	produce(1, 5)
	produce(2, 5)
	two.mustStop()
	produce(1, 5)
	produce(2, 5)
	produce(3, 5)
	d.over()
	three.mustStop()
	if len(wrong) > 0 {
		t.Errorf("wrong values: %v", wrong)
	}
	for _, version := range []string{"v1", "v2", "v3"} {
		if len(d.runs[version]) == 0 {
			t.Errorf("no worker of %s has run a task", version)
		}
	}
}

// Workers that lack a field of a parked task leave it alone, also when each lacks another one; a worker that has all
// takes it.
func TestParkedForFieldsGoesToNobodyElse(t *testing.T) {
	type left struct{ A, B int }
	type right struct{ A, C int }
	type full struct{ A, B, C int }
	type other struct { // knows the fields, but not by these types
		A, B int
		C    string
	}
	b := newBench(t)
	name := Name(b.Name + ".F")
	ran := make(chan full, 10)
	lefts := b.work(b.config(), Func(func(left) {}, name))
	sender := Func(func(v full) { ran <- v }, name)
	ref := b.delay(sender, full{1, 2, 3})
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	rights, others := b.work(b.config(), Func(func(right) {}, name)), b.work(b.config(), Func(func(other) {}, name))
	for range 5 {
		for _, w := range []*started{lefts, rights, others} {
			ids, err := runnable(t.Context(), b.q.store, &w.registry, b.parked())
			if err != nil || len(ids) != 0 {
				t.Errorf("released %v, %v", ids, err)
			}
			w.groups[0].mover.now()
		}
	}
	b.Until("each has looked", func() bool {
		return lefts.groups[0].mover.looked.Load() && rights.groups[0].mover.looked.Load() &&
			others.groups[0].mover.looked.Load()
	})
	if n := b.counters()["parked"]; n != 1 || b.Size("_parked") != 1 {
		t.Errorf("parked %d times, %d are", n, b.Size("_parked"))
	}
	info := wire.ParseInfo([]byte(b.Hash("_info")[ref.ID()]))
	if info.Reason != reasonFields || !slices.Equal(info.Fields, []string{"1.C"}) || info.Deaths != 0 ||
		info.Attempts != 0 {
		t.Errorf("info %+v", info)
	}
	for _, w := range []*started{lefts, rights, others} { // or they might take it and park it once more
		w.mustStop()
	}
	b.work(b.config(), sender)
	if got := await(b, "the task", ran); got != (full{1, 2, 3}) {
		t.Errorf("ran with %+v", got)
	}
	b.Idle()
	if c := b.counters(); c["failed"]+c["retried"]+c["archived"] != 0 {
		t.Errorf("counters %v", c)
	}
	b.Check(redistest.Invariants{})
}

// parked is the first page of parked tasks.
func (b *bench) parked() []redisstore.Filed {
	b.T.Helper()
	page, err := b.q.store.ParkedPage(b.T.Context(), 0, redisstore.ParkedPage, false)
	if err != nil {
		b.T.Fatal(err)
	}
	return page
}
