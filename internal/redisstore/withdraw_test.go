package redisstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// withdrawn returns a task to withdraw, whose message is "m " and its id.
func withdrawn(id string, place int) Withdrawn {
	return Withdrawn{
		Place: place, Message: []byte("m " + id), ID: id, Until: time.UnixMilli(later), Info: []byte("why"),
	}
}

// withdrawnHolder is withdrawn, of a task whose message names a lock.
func withdrawnHolder(id string, place int, lock string) Withdrawn {
	w := withdrawn(id, place)
	w.Lock = lock
	return w
}

func withdrawWith(how Withdrawing, legacy bool, tasks ...Withdrawn) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		answers, err := s.Withdraw(bg, how, legacy, tasks)
		return fmt.Sprint(answers), err
	}
}

// waiting is a queue with five pending tasks.
func waiting() redistest.State {
	return redistest.State{"": redistest.List{"m a", "m b", "m c", "m d", "m e"}, "_noti": ones(5)}
}

// archivedAs is a queue whose archive holds tasks that were withdrawn.
func archivedAs(ids ...string) redistest.State {
	s := redistest.State{}
	set, tasks, infos := redistest.Zset{}, redistest.Hash{}, redistest.Hash{}
	for _, id := range ids {
		set[id], tasks[id], infos[id] = later, "m "+id, "why"
	}
	s["_archived"], s["_tasks"], s["_info"] = set, tasks, infos
	s[testDay] = counted(redistest.Hash{"archived": fmt.Sprint(len(ids))})
	return s
}

