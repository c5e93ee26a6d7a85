package redisstore

import "github.com/godelayed/delayed/internal/redistest"

var progressCases = storeTable{script: "progress", cases: []storeCase{
	{
		name: "reported", seed: working(nil), do: progressWith("3-1", "x", "50 %"), result: true,
		want: working(redistest.State{"_results": redistest.Hash{"x": "50 %"}}),
	},
	{
		name: "reported again", seed: working(redistest.State{"_results": redistest.Hash{"x": "40 %", "y": "r"}}),
		do:     progressWith("3-1", "x", "50 %"),
		result: true, want: working(redistest.State{"_results": redistest.Hash{"x": "50 %", "y": "r"}}),
	},
	{
		name: "the claim does not stand", seed: working(redistest.State{"_results": redistest.Hash{"x": "40 %"}}),
		do:     progressWith("2-1", "x", "50 %"),
		result: false,
	},
	{
		name: "what was kept of an older task makes place",
		seed: working(redistest.State{
			"_results":   redistest.Hash{"x": "r", "y": "r"},
			"_completed": redistest.Zset{"x": later, "y": later},
		}),
		do: progressWith("3-1", "x", "50 %"), result: true,
		want: working(redistest.State{
			"_results":   redistest.Hash{"x": "50 %", "y": "r"},
			"_completed": redistest.Zset{"y": later},
		}),
	},
	{
		name: "forgotten", seed: working(redistest.State{"_results": redistest.Hash{"x": "50 %", "y": "r"}}),
		do:     progressWith("3-1", "x", ""),
		result: true, want: working(redistest.State{"_results": redistest.Hash{"y": "r"}}),
	},
	{
		name: "forgotten, but the claim does not stand",
		seed: working(redistest.State{"_results": redistest.Hash{"x": "50 %"}}), do: progressWith("2-1", "x", ""),
		result: false,
	},
	{
		name:   "not forgotten: what is kept of an older task",
		seed:   working(redistest.State{"_results": redistest.Hash{"x": "r"}, "_completed": redistest.Zset{"x": past}}),
		do:     progressWith("3-1", "x", ""),
		result: true,
	},
}}

func progressWith(token, id, report string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Progress(bg, "w", token, id, []byte(report)) }
}
