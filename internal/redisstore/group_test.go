package redisstore

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// patient is a policy of a minute, ten minutes and three calls.
var patient = wire.Gather{Grace: 60_000, MaxDelay: 600_000, MaxSize: 3}

// gatherings are members of the group g with messages by name, each of which has 5 bytes and 2 values of arguments.
func gatherings(how wire.Gather, names ...string) (members []group.Member) {
	for _, name := range names {
		members = append(members, group.Member{Message: []byte(name), Group: "g", How: how, Bytes: 5, Values: 2})
	}
	return members
}

func gatherWith(members ...group.Member) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		n, err := s.Gather(bg, members)
		if err == nil && n != len(members) {
			return nil, fmt.Errorf("%d of %d members", n, len(members))
		}
		return nil, err
	}
}

// gathering is the state of one group in Redis.
func gathering(due int64, state string, messages ...string) redistest.State {
	return redistest.State{
		"_group:g": redistest.List(messages), "_groups": redistest.Zset{"g": due},
		"_gathered": redistest.Hash{"g": state},
	}
}

var wake = redistest.State{"_wake": redistest.List{"1"}}

var gatherCases = storeTable{script: "gather", refused: true, cases: []storeCase{
	{
		name: "first call",
		do:   gatherWith(gatherings(patient, "x")...),
		want: with(gathering(fromNow(time.Minute), "now now+60000 600000 3 5 2", "x"), wake),
	},
	{
		name: "several at once",
		do:   gatherWith(gatherings(wire.Gather{Grace: 1000, MaxSize: 10}, "x", "y", "x")...),
		want: with(gathering(fromNow(time.Second), "now now+1000 0 10 15 6", "x", "y", "x"), wake),
	},
	{
		name: "another call: the group waits on, and nobody need be told",
		seed: gathering(later, "1000 2000 0 9 5 2", "x"),
		do:   gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxSize: 3}, "y")...),
		want: with(gathering(fromNow(time.Minute), "1000 now+60000 0 3 10 4", "x", "y"), wake),
	},
	{
		name: "another call, while an earlier group waits",
		seed: with(gathering(later, "1000 2000 0 9 5 2", "x"),
			redistest.State{"_groups": redistest.Zset{"g": later, "h": past}}),
		do: gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxSize: 3}, "y")...),
		want: with(gathering(fromNow(time.Minute), "1000 now+60000 0 3 10 4", "x", "y"), redistest.State{
			"_groups": redistest.Zset{"g": fromNow(time.Minute), "h": past},
		}),
	},
	{
		name: "the first call has waited for too long",
		seed: with(gathering(past+600_000, "1000 2000 600000 3 5 2", "x"), wake),
		do:   gatherWith(gatherings(patient, "y")...),
		want: with(gathering(past+600_000, "1000 now+60000 600000 3 10 4", "x", "y"), wake),
	},
	{
		name: "full",
		seed: gathering(later, "1000 2000 0 3 10 4", "x", "y"),
		do:   gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxSize: 3}, "z")...),
		want: with(gathering(fromNow(0), "1000 now+60000 0 3 15 6", "x", "y", "z"), wake),
	},
	{
		name: "full before, and lent to a worker",
		seed: gathering(later, "1000 2000 0 2 10 4", "x", "y"),
		do:   gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxSize: 2}, "z")...),
		want: gathering(later, "1000 now+60000 0 2 15 6", "x", "y", "z"),
	},
	{
		name: "full, by a smaller policy than before",
		seed: gathering(later, "1000 2000 0 9 15 6", "x", "y", "v"),
		do:   gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxSize: 2}, "z")...),
		want: with(gathering(fromNow(0), "1000 now+60000 0 2 20 8", "x", "y", "v", "z"), wake),
	},
	{
		name: "full by bytes",
		seed: gathering(later, fmt.Sprintf("1000 2000 0 9 %d 2", groupBytes-5), "x"),
		do:   gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxSize: 9}, "y")...),
		want: with(gathering(fromNow(0), fmt.Sprintf("1000 now+60000 0 9 %d 4", groupBytes), "x", "y"), wake),
	},
	{
		name: "full by values",
		seed: gathering(later, fmt.Sprintf("1000 2000 0 9 5 %d", groupValues-2), "x"),
		do:   gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxSize: 9}, "y")...),
		want: with(gathering(fromNow(0), fmt.Sprintf("1000 now+60000 0 9 10 %d", groupValues), "x", "y"), wake),
	},
	{
		name: "not full by one byte and one value",
		seed: with(gathering(past, fmt.Sprintf("1000 2000 0 9 %d %d", groupBytes-6, groupValues-3), "x"), wake),
		do:   gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxSize: 9}, "y")...),
		want: with(gathering(fromNow(time.Minute), fmt.Sprintf("1000 now+60000 0 9 %d %d", groupBytes-1, groupValues-1),
			"x", "y"), wake),
	},
	{
		name: "what is known of a group that is gone does not count",
		seed: redistest.State{"_gathered": redistest.Hash{"g": "1000 2000 0 1 10 4"}},
		do:   gatherWith(gatherings(patient, "x")...),
		want: with(gathering(fromNow(time.Minute), "now now+60000 600000 3 5 2", "x"), wake),
	},
	{
		name: "what is known of the group is lost",
		seed: redistest.State{"_group:g": redistest.List{"x"}, "_gathered": redistest.Hash{"g": "garbage"}},
		do:   gatherWith(gatherings(patient, "y")...),
		want: with(gathering(fromNow(time.Minute), "now now+60000 600000 3 5 2", "x", "y"), wake),
	},
	{
		name: "first call from the future",
		seed: with(gathering(past, fmt.Sprintf("%d 2000 1000 9 5 2", int64(later)), "x"), wake),
		do:   gatherWith(gatherings(wire.Gather{Grace: 60_000, MaxDelay: 1000, MaxSize: 9}, "y")...),
		want: with(gathering(fromNow(time.Second), "now now+60000 1000 9 10 4", "x", "y"), wake),
	},
}}

