package redisstore

import (
	"fmt"

	"github.com/godelayed/delayed/internal/redistest"
)

func deleteOnly(which Deleting, ids ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Delete(bg, which, ids) }
}

func deleteWith(ids ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Delete(bg, DeleteBoth, ids) }
}

var deleteCases = storeTable{script: "delete", cases: []storeCase{
	{
		name:   "archived",
		seed:   filedAs("_archived", redistest.Zset{"x": later, "y": past, "z": later}),
		do:     deleteWith("x", "y", "w", "x"),
		result: 2,
		want:   filedAs("_archived", redistest.Zset{"z": later}),
	},
	{
		name: "completed; what is reported of another stays",
		seed: redistest.State{
			"_completed": redistest.Zset{"x": later},
			"_results":   redistest.Hash{"x": "r", "y": "50 %"},
		},
		do:     deleteWith("x", "y"),
		result: 1,
		want:   redistest.State{"_results": redistest.Hash{"y": "50 %"}},
	},
	{
		name: "archived and completed",
		seed: with(filedAs("_archived", redistest.Zset{"x": later}),
			redistest.State{"_completed": redistest.Zset{"x": later}, "_results": redistest.Hash{"x": "r"}}),
		do:     deleteWith("x"),
		result: 2,
		want:   redistest.State{},
	},
	{
		name: "archived and completed, only the archived one",
		seed: with(filedAs("_archived", redistest.Zset{"x": later}),
			redistest.State{"_completed": redistest.Zset{"x": later}, "_results": redistest.Hash{"x": "r"}}),
		do:     deleteOnly(DeleteArchived, "x"),
		result: 1,
		want: redistest.State{
			"_completed": redistest.Zset{"x": later}, "_results": redistest.Hash{"x": "r"},
		},
	},
	{
		name: "archived and completed, only the completed one",
		seed: with(filedAs("_archived", redistest.Zset{"x": later}),
			redistest.State{"_completed": redistest.Zset{"x": later}, "_results": redistest.Hash{"x": "r"}}),
		do:     deleteOnly(DeleteCompleted, "x"),
		result: 1,
		want:   filedAs("_archived", redistest.Zset{"x": later}),
	},
	{
		name: "kept for long enough: deleted, and taken for none",
		seed: with(filedAs("_retry", redistest.Zset{"x": later}), redistest.State{
			"_completed": redistest.Zset{"x": past, "y": round}, "_results": redistest.Hash{"x": "r", "y": "r"},
		}),
		do:     deleteWith("x", "y"),
		result: 1,
		want:   filedAs("_retry", redistest.Zset{"x": later}),
	},
	{name: "filed in another set", seed: filedAs("_retry", redistest.Zset{"x": later}), do: deleteWith("x"), result: 0},
}}

// manyOver are 205 completed tasks whose time is over, five more than one call deletes.
var manyOver = func() redistest.State {
	set, results := redistest.Zset{}, redistest.Hash{}
	for i := range 205 {
		id := fmt.Sprintf("old%03d", i)
		set[id], results[id] = int64(past+i), "r"
	}
	return redistest.State{"_completed": set, "_results": results}
}()

func expireWith(n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Expire(bg, n) }
}

var expireCases = storeTable{script: "expire", cases: []storeCase{
	{name: "nothing", do: expireWith(10), result: 0},
	{
		name: "nothing is over, and reports stay",
		seed: redistest.State{
			"_completed": redistest.Zset{"x": later, "y": round},
			"_results":   redistest.Hash{"x": "r", "y": "r", "a": "50 %"},
		},
		do:     expireWith(10),
		result: 0,
	},
	{
		name: "what is over goes",
		seed: redistest.State{
			"_completed": redistest.Zset{"x": later, "o": past, "p": past + 1},
			"_results":   redistest.Hash{"x": "r", "o": "r", "p": "r", "a": "50 %"},
		},
		do:     expireWith(10),
		result: 2,
		want: redistest.State{
			"_completed": redistest.Zset{"x": later},
			"_results":   redistest.Hash{"x": "r", "a": "50 %"},
		},
	},
	{
		name:   "all of it",
		seed:   redistest.State{"_completed": redistest.Zset{"o": past}, "_results": redistest.Hash{"o": "r"}},
		do:     expireWith(10),
		result: 1,
		want:   redistest.State{},
	},
	{
		name: "page by page",
		seed: redistest.State{
			"_completed": redistest.Zset{"o": past, "p": past + 1},
			"_results":   redistest.Hash{"o": "r", "p": "r"},
		},
		do:     expireWith(1),
		result: 1,
		want:   redistest.State{"_completed": redistest.Zset{"p": past + 1}, "_results": redistest.Hash{"p": "r"}},
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

func trimWith(most, n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Trim(bg, most, n) }
}
