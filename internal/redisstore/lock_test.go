package redisstore

import (
	"fmt"

	"github.com/godelayed/delayed/internal/redistest"
)

func unlockOne(id, lock string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		left, replaced, err := s.Unlock(bg, id, lock)
		return fmt.Sprintf("left %v, replaced %v", left, replaced), err
	}
}

var unlockCases = storeTable{script: "unlock", cases: []storeCase{
	{
		name:   "its lock, the last",
		seed:   locked(later, redistest.Hash{"k:a": "x"}),
		do:     unlockOne("x", "k:a"),
		result: "left false, replaced false",
		want:   redistest.State{},
	},
	{
		name:   "its lock, not its id",
		seed:   locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"}),
		do:     unlockOne("x", "k:a"),
		result: "left true, replaced false",
		want:   locked(later, redistest.Hash{"#x": "x", "k:b": "y"}),
	},
	{
		name:   "nothing: it was freed before",
		seed:   locked(later, redistest.Hash{"k:a": "y"}),
		do:     unlockOne("x", "k:a"),
		result: "left false, replaced false",
	},
	{
		name:   "a lock that has passed to another task",
		seed:   locked(later, redistest.Hash{"k:a": "y", "#x": "x"}),
		do:     unlockOne("x", "k:a"),
		result: "left true, replaced false",
	},
	{
		name: "replaced",
		seed: both(locked(later, redistest.Hash{"k:a": "y"}),
			redistest.State{"_revoked": redistest.Zset{"x": later}}),
		do:     unlockOne("x", "k:a"),
		result: "left false, replaced true",
	},
	{
		name: "left the queue",
		seed: both(locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"}),
			redistest.State{"_revoked": redistest.Zset{"x": later}}),
		do:   disownOne("x", "k:a"),
		want: both(locked(later, redistest.Hash{"k:b": "y"}), redistest.State{"_revoked": redistest.Zset{"x": later}}),
	},
	{
		name: "left the queue: its lock has passed to another task",
		seed: locked(later, redistest.Hash{"k:b": "y", "#s": "s"}),
		do:   disownOne("s", "k:b"),
		want: locked(later, redistest.Hash{"k:b": "y"}),
	},
}}

func disownOne(id, lock string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return nil, s.FreeForwarded(bg, id, lock) }
}

func lapseWith(n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		next, looked, dropped, err := s.Lapse(bg, "0", n)
		return fmt.Sprintf("next %s, %d of %d", next, dropped, looked), err
	}
}

var lapseCases = storeTable{script: "lapse", cases: []storeCase{
	{
		name:   "nothing",
		do:     lapseWith(10),
		result: "next 0, 0 of 0",
	},
	{
		name: "what has expired",
		seed: both(locked(past, redistest.Hash{"k:a": "x", "#y": "y"}),
			locked(later, redistest.Hash{"k:b": "y", "#x": "x"})),
		do:     lapseWith(10),
		result: "next 0, 2 of 4",
		want:   locked(later, redistest.Hash{"k:b": "y", "#x": "x"}),
	},
	{
		name:   "without a time at which it expires",
		seed:   redistest.State{"_locks": redistest.Hash{"k:a": "x", "@x": "k:a"}},
		do:     lapseWith(10),
		result: "next 0, 2 of 2",
		want:   redistest.State{},
	},
}}
