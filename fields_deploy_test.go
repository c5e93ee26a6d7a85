package delayed_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/godelayed/delayed"
)

// TestRollingDeployOfAStruct: a struct has three versions. The second adds a field and changes the order; the third
// renames one with a tag, makes one optional and adds another. Each task runs once, on a worker that has its fields,
// whichever worker claims it first.
func TestRollingDeployOfAStruct(t *testing.T) {
	d := &deploy{bench: newBench(t), runs: map[string]map[int64]int{}}
	name := delayed.Name(d.Name + ".Place")
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
	f1 := delayed.Func(func(o order1) { ran("v1", o.ID, o.Count) }, name)
	f2 := delayed.Func(func(o order2) { ran("v2", o.ID, o.Count) }, name)
	f3 := delayed.Func(func(o order3) { ran("v3", o.ID, o.Items) }, name)
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
		if task.Reason != "unknown fields" || task.Function != d.Name+".Place" {
			t.Errorf("parked: %+v", task)
		}
		_, fields, _ := strings.Cut(task.Error, "(argument.field): ")
		said[strings.SplitN(fields, ";", 2)[0]]++
	}
	if said["1.Note"] != 10 || said["1.Note, 1.Lines"] != 10 {
		t.Errorf("the fields that are told: %v", said)
	}
	two := d.work(d.config(), f2)
	d.settled(10) // those of the second version ran; the first worker may have parked some of them again
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

// The structs that the versions of a program send in TestRollingDeployOfAStruct.
type (
	order1 struct{ ID, Count int64 }
	order2 struct {
		Note  string
		Count int64 // has another position
		ID    int64
	}
	order3 struct {
		ID    int64
		Items int64 `msgpack:"Count"` // has another name in Go
		Note  *string
		Lines []struct{ SKU string }
	}
)
