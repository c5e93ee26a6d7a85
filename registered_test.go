package delayed_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestWorkerFunctions(t *testing.T) {
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{redistest.Name(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := functionsOf(w); len(got) != 0 {
		t.Errorf("nothing is registered, found %v", got)
	}
	late := func(context.Context, int, string, ...bool) (chan int, error) { return nil, nil }
	if err := w.Register(fnTwo, delayed.Func(late, delayed.Name("late"), delayed.Alias("later"), delayed.Optional(2)),
		delayed.Func(func() []int { return nil }, delayed.Name("list"))); err != nil {
		t.Fatal(err)
	}
	got := functionsOf(w)
	for i, name := range []string{
		testPath + "fnTwo", testPath + "TestWorkerFunctions.func1",
		testPath + "TestWorkerFunctions.func2",
	} {
		if f := got[i].Func; f == nil || f.Name() != name {
			t.Errorf("function %d is %v, expected %s", i, f, name)
		}
		got[i].Func = nil
	}
	integer, text := reflect.TypeFor[int](), reflect.TypeFor[string]()
	want := []function.Info{
		{Path: testPath + "fnTwo", Params: []reflect.Type{reflect.TypeFor[int64](), text}},
		{
			Path: "late", Aliases: []string{"later"}, Params: []reflect.Type{integer, text, reflect.TypeFor[[]bool]()},
			Variadic: true, Optional: 2,
		},
		{Path: "list", Result: reflect.TypeFor[[]int]()},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, expected %+v", got, want)
	}
}