// joinWith joins the claims of tokens, the third argument of each being one byte and one value.
func joinWith(how wire.Gather, batches []uint64, tokens ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		return s.Join(bg, "w", batches, tokens, gatherings(how, tokens...))
	}
}

var joinCases = storeTable{script: "join", cases: []storeCase{
	{
		name:   "into a new group",
		seed:   working(nil),
		do:     joinWith(patient, []uint64{4}, "4-1", "3-3"),
		result: []bool{true, true},
		want: working(with(left("3-1 3-2", "3"),
			with(gathering(fromNow(time.Minute), "now now+60000 600000 3 10 4", "d", "c"), wake))),
	},
	{
		name:   "one that stands, two that do not",
		seed:   working(with(gathering(past, "1000 2000 0 9 5 2", "x"), wake)),
		do:     joinWith(wire.Gather{Grace: 60_000, MaxSize: 9}, nil, "3-9", "4-1", "4-1"),
		result: []bool{false, true, false},
		want: working(with(left("3-1 3-2 3-3", "3 4"),
			with(gathering(fromNow(time.Minute), "1000 now+60000 0 9 10 4", "x", "d"), wake))),
	},
	{
		name:   "none stands",
		seed:   working(gathering(later, "1000 2000 0 9 5 2", "x")),
		do:     joinWith(patient, []uint64{9}, "9-1"),
		result: []bool{false},
	},
	{
		name:   "full",
		seed:   working(gathering(later, "1000 2000 0 3 10 4", "x", "y")),
		do:     joinWith(wire.Gather{Grace: 60_000, MaxSize: 3}, nil, "3-1"),
		result: []bool{true},
		want: working(with(left("3-2 3-3 4-1", "3 4"),
			with(gathering(fromNow(0), "1000 now+60000 0 3 15 6", "x", "y", "a"), wake))),
	},
	{
		name:   "full before, and lent to a worker",
		seed:   working(gathering(later, "1000 2000 0 2 10 4", "x", "y")),
		do:     joinWith(wire.Gather{Grace: 60_000, MaxSize: 3}, nil, "3-1"),
		result: []bool{true},
		want:   working(with(left("3-2 3-3 4-1", "3 4"), gathering(later, "1000 now+60000 0 3 15 6", "x", "y", "a"))),
	},
	{
		name:   "the first call has waited for too long",
		seed:   working(with(gathering(past+600_000, "1000 2000 600000 3 5 2", "x"), wake)),
		do:     joinWith(patient, nil, "3-1"),
		result: []bool{true},
		want: working(with(left("3-2 3-3 4-1", "3 4"),
			with(gathering(past+600_000, "1000 now+60000 600000 3 10 4", "x", "a"), wake))),
	},
	{
		name: "what is known of the group is lost",
		seed: working(redistest.State{
			"_group:g": redistest.List{"x"}, "_gathered": redistest.Hash{"g": "garbage"},
			"_groups": redistest.Zset{"g": past},
		}),
		do:     joinWith(patient, nil, "3-1"),
		result: []bool{true},
		want: working(with(left("3-2 3-3 4-1", "3 4"),
			gathering(fromNow(time.Minute), "now now+60000 600000 3 5 2", "x", "a"))),
	},
	{
		name:   "full by bytes",
		seed:   working(gathering(later, fmt.Sprintf("1000 2000 0 9 %d 2", groupBytes-5), "x")),
		do:     joinWith(wire.Gather{Grace: 60_000, MaxSize: 9}, nil, "3-1"),
		result: []bool{true},
		want: working(with(left("3-2 3-3 4-1", "3 4"),
			with(gathering(fromNow(0), fmt.Sprintf("1000 now+60000 0 9 %d 4", groupBytes), "x", "a"), wake))),
	},
	{
		name:   "full by values",
		seed:   working(gathering(later, fmt.Sprintf("1000 2000 0 9 5 %d", groupValues-2), "x")),
		do:     joinWith(wire.Gather{Grace: 60_000, MaxSize: 9}, nil, "3-1"),
		result: []bool{true},
		want: working(with(left("3-2 3-3 4-1", "3 4"),
			with(gathering(fromNow(0), fmt.Sprintf("1000 now+60000 0 9 10 %d", groupValues), "x", "a"), wake))),
	},
}}

