package inspect_test

import (
	"strings"
	"testing"

	"github.com/godelayed/delayed/inspect"
)

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
