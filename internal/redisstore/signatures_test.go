package redisstore

import (
	"github.com/godelayed/delayed/internal/redistest"
)

func publishW(s *Store) (any, error) { return s.Publish(bg, "w", []byte("new")) }

var publishCases = storeTable{script: "publish", cases: []storeCase{
	{
		name:   "first",
		seed:   redistest.State{"_worker:w": alive},
		do:     publishW,
		result: true,
		want:   redistest.State{"_worker:w": alive, "_functions": redistest.Hash{"w": "new"}},
	},
	{
		name:   "again, beside others",
		seed:   redistest.State{"_worker:w": alive, "_functions": redistest.Hash{"w": "old", "v": "g"}},
		do:     publishW,
		result: true,
		want:   redistest.State{"_worker:w": alive, "_functions": redistest.Hash{"w": "new", "v": "g"}},
	},
	{
		name:   "not registered",
		seed:   redistest.State{"_functions": redistest.Hash{"v": "g"}},
		do:     publishW,
		result: false,
	},
}}
