package delayed

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
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