func ripeWith(n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		groups, next, err := s.Ripe(bg, n, 5*time.Second)
		return fmt.Sprintf("%v, next %s", groups, whenDue(next)), err
	}
}

func hastenWith(names ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		n, err := s.Hasten(bg, names)
		return fmt.Sprint(n), err
	}
}

var hastenCases = storeTable{script: "hasten", cases: []storeCase{
	{name: "no such group", do: hastenWith("g"), result: "0"},
	{
		name: "some, and the workers are told",
		seed: redistest.State{"_groups": redistest.Zset{"g": later, "h": later, "i": later}},
		do:   hastenWith("g", "x", "i"), result: "2",
		want: redistest.State{
			"_groups": redistest.Zset{"g": fromNow(0), "h": later, "i": fromNow(0)},
			"_wake":   redistest.List{"1"},
		},
	},
	{
		name: "the workers have been told",
		seed: redistest.State{"_groups": redistest.Zset{"g": later}, "_wake": redistest.List{"1"}},
		do:   hastenWith("g"), result: "1",
		want: redistest.State{"_groups": redistest.Zset{"g": fromNow(0)}, "_wake": redistest.List{"1"}},
	},
}}

var ripeCases = storeTable{script: "ripe", cases: []storeCase{
	{
		name: "no groups",
		do:   ripeWith(9), result: "[], next never",
	},
	{
		name: "none due",
		seed: redistest.State{"_groups": redistest.Zset{"g": later}},
		do:   ripeWith(9), result: "[], next later",
	},
	{
		name: "none due, the first at a round time",
		seed: redistest.State{"_groups": redistest.Zset{"g": round}},
		do:   ripeWith(9), result: "[], next later",
	},
	{
		name: "some, the earliest first",
		seed: redistest.State{"_groups": redistest.Zset{"g": past + 2, "h": past, "i": later}},
		do:   ripeWith(9), result: "[h g], next 5s",
		want: redistest.State{"_groups": redistest.Zset{
			"g": fromNow(5 * time.Second), "h": fromNow(5 * time.Second),
			"i": later,
		}},
	},
	{
		name: "no more than asked for",
		seed: redistest.State{"_groups": redistest.Zset{"g": past + 2, "h": past, "i": past + 1}},
		do:   ripeWith(2), result: "[h i], next overdue",
		want: redistest.State{"_groups": redistest.Zset{
			"g": past + 2, "h": fromNow(5 * time.Second),
			"i": fromNow(5 * time.Second),
		}},
	},
}}

