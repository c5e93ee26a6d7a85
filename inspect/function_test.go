package inspect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

type oldItem struct{ SKU string }

type newItem struct {
	SKU  string
	Note *struct {
		Text string `msgpack:"the text"`
	}
}

type oldOrder struct{ Items []oldItem }

type newOrder struct{ Items []newItem }

// A task that waits for fields says which, and each published version of its function whether it has them.
func TestFieldsThatParkedTasksWaitFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	name := delayed.Name("shop.Place")
	b.work(delayed.Func(func(int, oldOrder) {}, name))
	note := &struct {
		Text string `msgpack:"the text"`
	}{"x"}
	place := delayed.Func(func(int, newOrder) {}, name)
	_, err := b.q.Delay(place, 1, newOrder{[]newItem{{"a", note}}})
	b.Must(err)
	var parked []inspect.Task
	b.Until("it is parked", func() bool {
		parked = b.tasks(inspect.Query{State: state.Parked})
		return len(parked) == 1
	})
	if fields := parked[0].UnknownFields; len(fields) != 1 || fields[0] != "2.Items[].Note" {
		t.Fatalf("it waits for %q", fields)
	}
	old := published(b)
	other := newBench(t)
	other.work(place)
	current := published(other)
	for path, lacking := range map[string][2]bool{ // old and new version
		"2.Items[].Note":              {true, false},
		"2.Items[].SKU":               {false, false},
		`2.Items[].Note."the text"`:   {true, false},
		`2.Items[].Note."other text"`: {true, true},
		"2.Items.Note":                {false, false}, // it has no place in either
		"1.Note":                      {false, false},
		"3.Note":                      {false, false},
		"0.Note":                      {false, false},
		"Note":                        {false, false},
		"2.Items[].Note…":             {false, false},
		"2[]":                         {false, false},
		"2[].Items":                   {false, false},
		"":                            {false, false},
	} {
		if old.Lacks(path) != lacking[0] || current.Lacks(path) != lacking[1] {
			t.Errorf("%s: old %v, new %v, expected %v", path, old.Lacks(path), current.Lacks(path), lacking)
		}
	}
}

// published returns the only function of a queue.
func published(b *bench) inspect.Function {
	b.T.Helper()
	var functions []inspect.Function
	b.Until("its worker has published it", func() bool {
		var err error
		functions, err = b.ins.Functions(bg, queueName)
		b.Must(err)
		return len(functions) == 1
	})
	return functions[0]
}

type address struct {
	Street string
	Number int8
}

func visit(address, *uint8, []string, map[string]float64, time.Time, ...bool) {}

// pythonListing is what a worker in Python publishes of def send(to: str, times: int = 1, *, quiet=False), and of
// def join(*names: str).
const pythonListing = `{"version": 1, "functions": [
	{"path": "post.tasks:send", "optional": 1, "parameters": [
		{"name": "to", "go": "str", "type": {"kind": "string"}},
		{"name": "times", "go": "int", "type": {"kind": "int64"}}]},
	{"path": "post.tasks:join", "variadic": true, "parameters": [
		{"name": "names", "go": "list[str]", "type": {"kind": "list", "elem": {"kind": "string"}}}]}]}`