var withdrawCases = storeTable{script: "withdraw", cases: []storeCase{
	{
		name: "from the middle: a gap stays", seed: waiting(),
		do:     withdrawWith(WithdrawToArchive, false, withdrawn("c", 2)),
		result: "[1]",
		want: both(archivedAs("c"), redistest.State{
			"": redistest.List{"m a", "m b", "-", "m d", "m e"}, "_noti": ones(5),
			"_control": redistest.Hash{"gaps": "1"},
		}),
	},
	{
		name: "from both ends: no gap stays", seed: waiting(),
		do:     withdrawWith(WithdrawToArchive, false, withdrawn("a", 0), withdrawn("e", 4), withdrawn("d", 3)),
		result: "[1 1 1]",
		want: both(archivedAs("a", "d", "e"), redistest.State{
			"": redistest.List{"m b", "m c"}, "_noti": ones(2),
		}),
	},
	{
		name: "next to a gap", seed: both(waiting(), redistest.State{
			"": redistest.List{"m a", "-", "-", "m d", "m e"}, "_control": redistest.Hash{"gaps": "2", "weight": "3"},
		}),
		do:     withdrawWith(WithdrawAndDrop, false, withdrawn("a", 0)),
		result: "[1]",
		want: redistest.State{
			"": redistest.List{"m d", "m e"}, "_noti": ones(2), "_control": redistest.Hash{"weight": "3"},
			testDay: counted(redistest.Hash{"canceled": "1"}),
		},
	},
	{
		name: "all", seed: waiting(),
		do: withdrawWith(WithdrawAndDrop, false, withdrawn("a", 0), withdrawn("b", 1), withdrawn("c", 2),
			withdrawn("d", 3), withdrawn("e", 4)),
		result: "[1 1 1 1 1]",
		want:   redistest.State{testDay: counted(redistest.Hash{"canceled": "5"})},
	},
	{
		name: "one that has moved, one that is not there", seed: waiting(),
		do:     withdrawWith(WithdrawToSchedule, false, withdrawn("b", 3), withdrawn("x", 2), withdrawn("d", 40)),
		result: "[1 0 1]",
		want: redistest.State{
			"": redistest.List{"m a", "-", "m c", "-", "m e"}, "_noti": ones(5),
			"_control":   redistest.Hash{"gaps": "2"},
			"_scheduled": redistest.Zset{"b": later, "d": later},
			"_tasks":     redistest.Hash{"b": "m b", "d": "m d"}, "_info": redistest.Hash{"b": "why", "d": "why"},
			"_wake": ones(1),
		},
	},
	{
		name: "equal messages: each once",
		seed: redistest.State{"": redistest.List{"m a", "m b", "m a", "m c"}, "_noti": ones(4)},
		do: withdrawWith(WithdrawAndDrop, false,
			Withdrawn{Place: 2, Message: []byte("m a"), Until: time.UnixMilli(later)},
			Withdrawn{Place: 2, Message: []byte("m a"), Until: time.UnixMilli(later)},
			Withdrawn{Place: 2, Message: []byte("m a"), Until: time.UnixMilli(later)}),
		result: "[1 0 1]",
		want: redistest.State{
			"": redistest.List{"m b", "-", "m c"}, "_noti": ones(3), "_control": redistest.Hash{"gaps": "1"},
			testDay: counted(redistest.Hash{"canceled": "2"}),
		},
	},
	{
		name: "an id that is taken", seed: both(waiting(), filedAs("_retry", redistest.Zset{"b": later})),
		do:     withdrawWith(WithdrawToArchive, false, withdrawn("b", 1), withdrawn("c", 2)),
		result: "[-1 1]",
		want: both(filedAs("_retry", redistest.Zset{"b": later}), archivedAs("c"), redistest.State{
			"": redistest.List{"m a", "m b", "-", "m d", "m e"}, "_noti": ones(5),
			"_control": redistest.Hash{"gaps": "1"},
		}),
	},
	{
		name:   "its locks are free",
		seed:   both(waiting(), locked(later, redistest.Hash{"k:a": "b", "#b": "b", "k:b": "c"})),
		do:     withdrawWith(WithdrawToArchive, false, withdrawnHolder("b", 1, "k:a")),
		result: "[1]",
		want: both(archivedAs("b"), locked(later, redistest.Hash{"k:b": "c"}), redistest.State{
			"": redistest.List{"m a", "-", "m c", "m d", "m e"}, "_noti": ones(5),
			"_control": redistest.Hash{"gaps": "1"},
		}),
	},
	{
		name: "its locks stay when it is scheduled",
		seed: both(waiting(), locked(later, redistest.Hash{"k:a": "e"})),
		do: withdrawWith(WithdrawToSchedule, false, Withdrawn{
			Place: 4, Message: []byte("m e"), ID: "e", Until: time.UnixMilli(past), Info: []byte("why"),
			Lock: "k:a",
		}), result: "[1]",
		want: both(locked(later, redistest.Hash{"k:a": "e"}), redistest.State{
			"": redistest.List{"m a", "m b", "m c", "m d"}, "_noti": ones(4),
			"_scheduled": redistest.Zset{"e": past}, "_tasks": redistest.Hash{"e": "m e"},
			"_info": redistest.Hash{"e": "why"}, "_wake": ones(1),
		}),
	},
	{
		name: "with legacy workers: no gaps", seed: waiting(),
		do:     withdrawWith(WithdrawAndDrop, true, withdrawn("b", 1), withdrawn("d", 3)),
		result: "[1 1]",
		want: redistest.State{
			"": redistest.List{"m a", "m c", "m e"}, "_noti": ones(3),
			testDay: counted(redistest.Hash{"canceled": "2"}),
		},
	},
	{
		name: "tasks that have moved, among equal ones",
		seed: redistest.State{"": redistest.List{"m a", "m x", "m b", "m x", "m c", "m x"}, "_noti": ones(6)},
		do: withdrawWith(WithdrawAndDrop, false, withdrawn("c", 1), withdrawn("x", 1), withdrawn("b", 5),
			withdrawn("x", 3), withdrawn("y", 4)),
		result: "[1 1 1 1 0]",
		want: redistest.State{
			"": redistest.List{"m a", "-", "-", "-", "-", "m x"}, "_noti": ones(6),
			"_control": redistest.Hash{"gaps": "4"}, testDay: counted(redistest.Hash{"canceled": "4"}),
		},
	},
	{
		name: "one that has moved back", seed: waiting(),
		do:     withdrawWith(WithdrawAndDrop, false, withdrawn("d", 1)),
		result: "[1]",
		want: redistest.State{
			"": redistest.List{"m a", "m b", "m c", "-", "m e"}, "_noti": ones(5),
			"_control": redistest.Hash{"gaps": "1"}, testDay: counted(redistest.Hash{"canceled": "1"}),
		},
	},
	{
		name:   "canceled: claim ends it",
		seed:   both(waiting(), redistest.State{"_revoked": redistest.Zset{"b": later}}),
		do:     withdrawWith(WithdrawToArchive, false, withdrawn("b", 1), withdrawn("d", 3)),
		result: "[0 1]",
		want: both(archivedAs("d"), redistest.State{
			"": redistest.List{"m a", "m b", "m c", "-", "m e"}, "_noti": ones(5),
			"_control": redistest.Hash{"gaps": "1"}, "_revoked": redistest.Zset{"b": later},
		}),
	},
	{
		name: "with legacy workers: equal messages", seed: redistest.State{
			"": redistest.List{"m a", "m b", "m a", "m c"}, "_noti": ones(4),
		},
		do: withdrawWith(WithdrawAndDrop, true, withdrawn("a", 2), withdrawn("b", 0)), result: "[1 1]",
		want: redistest.State{
			"": redistest.List{"m a", "m c"}, "_noti": ones(2), testDay: counted(redistest.Hash{"canceled": "2"}),
		},
	},
	{name: "nothing pending", do: withdrawWith(WithdrawAndDrop, false, withdrawn("b", 1)), result: "[0]"},
}}

