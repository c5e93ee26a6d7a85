package redisstore

import (
	"github.com/godelayed/delayed/internal/redistest"
)

var modeCases = storeTable{script: "mode", refused: true, cases: []storeCase{
	{
		name:   "first",
		do:     func(s *Store) (any, error) { return s.SettleMode(bg, "plain") },
		result: "plain",
		want:   redistest.State{"_mode": "plain"},
	},
	{
		name:   "the same again",
		seed:   redistest.State{"_mode": "extended"},
		do:     func(s *Store) (any, error) { return s.SettleMode(bg, "extended") },
		result: "extended",
	},
	{
		name:   "another",
		seed:   redistest.State{"_mode": "extended"},
		do:     func(s *Store) (any, error) { return s.SettleMode(bg, "plain") },
		result: "extended",
	},
}}

// reformed changes the queue to the other form.
func reformed(s *Store) (any, error) { return s.Reform(bg, "extended", "plain") }

var reformCases = storeTable{script: "reform", refused: true, cases: []storeCase{
	{
		name: "nothing is left", seed: redistest.State{"_mode": "extended"}, do: reformed, result: "plain",
		want: redistest.State{"_mode": "plain"},
	},
	{name: "somebody else was faster", seed: redistest.State{"_mode": "plain"}, do: reformed, result: "plain"},
	{name: "there is none any more", do: reformed, result: "plain", want: redistest.State{"_mode": "plain"}},
	{
		name: "pending", seed: redistest.State{"_mode": "extended", "": messages(1), "_noti": ones(1)}, do: reformed,
		result: "extended",
	},
	{
		name: "suspects", seed: redistest.State{
			"_mode": "extended", "_suspects": messages(1),
			"_suspects_noti": ones(1),
		},
		do: reformed, result: "extended",
	},
	{
		name: "active at a legacy worker",
		seed: redistest.State{"_mode": "extended", "_processing": redistest.Hash{"1": "m"}}, do: reformed,
		result: "extended",
	},
}}
