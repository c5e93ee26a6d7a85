package inspect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

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