func peekWith(most int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		size, version, messages, large, err := s.Peek(bg, "g", most)
		if large != 0 {
			return fmt.Sprintf("%d: %s, %d bytes", size, messages, large), err
		}
		if version != 0 {
			return fmt.Sprintf("%d, version %d: %s", size, version, messages), err
		}
		return fmt.Sprintf("%d: %s", size, messages), err
	}
}

var manyCalls = func() (list redistest.List) {
	for i := range 1200 {
		list = append(list, fmt.Sprintf("m%04d", i))
	}
	return list
}()

var peekCases = storeTable{script: "peek", cases: []storeCase{
	{
		name: "no such group",
		do:   peekWith(100), result: fmt.Sprintf("%d: []", maxPeek),
	},
	{
		name: "with a control hash",
		seed: both(gathering(past, "1 2 3 3 4 5", "x", "y"), controlled(nil)),
		do:   peekWith(100), result: "3, version 5: [x y]",
	},
	{
		name: "all",
		seed: gathering(past, "1 2 3 3 4 5", "x", "y"),
		do:   peekWith(100), result: "3: [x y]",
	},
	{
		name: "one more than the group is to have",
		seed: gathering(past, "1 2 3 2 4 5", "x", "y", "z", "v"),
		do:   peekWith(100), result: "2: [x y z]",
	},
	{
		name: "as many bytes as asked for",
		seed: gathering(past, "1 2 3 9 4 5", "xxxx", "yyyy", "zzzz", "v"),
		do:   peekWith(9), result: "9: [xxxx yyyy]",
	},
	{
		name: "the first alone is larger",
		seed: gathering(past, "1 2 3 9 4 5", "xxxx", "yyyy"),
		do:   peekWith(3), result: "9: [xxxx]",
	},
	{
		name: "too large, behind others",
		seed: gathering(past, "1 2 3 9 4 5", "xxxx", big("y", wire.WorkerLimits.Bytes+1), "zzzz"),
		do:   peekWith(MaxCallBytes), result: "9: [xxxx]",
	},
	{
		name: "too large, in front of others",
		seed: gathering(past, "1 2 3 9 4 5", big("y", wire.WorkerLimits.Bytes+1), "zzzz"),
		do:   peekWith(MaxCallBytes), result: "9: [], 1052673 bytes",
	},
	{
		name: "what is known of the group is lost",
		seed: redistest.State{"_group:g": redistest.List{"x", "y"}, "_gathered": redistest.Hash{"g": "garbage"}},
		do:   peekWith(100), result: fmt.Sprintf("%d: [x y]", maxPeek),
	},
	{
		name: "many",
		seed: gathering(past, "1 2 3 1000 4 5", manyCalls...),
		do:   peekWith(1 << 20), result: fmt.Sprintf("1000: %s", manyCalls[:1001]),
	},
	{
		name: "many, as many bytes as asked for",
		seed: gathering(past, "1 2 3 1000 4 5", manyCalls...),
		do:   peekWith(5 * 700), result: fmt.Sprintf("1000: %s", manyCalls[:700]),
	},
	{
		name: "more than one script reads",
		seed: gathering(past, "1 2 3 1100 4 5", manyCalls...),
		do:   peekWith(1 << 20), result: fmt.Sprintf("1100: %s", manyCalls[:1101]),
	},
	{
		name: "more than one script reads, as many bytes as asked for",
		seed: gathering(past, "1 2 3 1100 4 5", manyCalls...),
		do:   peekWith(5 * 1050), result: fmt.Sprintf("1100: %s", manyCalls[:1050]),
	},
	{
		name: "too large, where the second script begins",
		seed: gathering(past, "1 2 3 1100 4 5", append(manyCalls[:peekPage:peekPage],
			big("y", wire.WorkerLimits.Bytes+1), "z")...),
		do: peekWith(MaxCallBytes), result: fmt.Sprintf("1100: %s", manyCalls[:peekPage]),
	},
}}