// gapCases claim from lists with gaps.
var gapCases = []storeCase{
	{
		name: "gaps are dropped, with their notifications",
		seed: with(queued("- a - - b c -", 7), redistest.State{
			"_control": redistest.Hash{"gaps": "4", "weight": "2"},
		}),
		do:     claimWith(ClaimCall{Most: 2}),
		result: claimReply{"a b", 2},
		want: with(holds(queued("c -", 2), "a b"), redistest.State{
			"_control": redistest.Hash{"gaps": "1", "weight": "2"},
		}),
	},
	{
		name:   "nothing but gaps, a notification in hand",
		seed:   with(queued("- - -", 2), redistest.State{"_control": redistest.Hash{"gaps": "3"}}),
		do:     claimWith(ClaimCall{Most: 2, Held: 1}),
		result: claimReply{"", 0},
		want:   queued("", 0),
	},
	{
		name: "a gap before large messages",
		seed: with(queued("- "+fullClaim+" "+fullClaim+" "+fullClaim, 13), redistest.State{
			"_control": redistest.Hash{"gaps": "1", "weight": "2"},
		}),
		do:     claimWith(ClaimCall{Most: 8}),
		result: claimReply{"263168 bytes of a 263168 bytes of b 263168 bytes of c", 9},
		want: with(
			holds(queued(fullClaim[3*263169:]+" "+fullClaim+" "+fullClaim, 9), fullClaim[:3*263169-1]),
			redistest.State{"_control": redistest.Hash{"weight": "2"}},
		),
	},
	{
		name: "more gaps than tasks are asked for",
		seed: with(queued(strings.Repeat("- ", 150)+"a b", 152), redistest.State{
			"_control": redistest.Hash{"gaps": "150", "weight": "2"},
		}),
		do:     claimWith(ClaimCall{Most: 1}),
		result: claimReply{"a", 1},
		want: with(holds(queued("b", 1), "a"), redistest.State{
			"_control": redistest.Hash{"weight": "2"},
		}),
	},
	{
		name:   "what looks like a gap, and is none",
		seed:   queued("- a", 2),
		do:     claimWith(ClaimCall{Most: 2}),
		result: claimReply{"- a", 0},
		want:   holds(queued("", 0), "- a"),
	},
}
