package redisstore

import (
	"reflect"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestParkedList reads parked tasks page by page, and changes nothing.
func TestParkedList(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	s := NewStore(dialled(t, server.URL()), "", name)
	seed := redistest.State{
		"_parked": redistest.Zset{"a": past, "b": round, "c": later, "d": later + 1},
		"_tasks":  redistest.Hash{"a": "m a", "c": "m c", "d": "m d"},
		"_info":   redistest.Hash{"a": "i a", "b": "i b", "d": "i d"},
	}
	redistest.Seed(t, server.Dial(t), name, seed)
	a, b, c, d := Listed{Filed{ID: "a", Info: []byte("i a")}, past}, Listed{Filed{ID: "b", Info: []byte("i b")}, round},
		Listed{Filed{ID: "c", Info: nil}, later}, Listed{Filed{ID: "d", Info: []byte("i d")}, later + 1}
	for _, test := range []struct {
		offset, n int
		want      []Listed
	}{
		{0, 10, []Listed{a, b, c, d}},
		{0, 1, []Listed{a}},
		{1, 2, []Listed{b, c}},
		{3, 9, []Listed{d}},
		{4, 1, nil},
		{9, 1, nil},
	} {
		page, total, err := s.FiledList(bg, ShelfParked, test.offset, test.n)
		if err != nil || total != 4 || !reflect.DeepEqual(page, test.want) {
			t.Errorf("%d from %d: expected %v of 4, found %v of %d, %v", test.n, test.offset, test.want, page, total,
				err)
		}
	}
	if diff := redistest.Diff(redistest.Dump(t, server.Dial(t), name), seed); diff != "" {
		t.Errorf("reading has changed something: %s", diff)
	}
	none := NewStore(s.Src, "", name+"-none")
	if page, total, err := none.FiledList(bg, ShelfParked, 0, 10); err != nil || total != 0 || page != nil {
		t.Errorf("nothing parked: found %v of %d, %v", page, total, err)
	}
	for _, key := range []string{"_info", "_parked"} {
		server.Do(t, "SET", name+key, "x")
		if _, _, err := s.FiledList(bg, ShelfParked, 0, 1); err == nil {
			t.Errorf("%s of the wrong type gave no error", key)
		}
	}
}
