package inspect_test

import (
	"testing"

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
