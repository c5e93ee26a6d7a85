package redisstore

import (
	"fmt"

	"github.com/godelayed/delayed/internal/redistest"
)

func unlockOne(id string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		left, replaced, err := s.Unlock(bg, id)
		return fmt.Sprintf("left %v, replaced %v", left, replaced), err
	}
}

var unlockCases = storeTable{script: "unlock", cases: []storeCase{
	{
		name:   "its lock, the last",
		seed:   locked(later, redistest.Hash{"k:a": "x"}),
		do:     unlockOne("x"),
		result: "left false, replaced false",
		want:   redistest.State{},
	},
	{
		name:   "its lock, not its id",
		seed:   locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"}),
		do:     unlockOne("x"),
		result: "left true, replaced false",
		want:   locked(later, redistest.Hash{"#x": "x", "k:b": "y"}),
	},
	{
		name:   "nothing: it was freed before",
		seed:   locked(later, redistest.Hash{"k:a": "y"}),
		do:     unlockOne("x"),
		result: "left false, replaced false",
	},
	{
		name: "a lock that has passed to another task",
		seed: both(locked(later, redistest.Hash{"k:a": "y"}), redistest.State{
			"_locks": redistest.Hash{"@x": "k:a"}, "_locked": redistest.Zset{"@x": past},
		}),
		do:     unlockOne("x"),
		result: "left false, replaced false",
		want:   locked(later, redistest.Hash{"k:a": "y"}),
	},
	{
		name: "replaced",
		seed: both(locked(later, redistest.Hash{"k:a": "y"}),
			redistest.State{"_revoked": redistest.Zset{"x": later}}),
		do:     unlockOne("x"),
		result: "left false, replaced true",
	},
	{
		name: "left the queue",
		seed: both(locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"}),
			redistest.State{"_revoked": redistest.Zset{"x": later}}),
		do:   disownOne("x"),
		want: both(locked(later, redistest.Hash{"k:b": "y"}), redistest.State{"_revoked": redistest.Zset{"x": later}}),
	},
	{
		name: "left the queue: its lock has passed to another task",
		seed: both(locked(later, redistest.Hash{"k:b": "y", "#s": "s"}), strayHolder),
		do:   disownOne("s"),
		want: locked(later, redistest.Hash{"k:b": "y"}),
	},
}}

func disownOne(id string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return nil, s.FreeForwarded(bg, id) }
}

func lapseWith(n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Lapse(bg, n) }
}

var lapseCases = storeTable{script: "lapse", cases: []storeCase{
	{
		name:   "nothing",
		do:     lapseWith(10),
		result: 0,
	},
	{
		name: "what has expired",
		seed: both(locked(past, redistest.Hash{"k:a": "x", "#y": "y"}),
			locked(later, redistest.Hash{"k:b": "y", "#x": "x"})),
		do:     lapseWith(10),
		result: 3,
		want:   locked(later, redistest.Hash{"k:b": "y", "#x": "x"}),
	},
	{
		name:   "no more than a page",
		seed:   both(locked(past, redistest.Hash{"#x": "x"}), locked(past+1, redistest.Hash{"#y": "y"})),
		do:     lapseWith(1),
		result: 1,
		want:   locked(past+1, redistest.Hash{"#y": "y"}),
	},
}}
