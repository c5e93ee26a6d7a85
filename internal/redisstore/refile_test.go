package redisstore

import (
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

func rerunWith(tasks ...Rerun) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Rerun(bg, tasks) }
}

// again makes a task run again that filedAs has stored.
func again(id string) Rerun {
	return Rerun{Name: id, ID: id, Old: []byte("m " + id), New: []byte("new " + id)}
}

var rerunCases = storeTable{script: "rerun", cases: []storeCase{
	{
		name: "at the end of the queue, in order",
		seed: with(filedAs("_archived", redistest.Zset{"x": later, "y": past, "z": later}),
			redistest.State{"": redistest.List{"p"}, "_noti": ones(1)}),
		do:     rerunWith(again("x"), again("y")),
		result: []int{1, 1},
		want: with(filedAs("_archived", redistest.Zset{"z": later}), redistest.State{
			"": redistest.List{"p", "new x", "new y"}, "_noti": ones(3),
		}),
	},
	{
		name: "its id is its own again",
		seed: filedAs("_archived", redistest.Zset{"x": later, "y#2": later}),
		do: rerunWith(Rerun{Name: "x", ID: "x", Old: []byte("m x"), New: []byte("new x"), Own: true},
			Rerun{Name: "y#2", ID: "y", Old: []byte("m y#2"), New: []byte("new y"), Own: true}),
		result: []int{1, 1},
		want: both(locked(idLife, redistest.Hash{"#x": "x", "#y": "y"}),
			redistest.State{"": redistest.List{"new x", "new y"}, "_noti": ones(2)}),
	},
	{
		name:   "the last one",
		seed:   filedAs("_archived", redistest.Zset{"x": later}),
		do:     rerunWith(again("x")),
		result: []int{1},
		want:   redistest.State{"": redistest.List{"new x"}, "_noti": ones(1)},
	},
	{
		name: "not archived, another message, twice",
		seed: filedAs("_archived", redistest.Zset{"x": later, "y": later}),
		do: rerunWith(again("w"), Rerun{Name: "x", ID: "x", Old: []byte("other"), New: []byte("new")}, again("y"),
			again("y")),
		result: []int{0, -1, 1, 0},
		want: with(filedAs("_archived", redistest.Zset{"x": later}),
			redistest.State{"": redistest.List{"new y"}, "_noti": ones(1)}),
	},
	{
		name:   "filed in another set",
		seed:   filedAs("_parked", redistest.Zset{"x": later}),
		do:     rerunWith(again("x")),
		result: []int{0},
	},
	{
		name: "under another name, and to be canceled",
		seed: with(filedAs("_archived", redistest.Zset{"x#2": later}),
			redistest.State{"_revoked": redistest.Zset{"x": later, "x#2": later, "y": later}}),
		do:     rerunWith(Rerun{Name: "x#2", ID: "x", Old: []byte("m x#2"), New: []byte("new")}),
		result: []int{1},
		want: redistest.State{
			"": redistest.List{"new"}, "_noti": ones(1),
			"_revoked": redistest.Zset{"x#2": later, "y": later},
		},
	},
}}

// refiled returns a task to refile, whose message is "m " and its id.
func refiled(id string) Refiled {
	return Refiled{ID: id, Old: []byte("m " + id), New: []byte("m " + id), Until: time.UnixMilli(later)}
}

func refileWith(from, to Shelf, tasks ...Refiled) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		answers, err := s.Refile(bg, from, to, false, tasks)
		return fmt.Sprint(answers), err
	}
}

