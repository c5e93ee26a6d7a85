package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

var condemnCases = storeTable{script: "condemn", cases: []storeCase{
	{
		name: "due, in another set",
		seed: filedAs("_retry", redistest.Zset{"x": past, "y": later}),
		do: func(s *Store) (any, error) {
			return s.Condemn(bg, ShelfRetry, time.Hour, []Filed{
				{ID: "x", Info: []byte("why")}, {ID: "y", Info: []byte("why")},
			})
		},
		result: 1,
		want: redistest.State{
			"_retry": redistest.Zset{"y": later}, "_archived": redistest.Zset{"x": fromNow(time.Hour)},
			"_tasks": redistest.Hash{"x": "m x", "y": "m y"}, "_info": redistest.Hash{"x": "why", "y": "i y"},
			testDay: counted(redistest.Hash{"archived": "1"}),
		},
	},
	{
		name:   "some",
		seed:   filedAs("_parked", redistest.Zset{"x": past, "y": past, "z": past}),
		do:     condemnWith(Filed{ID: "x", Info: []byte("why")}, Filed{ID: "z", Info: []byte("why too")}),
		result: 2,
		want: redistest.State{
			"_parked":   redistest.Zset{"y": past},
			"_archived": redistest.Zset{"x": fromNow(time.Hour), "z": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"x": "m x", "y": "m y", "z": "m z"},
			"_info":     redistest.Hash{"x": "why", "y": "i y", "z": "why too"},
			testDay:     counted(redistest.Hash{"archived": "2"}),
		},
	},
	{
		name: "their ids and locks are free, those of others are not",
		seed: both(filedAs("_parked", redistest.Zset{"x": past, "y": later}),
			locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"})),
		do: condemnWith(Filed{ID: "x", Info: []byte("why"), Lock: "k:a"},
			Filed{ID: "y", Info: []byte("why too"), Lock: "k:b"}),
		result: 1,
		want: both(redistest.State{
			"_parked": redistest.Zset{"y": later}, "_archived": redistest.Zset{"x": fromNow(time.Hour)},
			"_tasks": redistest.Hash{"x": "m x", "y": "m y"}, "_info": redistest.Hash{"x": "why", "y": "i y"},
			testDay: counted(redistest.Hash{"archived": "1"}),
		}, locked(later, redistest.Hash{"k:b": "y"})),
	},
	{
		name:   "one that is not parked any more",
		seed:   redistest.State{"": redistest.List{"m x"}, "_noti": ones(1)},
		do:     condemnWith(Filed{ID: "x", Info: []byte("why")}),
		result: 0,
	},
	{
		name: "counters exist",
		seed: with(filedAs("_parked", redistest.Zset{"x": past}), redistest.State{
			testDay: redistest.Expiring{Value: redistest.Hash{"archived": "4"}, For: time.Hour},
		}),
		do:     condemnWith(Filed{ID: "x", Info: []byte("why")}),
		result: 1,
		want: redistest.State{
			"_archived": redistest.Zset{"x": fromNow(time.Hour)}, "_tasks": redistest.Hash{"x": "m x"},
			"_info": redistest.Hash{"x": "why"},
			testDay: redistest.Expiring{Value: redistest.Hash{"archived": "5"}, For: time.Hour},
		},
	},
}}

var trimCases = storeTable{script: "trim", cases: []storeCase{
	{
		name:   "nothing there",
		do:     trimWith(10, 10),
		result: 0,
	},
	{
		name:   "neither old nor too many",
		seed:   filedAs("_archived", redistest.Zset{"x": later, "y": later}),
		do:     trimWith(2, 10),
		result: 0,
	},
	{
		name:   "too old",
		seed:   filedAs("_archived", redistest.Zset{"x": past, "y": later, "z": past + 1}),
		do:     trimWith(10, 10),
		result: 2,
		want: with(filedAs("_archived", redistest.Zset{"y": later}),
			redistest.State{testDay: counted(redistest.Hash{"trimmed": "2"})}),
	},
	{
		name:   "too old, no more than asked for",
		seed:   filedAs("_archived", redistest.Zset{"x": past, "y": later, "z": past + 1}),
		do:     trimWith(10, 1),
		result: 1,
		want: with(filedAs("_archived", redistest.Zset{"y": later, "z": past + 1}),
			redistest.State{testDay: counted(redistest.Hash{"trimmed": "1"})}),
	},
	{
		name:   "too many: the first to expire go",
		seed:   filedAs("_archived", redistest.Zset{"x": later, "y": later + 1, "z": later + 2}),
		do:     trimWith(1, 10),
		result: 2,
		want: with(filedAs("_archived", redistest.Zset{"z": later + 2}),
			redistest.State{testDay: counted(redistest.Hash{"trimmed": "2"})}),
	},
	{
		name:   "too many, no more than asked for",
		seed:   filedAs("_archived", redistest.Zset{"x": later, "y": later + 1, "z": later + 2}),
		do:     trimWith(0, 1),
		result: 1,
		want: with(filedAs("_archived", redistest.Zset{"y": later + 1, "z": later + 2}),
			redistest.State{testDay: counted(redistest.Hash{"trimmed": "1"})}),
	},
	{
		name: "tasks of other sets stay",
		seed: redistest.State{
			"_archived": redistest.Zset{"x": past}, "_retry": redistest.Zset{"y": past},
			"_tasks": redistest.Hash{"x": "m", "y": "m"},
			"_info":  redistest.Hash{"x": "i", "y": "i"},
		},
		do:     trimWith(0, 10),
		result: 1,
		want: redistest.State{
			"_retry": redistest.Zset{"y": past}, "_tasks": redistest.Hash{"y": "m"}, "_info": redistest.Hash{"y": "i"},
			testDay: counted(redistest.Hash{"trimmed": "1"}),
		},
	},
}}

// TestParkedPage reads parked tasks page by page.
func TestParkedPage(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	s := NewStore(dialled(t, server.URL()), "", name)
	seed := redistest.State{
		"_parked": redistest.Zset{"a": past, "b": past + 1, "c": later, "d": later + 1},
		"_tasks":  redistest.Hash{"a": "m a", "c": "m c", "d": "m d"},
		"_info":   redistest.Hash{"a": "i a", "b": "i b", "d": "i d"},
	}
	redistest.Seed(t, server.Dial(t), name, seed)
	for _, c := range []struct {
		offset, n int
		expired   bool
		want      string
	}{
		{0, 2, false, "c= d=i d "},
		{2, 2, false, "a=i a b=i b "},
		{3, 9, false, "a=i a "},
		{4, 9, false, ""},
		{0, 9, true, "a=i a b=i b "},
		{1, 9, true, "b=i b "},
		{0, 1, true, "a=i a "},
	} {
		page, err := s.ParkedPage(bg, c.offset, c.n, c.expired)
		var text strings.Builder
		for _, f := range page {
			fmt.Fprintf(&text, "%s=%s ", f.ID, f.Info)
		}
		if err != nil || text.String() != c.want {
			t.Errorf("%d from %d, expired %v: expected %q, found %q, %v", c.n, c.offset, c.expired, c.want, &text, err)
		}
	}
	if _, err := redis.String(server.Do(t, "SET", name+"_info", "x"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ParkedPage(bg, 0, 1, false); err == nil {
		t.Error("a key of the wrong type gave no error")
	}
}
