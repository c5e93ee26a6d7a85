package redisstore

import (
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redistest"
)

var fireCases = storeTable{script: "fire", cases: []storeCase{
	{
		name: "the control hash has changed",
		seed: both(gathering(past, "1000 2000 0 3 10 4", "x", "y"), controlled(nil)),
		do:   fireWith(0, gatherings(patient, "x", "y"), "xy"), result: "not, due overdue",
	},
	{
		name: "the control hash is as it was",
		seed: both(gathering(past, "1000 2000 0 3 10 4", "x", "y"), controlled(nil)),
		do: func(s *Store) (any, error) {
			fired, due, err := s.Fire(bg, "g", gatherings(patient, "x", "y"), 0, 5, [][]byte{[]byte("y")})
			return fmt.Sprint(fired == FiredHere, due), err
		},
		result: fmt.Sprint(true, -time.Millisecond),
		want:   both(redistest.State{"": redistest.List{"y"}, "_noti": ones(1)}, controlled(nil)),
	},
	{
		name: "all calls",
		seed: with(gathering(past, "1000 2000 0 3 10 4", "x", "y"),
			redistest.State{"": redistest.List{"p"}, "_noti": ones(1)}),
		do: fireWith(0, gatherings(patient, "x", "y"), "xy"), result: "true, due never",
		want: redistest.State{"": redistest.List{"p", "xy"}, "_noti": ones(2)},
	},
	{
		name: "one call that is too large to be read: it becomes pending as it is",
		seed: gathering(past, "1000 2000 0 3 700 2", big("x", 500), "y"),
		do:   fireWith(0, []group.Member{{Bytes: 500}}), result: "true, due overdue",
		want: with(gathering(fromNow(0), "1000 2000 0 3 200 2", "y"),
			redistest.State{"": redistest.List{big("x", 500)}, "_noti": ones(1), "_groups": redistest.Zset{"g": 2000}}),
	},
	{
		name: "another one than that which is too large",
		seed: gathering(past, "1000 2000 0 3 700 2", big("x", 501), "y"),
		do:   fireWith(0, []group.Member{{Bytes: 500}}), result: "false, due overdue",
	},
	{
		name: "one call, into several tasks",
		seed: gathering(past, "1000 2000 0 3 5 2", "x"),
		do:   fireWith(0, gatherings(patient, "x"), "x", "y", "z"), result: "true, due never",
		want: redistest.State{"": redistest.List{"x", "y", "z"}, "_noti": ones(3)},
	},
	{
		name: "others have come: they wait for their grace",
		seed: with(gathering(past, fmt.Sprintf("1000 %d 0 3 25 10", int64(later)), "x", "y", "z", "v"), redistest.State{
			"_groups":   redistest.Zset{"g": past, "h": past},
			"_gathered": redistest.Hash{"g": fmt.Sprintf("1000 %d 0 3 25 10", int64(later)), "h": "s"},
			"_group:h":  redistest.List{"w"},
		}),
		do: fireWith(5000, gatherings(patient, "x", "y", "z"), "xyz"), result: "true, due later",
		want: redistest.State{
			"": redistest.List{"xyz"}, "_noti": ones(1), "_group:g": redistest.List{"v"},
			"_group:h":  redistest.List{"w"},
			"_groups":   redistest.Zset{"g": later, "h": past},
			"_gathered": redistest.Hash{"g": fmt.Sprintf("5000 %d 0 3 10 4", int64(later)), "h": "s"},
		},
	},
	{
		name: "others have come: the first of them has waited for too long",
		seed: gathering(past, fmt.Sprintf("1000 %d 4000 3 10 4", int64(later)), "x", "v"),
		do:   fireWith(5000, gatherings(patient, "x"), "x'"), result: "true, due overdue",
		want: with(gathering(9000, fmt.Sprintf("5000 %d 4000 3 5 2", int64(later)), "v"),
			redistest.State{"": redistest.List{"x'"}, "_noti": ones(1)}),
	},
	{
		name: "others have come, the first of them at a time nobody knows",
		seed: gathering(past, fmt.Sprintf("1000 %d 4000 3 10 4", int64(later)), "x", "v"),
		do:   fireWith(0, gatherings(patient, "x"), "x'"), result: "true, due overdue",
		want: with(gathering(5000, fmt.Sprintf("1000 %d 4000 3 5 2", int64(later)), "v"),
			redistest.State{"": redistest.List{"x'"}, "_noti": ones(1)}),
	},
	{
		name: "others have come, by a clock that is slow",
		seed: gathering(past, fmt.Sprintf("1000 %d 4000 3 10 4", int64(later)), "x", "v"),
		do:   fireWith(7, gatherings(patient, "x"), "x'"), result: "true, due overdue",
		want: with(gathering(5000, fmt.Sprintf("1000 %d 4000 3 5 2", int64(later)), "v"),
			redistest.State{"": redistest.List{"x'"}, "_noti": ones(1)}),
	},
	{
		name: "others have come, by a clock that is fast",
		seed: gathering(past, fmt.Sprintf("1000 %d 3600000 3 10 4", int64(later)), "x", "v"),
		do:   fireWith(later, gatherings(patient, "x"), "x'"), result: "true, due 1h0m0s",
		want: with(gathering(fromNow(time.Hour), fmt.Sprintf("now %d 3600000 3 5 2", int64(later)), "v"),
			redistest.State{"": redistest.List{"x'"}, "_noti": ones(1)}),
	},
	{
		name: "full again",
		seed: gathering(past, fmt.Sprintf("1000 %d 0 2 15 6", int64(later)), "x", "y", "z"),
		do:   fireWith(0, gatherings(patient, "x"), "x'"), result: "true, due overdue",
		want: with(gathering(fromNow(0), fmt.Sprintf("1000 %d 0 2 10 4", int64(later)), "y", "z"),
			redistest.State{"": redistest.List{"x'"}, "_noti": ones(1)}),
	},
	{
		name: "full again by bytes",
		seed: gathering(past, fmt.Sprintf("1000 %d 0 9 %d 6", int64(later), groupBytes+5), "x", "y"),
		do:   fireWith(0, gatherings(patient, "x"), "x'"), result: "true, due overdue",
		want: with(gathering(fromNow(0), fmt.Sprintf("1000 %d 0 9 %d 4", int64(later), groupBytes), "y"),
			redistest.State{"": redistest.List{"x'"}, "_noti": ones(1)}),
	},
	{
		name: "full again by values",
		seed: gathering(past, fmt.Sprintf("1000 %d 0 9 15 %d", int64(later), groupValues+2), "x", "y"),
		do:   fireWith(0, gatherings(patient, "x"), "x'"), result: "true, due overdue",
		want: with(gathering(fromNow(0), fmt.Sprintf("1000 %d 0 9 10 %d", int64(later), groupValues), "y"),
			redistest.State{"": redistest.List{"x'"}, "_noti": ones(1)}),
	},
	{
		name: "sums that are too small",
		seed: gathering(past, fmt.Sprintf("1000 %d 0 9 3 1", int64(later)), "x", "y"),
		do:   fireWith(0, gatherings(patient, "x"), "x'"), result: "true, due later",
		want: with(gathering(later, fmt.Sprintf("1000 %d 0 9 0 0", int64(later)), "y"),
			redistest.State{"": redistest.List{"x'"}, "_noti": ones(1)}),
	},
	{
		name: "what is known of the group is lost",
		seed: redistest.State{"_group:g": redistest.List{"x", "y"}, "_groups": redistest.Zset{"g": past}},
		do:   fireWith(0, gatherings(patient, "x"), "x'"), result: "true, due overdue",
		want: redistest.State{
			"": redistest.List{"x'"}, "_noti": ones(1), "_group:g": redistest.List{"y"},
			"_groups": redistest.Zset{"g": fromNow(0)},
		},
	},
	{
		name: "another worker was faster: the group is gone",
		seed: redistest.State{"": redistest.List{"xy"}, "_noti": ones(1)},
		do:   fireWith(0, gatherings(patient, "x", "y"), "xy"), result: "false, due never",
	},
	{
		name: "another worker was faster: fewer calls are left",
		seed: gathering(past, "1000 2000 0 9 5 2", "x"),
		do:   fireWith(0, gatherings(patient, "x", "y"), "xy"), result: "false, due overdue",
	},
	{
		name: "another worker was faster: other calls have come",
		seed: gathering(later, "1000 2000 0 9 15 6", "y", "z", "v"),
		do:   fireWith(0, gatherings(patient, "x", "y"), "xy"), result: "false, due later",
	},
	{
		name: "another last call",
		seed: gathering(later, "1000 2000 0 9 15 6", "x", "z", "v"),
		do:   fireWith(0, gatherings(patient, "x", "y"), "xy"), result: "false, due later",
	},
	{
		name: "another first call",
		seed: gathering(later, "1000 2000 0 9 15 6", "z", "y", "v"),
		do:   fireWith(0, gatherings(patient, "x", "y"), "xy"), result: "false, due later",
	},
	{
		name: "a group without calls is forgotten",
		seed: redistest.State{
			"_groups":   redistest.Zset{"g": past, "h": later},
			"_gathered": redistest.Hash{"g": "1000 2000 0 9 15 6"},
		},
		do: fireWith(0, nil), result: "true, due never",
		want: redistest.State{"_groups": redistest.Zset{"h": later}},
	},
	{
		name: "a group that seemed without calls is not",
		seed: gathering(later, "1000 2000 0 9 15 6", "x"),
		do:   fireWith(0, nil), result: "false, due later",
	},
}}