func fireWith(next int64, members []group.Member, messages ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		var list [][]byte
		for _, m := range messages {
			list = append(list, []byte(m))
		}
		fired, due, err := s.Fire(bg, "g", members, next, 0, list)
		return fmt.Sprintf("%v, due %s", map[Firing]any{FiredHere: true, firedElsewhere: false, FiredNot: "not"}[fired],
			whenDue(due)), err
	}
}

// TestGroupsOnKeysOfAnotherType: nothing is gathered or fired in part.
func TestGroupsOnKeysOfAnotherType(t *testing.T) {
	server := redistest.Shared(t)
	src := dialled(t, server.URL())
	for _, c := range []struct {
		name     string
		suffixes []string
		do       func(s *Store) (any, error)
	}{
		{"gather", []string{"_group:g", "_groups", "_gathered", "_wake"}, gatherWith(gatherings(patient, "y")...)},
		{
			"fire",
			[]string{"_group:g", "_groups", "_gathered", "", "_noti"},
			fireWith(0, gatherings(patient, "x"), "x'"),
		},
	} {
		for _, suffix := range c.suffixes {
			s := NewStore(src, "", redistest.Name(t))
			conn := server.Dial(t)
			state := with(gathering(past, "1000 2000 0 9 5 2", "x"), redistest.State{suffix: "another type"})
			redistest.Seed(t, conn, s.Name, state)
			result, err := c.do(s)
			if diff := redistest.Diff(redistest.Dump(t, conn, s.Name), state); err == nil || diff != "" {
				t.Errorf("%s: N%s is of another type: %v, %v\n%s", c.name, suffix, result, err, diff)
			}
		}
	}
}

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

// TestAggregatingReadsGroupsToTheEnd looks for calls after the first page of their group. A page ends because it has as
// many calls as a page may have, or because more would be too many bytes.
func TestAggregatingReadsGroupsToTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		calls, size int
	}{
		{"many small calls", 2*groupPage + 1, 1},
		{"few large calls", 10, wire.Default.Bytes * 9 / 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := redistest.NewBench(t, redistest.Shared(t))
			s := NewStore(dialled(t, b.Server.URL()), "", b.Name)
			how := wire.Gather{Grace: 60_000, MaxSize: group.MaxGroupSize}
			payload := wire.AppendArrayHeader(nil, 1)
			payload = wire.AppendBin(payload, bytes.Repeat([]byte{'x'}, c.size))
			for _, key := range []string{"one", "two"} {
				for i := range c.calls {
					msg := wire.Message{Kind: wire.GoExtended, Path: "a.f", Payload: payload, Meta: wire.Meta{
						ID: fmt.Sprintf("%s-%d", key, i), HasN: true, N: 1,
						Extra: &wire.Extra{Group: key, Gather: &how},
					}}
					m, err := group.NewMember(msg.Append(nil))
					b.Must(err)
					_, err = s.Gather(bg, []group.Member{m})
					b.Must(err)
				}
			}
			for _, key := range []string{"one", "two"} {
				for _, i := range []int{0, c.calls / 2, c.calls - 1} {
					id := fmt.Sprintf("%s-%d", key, i)
					message, waits, err := s.Aggregating(bg, id)
					if err != nil || !waits || idOf(message) != id {
						t.Errorf("call %s: found %v, %v", id, waits, err)
					}
				}
			}
			if _, waits, err := s.Aggregating(bg, "one"); err != nil || waits {
				t.Errorf("found a call that was never made: %v, %v", waits, err)
			}
		})
	}
}