var refileCases = storeTable{script: "refile", cases: []storeCase{
	{
		name: "another time", seed: filedAs("_scheduled", redistest.Zset{"x": past, "y": past}),
		do: refileWith(ShelfScheduled, ShelfScheduled, refiled("x")), result: "[1]",
		want: both(filedAs("_scheduled", redistest.Zset{"x": later, "y": past}), redistest.State{"_wake": ones(1)}),
	},
	{
		name: "another message", seed: filedAs("_retry", redistest.Zset{"x": later}),
		do: refileWith(ShelfRetry, ShelfRetry, Refiled{
			ID: "x", Old: []byte("m x"), New: []byte("new"), Until: time.UnixMilli(later),
		}), result: "[1]",
		want: redistest.State{
			"_retry": redistest.Zset{"x": later}, "_tasks": redistest.Hash{"x": "new"},
			"_info": redistest.Hash{"x": "i x"}, "_wake": ones(1),
		},
	},
	{
		name: "later: its locks last as much longer",
		seed: both(filedAs("_retry", redistest.Zset{"x": later, "y": later}),
			locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"})),
		do: refileWith(ShelfRetry, ShelfRetry, Refiled{
			ID: "x", Old: []byte("m x"), New: []byte("m x"), Until: time.UnixMilli(later + 1000), Lock: "k:a",
		}, Refiled{
			ID: "y", Old: []byte("m y"), New: []byte("m y"), Until: time.UnixMilli(later - 1000), Lock: "k:b",
		}),
		result: "[1 1]",
		want: both(filedAs("_retry", redistest.Zset{"x": later + 1000, "y": later - 1000}), redistest.State{
			"_wake": ones(1),
		}, locked(later+1000, redistest.Hash{"k:a": "x", "#x": "x"}), locked(later, redistest.Hash{"k:b": "y"})),
	},
	{
		name: "archived: its locks are free",
		seed: both(filedAs("_parked", redistest.Zset{"x": past, "y": past}),
			locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"})),
		do: refileWith(ShelfParked, ShelfArchived, Refiled{
			ID: "x", Old: []byte("m x"), New: []byte("m x"), Until: time.UnixMilli(later), Info: []byte("why"),
			Lock: "k:a",
		}), result: "[1]",
		want: both(redistest.State{
			"_parked": redistest.Zset{"y": past}, "_archived": redistest.Zset{"x": later},
			"_tasks": redistest.Hash{"x": "m x", "y": "m y"}, "_info": redistest.Hash{"x": "why", "y": "i y"},
			testDay: counted(redistest.Hash{"archived": "1"}),
		}, locked(later, redistest.Hash{"k:b": "y"})),
	},
	{
		name: "archived on its way: it is not counted", seed: filedAs("_parked", redistest.Zset{"x": past}),
		do: func(s *Store) (any, error) {
			answers, err := s.Refile(bg, ShelfParked, ShelfArchived, true, []Refiled{refiled("x")})
			return fmt.Sprint(answers), err
		}, result: "[1]",
		want: filedAs("_archived", redistest.Zset{"x": later}),
	},
	{
		name: "under a new name",
		seed: filedAs("_archived", redistest.Zset{"x": later, "y": later, "z": later}),
		do: refileWith(ShelfArchived, ShelfArchived, Refiled{
			ID: "x", NewID: "x#moving", Old: []byte("m x"), New: []byte("m x"), Until: time.UnixMilli(later),
		}, Refiled{
			ID: "x", NewID: "x#moving", Old: []byte("m x"), New: []byte("m x"), Until: time.UnixMilli(later),
		}, Refiled{ID: "y", NewID: "z", Old: []byte("m y"), New: []byte("m y"), Until: time.UnixMilli(later)}),
		result: "[1 0 -1]",
		want: both(redistest.State{
			"_archived": redistest.Zset{"x#moving": later, "y": later, "z": later},
			"_tasks":    redistest.Hash{"x#moving": "m x", "y": "m y", "z": "m z"},
			"_info":     redistest.Hash{"y": "i y", "z": "i z"},
		}),
	},
	{
		name: "gone, changed, and twice", seed: filedAs("_retry", redistest.Zset{"x": past, "y": past}),
		do: refileWith(ShelfRetry, ShelfRetry, refiled("z"),
			Refiled{ID: "y", Old: []byte("other"), New: []byte("new"), Until: time.UnixMilli(later)}, refiled("x"),
			refiled("x")),
		result: "[0 -1 1 0]",
		want:   both(filedAs("_retry", redistest.Zset{"x": later, "y": past}), redistest.State{"_wake": ones(1)}),
	},
	{
		name: "none of them", seed: filedAs("_retry", redistest.Zset{"x": past}),
		do: refileWith(ShelfScheduled, ShelfArchived, refiled("x")), result: "[0]",
	},
}}
