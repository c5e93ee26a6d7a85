package delayed

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestParkedList reads parked tasks page by page, and changes nothing.
func TestParkedList(t *testing.T) {
	server := redistest.Shared(t)
	rdb, err := Dial(server.URL())
	name := redistest.Name(t)
	s := newStore(sourceOf(t, rdb, err), "", name)
	seed := redistest.State{
		"_parked": redistest.Zset{"a": past, "b": round, "c": later, "d": later + 1},
		"_tasks":  redistest.Hash{"a": "m a", "c": "m c", "d": "m d"}, "_info": redistest.Hash{"a": "i a", "b": "i b", "d": "i d"},
	}
	redistest.Seed(t, server.Dial(t), name, seed)
	a, b, c, d := listed{filed{"a", []byte("i a")}, past}, listed{filed{"b", []byte("i b")}, round}, listed{filed{"c", nil}, later}, listed{filed{"d", []byte("i d")}, later + 1}
	for _, test := range []struct {
		offset, n int
		want      []listed
	}{{0, 10, []listed{a, b, c, d}}, {0, 1, []listed{a}}, {1, 2, []listed{b, c}}, {3, 9, []listed{d}}, {4, 1, nil}, {9, 1, nil}} {
		page, total, err := s.filedList(bg, s.keys.parked, test.offset, test.n)
		if err != nil || total != 4 || !reflect.DeepEqual(page, test.want) {
			t.Errorf("%d from %d: expected %v of 4, found %v of %d, %v", test.n, test.offset, test.want, page, total, err)
		}
	}
	if diff := redistest.Diff(redistest.Dump(t, server.Dial(t), name), seed); diff != "" {
		t.Errorf("reading has changed something: %s", diff)
	}
	none := newStore(s.src, "", name+"-none")
	if page, total, err := none.filedList(bg, none.keys.parked, 0, 10); err != nil || total != 0 || page != nil {
		t.Errorf("nothing parked: found %v of %d, %v", page, total, err)
	}
	for _, key := range []string{"_info", "_parked"} {
		server.Do(t, "SET", name+key, "x")
		if _, _, err := s.filedList(bg, s.keys.parked, 0, 1); err == nil {
			t.Errorf("%s of the wrong type gave no error", key)
		}
	}
}

func TestParkedTasksAreVisible(t *testing.T) {
	b := newBench(t)
	w := b.work(b.config())
	before := b.q.store.now().Truncate(time.Millisecond).Add(-time.Second)
	ref := b.delay(b.fn("unknown", func(int) {}), 1)
	b.until("it is parked", func() bool { return b.size("_parked") == 1 })
	parked := redisTime(t, b.conn) // tasks that are parked in the same millisecond are in the order of their ids
	b.until("the clock has gone on", func() bool { return redisTime(t, b.conn) > parked })
	if _, err := b.q.Enqueue(t.Context(), NewPyTask("m:f", nil, nil)); err != nil {
		t.Fatal(err)
	}
	b.until("both are parked", func() bool { return b.size("_parked") == 2 })
	page, total, err := b.q.Parked(t.Context(), 0, 10)
	if err != nil || total != 2 || len(page) != 2 {
		t.Fatalf("found %+v of %d, %v", page, total, err)
	}
	task := page[0]
	if task.ID != ref.ID() || task.State != StateParked || task.Function != b.name+".unknown" || task.Reason != "unknown function" || task.Worker != w.ID() ||
		task.At.Before(before) || task.Due.Sub(task.At) < parkedLife-time.Minute || task.Due.Sub(task.At) > parkedLife+time.Minute {
		t.Errorf("found %+v", task)
	}
	if page[1].Function != "m:f" || page[1].Reason != "python" {
		t.Errorf("found %+v", page[1])
	}
	if page, total, err = b.q.Parked(t.Context(), 1, 1); err != nil || total != 2 || len(page) != 1 || page[0].Function != "m:f" {
		t.Errorf("second page: found %+v of %d, %v", page, total, err)
	}
	for _, wrong := range [][2]int{{-1, 1}, {0, 0}, {0, maxListPage + 1}} {
		if _, _, err := b.q.Parked(t.Context(), wrong[0], wrong[1]); err == nil || !strings.Contains(err.Error(), "1 to 1000") {
			t.Errorf("Parked(%d, %d): found %v", wrong[0], wrong[1], err)
		}
	}
}

// TestMoverHurriesInADeploy: once it has released parked tasks, more may come soon.
func TestMoverHurriesInADeploy(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() {})
	w, err := NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	m := w.groups[0].mover
	look := func(least, most time.Duration) {
		t.Helper()
		if next, err := m.look(t.Context()); err != nil || next < least || next > most {
			t.Errorf("next look in %v, %v, expected %v to %v", next, err, least, most)
		}
	}
	look(checkInterval/2, checkInterval)
	info := taskInfo{reason: "unknown function", function: b.name + ".f"}
	redistest.Seed(t, b.conn, b.name, redistest.State{
		"_parked": redistest.Zset{"x": later}, "_tasks": redistest.Hash{"x": "m"}, "_info": redistest.Hash{"x": string(info.encode())},
	})
	look(0, 2*hasteInterval)
	look(0, 2*hasteInterval) // nothing is parked now
	m.haste = time.Now()
	look(checkInterval/2, checkInterval)
}