// TestEditChecksArguments edits tasks of functions that workers have published, and of one that none has.
func TestEditChecksArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	worker := b.work(welcome, delayed.Func(visit, delayed.Name("visit")))
	b.Until("the functions are published", func() bool {
		fns, err := b.ins.Functions(bg, queueName)
		b.Must(err)
		return len(fns) == 2
	})
	b.Must(b.q.Pause(bg))
	where := address{"Elm", 7}
	var none *uint8
	at := time.Now()
	edits := func(good, bad []*delayed.Task) {
		t.Helper()
		for i, call := range append(good, bad...) {
			ref, err := b.q.Enqueue(bg, call)
			b.Must(err)
			report, err := b.ins.Do(bg, queueName, inspect.Edit(call), ref.ID())
			if i < len(good) && (err != nil || report.Done != 1) {
				t.Errorf("%v was refused: %+v, %v", call, report, err)
			}
			if i >= len(good) && (!errors.Is(err, delayed.ErrArguments) || report.Done != 0 ||
				strings.Contains(err.Error(), "secret")) {
				t.Errorf("%v: expected ErrArguments without values, found %+v, %v", call, report, err)
			}
		}
	}
	edits([]*delayed.Task{
		delayed.Call(welcome, 3, "de"),
		delayed.Call(visit, where, none, []string{"a"}, map[string]float64{"x": 1}, at, true, false),
		delayed.NewGoTask("visit", where, 255, nil, nil, at, []bool{}),
		delayed.NewGoTask("visit", map[string]any{"Street": "Elm"}, 0, []string{}, map[string]any{"x": 1}, at),
		delayed.NewGoTask("unpublished", "anything", 1, nil),
	}, []*delayed.Task{
		delayed.NewGoTask(path("welcome"), "secret", 3),
		delayed.NewGoTask(path("welcome"), 3),
		delayed.NewGoTask(path("welcome"), 3, "secret", 4),
		delayed.NewGoTask("visit", map[string]any{"Street": "Elm", "secret": 1}, 0, nil, nil, at),
		delayed.NewGoTask("visit", map[string]any{"Number": 128}, 0, nil, nil, at),
		delayed.NewGoTask("visit", where, 256, nil, nil, at),
		delayed.NewGoTask("visit", where, -1, nil, nil, at),
		delayed.NewGoTask("visit", where, 0, []any{"a", 1}, nil, at),
		delayed.NewGoTask("visit", where, 0, nil, map[string]any{"x": "secret"}, at),
		delayed.NewGoTask("visit", where, 0, nil, map[int]float64{1: 1}, at),
		delayed.NewGoTask("visit", where, 0, nil, nil, "secret"),
		delayed.NewGoTask("visit", where, 0, nil, nil, at, []string{"secret"}),
		delayed.NewGoTask("visit", where, 0, nil, nil),
	})

	_, err := b.Conn.Do("HSET", b.Name+"_functions", worker.ID(), pythonListing)
	b.Must(err)
	py := func(name string, kwargs map[string]any, args ...any) *delayed.Task {
		return delayed.NewPyTask("post.tasks:"+name, args, kwargs)
	}
	edits([]*delayed.Task{
		py("send", nil, "ann"),
		py("send", map[string]any{"to": "ann", "times": 2}),
		py("send", map[string]any{"quiet": true}, "ann", 3),
		py("join", nil), py("join", nil, "a", "b"),
		py("other", nil, 1, 2, 3),
	}, []*delayed.Task{
		py("send", nil),
		py("send", map[string]any{"times": 2}),
		py("send", nil, 1),
		py("send", nil, "ann", 1, 2),
		py("send", map[string]any{"to": "ann"}, "secret"),
		py("send", map[string]any{"to": 1}),
		py("join", nil, "a", 1),
	})
}

// publish has a worker publish a listing of functions.
func (b *bench) publish(worker, listing string) {
	b.T.Helper()
	b.Do("SADD", b.Name+"_workers", worker)
	b.Do("HSET", b.Name+"_functions", worker, listing)
	b.T.Cleanup(func() { b.Do("DEL", b.Name+"_workers", b.Name+"_functions") })
}

// TestShapesOfParameters looks at the parameters of a published function, with types that contain themselves.
func TestShapesOfParameters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(digest)
	var digests []inspect.Function
	b.Until("the worker has published its function", func() bool {
		functions, err := b.ins.Functions(bg, queueName)
		b.Must(err)
		digests = functions
		return len(functions) > 0
	})
	users, counts := digests[0].Parameters[0].Shape, digests[0].Parameters[1].Shape
	if users.Kind != "list" || users.Elem.Kind != "struct" || len(users.Elem.Fields) != 2 ||
		!strings.HasSuffix(users.Elem.Name, ".User") || users.Elem.Fields[1].Name != "Age" ||
		users.Elem.Fields[1].Shape.Kind != "int64" {
		t.Errorf("found %+v of %+v", users, users.Elem)
	}
	if counts.Kind != "map" || counts.Key.Kind != "string" || counts.Elem.Kind != "int64" {
		t.Errorf("found %+v", counts)
	}
}

// TestShapesOfOthers reads listings that no worker of this version writes.
func TestShapesOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := func(types string) string {
		return `{"version": 1, "functions": [{"path": "a.f", "parameters": [{"go": "T", "type": {"kind": "ref",
			"name": "T"}}]}], "types": {` + types + `}}`
	}
	b.publish("w1", of(`"T": {"kind": "struct", "fields": [{"name": "next", "type": {"kind": "ref", "name": "T"}}]}`))
	b.publish("w2", of(`"T": {"kind": "struct", "fields": [{"name": "more", "type": {"kind": "ref", "name": "T"}}]}`))
	b.publish("w3", of(`"T": {"kind": "ref", "name": "T"}`))
	b.publish("w4", of(``))
	functions, err := b.ins.Functions(bg, queueName)
	b.Must(err)
	if len(functions) != 3 {
		t.Fatalf("%d versions, expected 3: two with other structs, two alike that nobody understands", len(functions))
	}
	for i, name := range []string{"next", "more"} {
		s := functions[i].Parameters[0].Shape
		if s.Kind != "struct" || len(s.Fields) != 1 || s.Fields[0].Name != name || s.Fields[0].Shape != s {
			t.Errorf("found %s %q, %d fields: expected a struct that contains itself", s.Kind, s.Name, len(s.Fields))
		}
	}
	if s := functions[2].Parameters[0].Shape; s.Kind != "any" || len(functions[2].Workers) != 2 {
		t.Errorf("found %s of %v, expected anything", s.Kind, functions[2].Workers)
	}
}
