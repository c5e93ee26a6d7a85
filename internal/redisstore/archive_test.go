package redisstore

import "github.com/godelayed/delayed/internal/redistest"

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
