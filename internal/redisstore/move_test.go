package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// whenDue describes the time until something is due.
func whenDue(d time.Duration) string {
	switch {
	case d < 0:
		return "never"
	case d == 0:
		return "overdue"
	}
	// Redis's clock and this one belong to one machine, or nearly agree.
	if off := time.Now().Add(d).UnixMilli() - later; off > -60_000 && off < 60_000 {
		return "later"
	}
	return d.String()
}

// filedAs are tasks in a sorted set, with messages and infos made of their ids.
func filedAs(set string, due redistest.Zset) redistest.State {
	tasks, infos := redistest.Hash{}, redistest.Hash{}
	for id := range due {
		tasks[id], infos[id] = "m "+id, "i "+id
	}
	s := redistest.State{set: due}
	if len(due) > 0 {
		s["_tasks"], s["_info"] = tasks, infos
	}
	return s
}

// checkOne and checkTwo call check for the queue, and for the queue and another one in its slot.
func checkOne(s *Store) (any, error) { return checkStores(s, s) }

func checkTwo(s *Store) (any, error) {
	return checkStores(s, NewStore(s.Src, "", s.keys.list+".other"), s)
}

func checkStores(s *Store, stores ...*Store) (any, error) {
	todos, err := Check(bg, s.Src, stores)
	var text strings.Builder
	for _, t := range todos {
		fmt.Fprintf(&text, "%d pending, due %s, %d parked; ", t.Pending, whenDue(t.Due), t.Parked)
		if t.Suspects > 0 {
			fmt.Fprintf(&text, "%d suspects; ", t.Suspects)
		}
	}
	return text.String(), err
}

var checkCases = storeTable{script: "check", cases: []storeCase{
	{
		name:   "empty",
		do:     checkOne,
		result: "0 pending, due never, 0 parked; ",
	},
	{
		name:   "only notifications and archived tasks",
		seed:   with(filedAs("_archived", redistest.Zset{"x": past}), redistest.State{"_noti": ones(3)}),
		do:     checkOne,
		result: "0 pending, due never, 0 parked; ",
	},
	{
		name:   "pending",
		seed:   redistest.State{"": messages(3), "_noti": ones(3)},
		do:     checkOne,
		result: "3 pending, due never, 0 parked; ",
	},
	{
		name:   "scheduled for later",
		seed:   filedAs("_scheduled", redistest.Zset{"x": later, "y": later + 1e9}),
		do:     checkOne,
		result: "0 pending, due later, 0 parked; ",
	},
	{
		name:   "scheduled for a round time",
		seed:   filedAs("_scheduled", redistest.Zset{"x": round}),
		do:     checkOne,
		result: "0 pending, due later, 0 parked; ",
	},
	{
		name:   "a retry that is overdue",
		seed:   filedAs("_retry", redistest.Zset{"x": past, "y": later}),
		do:     checkOne,
		result: "0 pending, due overdue, 0 parked; ",
	},
	{
		name:   "the earlier of the two sets: scheduled",
		seed:   redistest.State{"_scheduled": redistest.Zset{"x": later}, "_retry": redistest.Zset{"y": later + 1e9}},
		do:     checkOne,
		result: "0 pending, due later, 0 parked; ",
	},
	{
		name:   "the earlier of the two sets: retry",
		seed:   redistest.State{"_scheduled": redistest.Zset{"x": later + 1e9}, "_retry": redistest.Zset{"y": later}},
		do:     checkOne,
		result: "0 pending, due later, 0 parked; ",
	},
	{
		name:   "overdue in one set, later in the other",
		seed:   redistest.State{"_scheduled": redistest.Zset{"x": past}, "_retry": redistest.Zset{"y": later}},
		do:     checkOne,
		result: "0 pending, due overdue, 0 parked; ",
	},
	{
		name:   "parked",
		seed:   filedAs("_parked", redistest.Zset{"x": past, "y": later}),
		do:     checkOne,
		result: "0 pending, due never, 2 parked; ",
	},
	{
		name:   "suspects",
		seed:   redistest.State{"_suspects": messages(3), "_suspects_noti": ones(3)},
		do:     checkOne,
		result: "0 pending, due never, 0 parked; 3 suspects; ",
	},
	{
		name:   "each queue by itself",
		seed:   with(filedAs("_retry", redistest.Zset{"x": past}), redistest.State{"": messages(2), "_noti": ones(2)}),
		do:     checkTwo,
		result: "0 pending, due never, 0 parked; 2 pending, due overdue, 0 parked; ",
	},
}}

func moveWith(from Shelf, most int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		n, next, large, err := s.Move(bg, from, most)
		text := fmt.Sprintf("%d moved, next %s", n, whenDue(next))
		if large != nil {
			text += fmt.Sprintf(", too large %v", large)
		}
		return text, err
	}
}

var manyDue, manyMoved = func() (state redistest.State, list redistest.List) {
	set := redistest.Zset{}
	for i := range 1000 {
		id := fmt.Sprintf("id%04d", i)
		set[id] = past
		list = append(list, "m "+id)
	}
	return filedAs("_scheduled", set), list
}()

// veryLate is what move counts of n tasks that were due in 1970.
func veryLate(n int) any {
	return counted(redistest.Hash{"164": strconv.Itoa(n), "sum": strconv.FormatInt(int64(n)<<42, 10)})
}

var moveCases = storeTable{script: "move", cases: []storeCase{
	{
		name:   "nothing there",
		do:     moveWith(ShelfScheduled, 10),
		result: "0 moved, next never",
	},
	{
		name:   "nothing due",
		seed:   filedAs("_scheduled", redistest.Zset{"x": later}),
		do:     moveWith(ShelfScheduled, 10),
		result: "0 moved, next later",
	},
	{
		name:   "nothing due, the first at a round time",
		seed:   filedAs("_scheduled", redistest.Zset{"x": round}),
		do:     moveWith(ShelfScheduled, 10),
		result: "0 moved, next later",
	},
	{
		name: "due ones, the earliest first, behind what is pending",
		seed: with(filedAs("_scheduled", redistest.Zset{"x": past + 2, "y": past, "z": later, "v": past + 1}),
			redistest.State{"": redistest.List{"p"}, "_noti": ones(1)}),
		do:     moveWith(ShelfScheduled, 10),
		result: "3 moved, next later",
		want: with(filedAs("_scheduled", redistest.Zset{"z": later}), redistest.State{
			"": redistest.List{"p", "m y", "m v", "m x"}, "_noti": ones(4), "_metrics:late": veryLate(3),
		}),
	},
	{
		name:   "the last one",
		seed:   filedAs("_scheduled", redistest.Zset{"x": past}),
		do:     moveWith(ShelfScheduled, 10),
		result: "1 moved, next never",
		want:   redistest.State{"": redistest.List{"m x"}, "_noti": ones(1), "_metrics:late": veryLate(1)},
	},
	{
		name: "retries, not what is scheduled",
		seed: with(filedAs("_retry", redistest.Zset{"x": past}),
			redistest.State{"_scheduled": redistest.Zset{"y": past}, "_tasks": redistest.Hash{"x": "m x", "y": "m y"}}),
		do:     moveWith(ShelfRetry, 10),
		result: "1 moved, next never",
		want: redistest.State{
			"": redistest.List{"m x"}, "_noti": ones(1), "_scheduled": redistest.Zset{"y": past},
			"_tasks": redistest.Hash{"y": "m y"}, "_metrics:late": veryLate(1),
		},
	},
	{
		name:   "no more than asked for",
		seed:   filedAs("_scheduled", redistest.Zset{"x": past, "y": past + 1, "z": past + 2}),
		do:     moveWith(ShelfScheduled, 2),
		result: "2 moved, next overdue",
		want: with(filedAs("_scheduled", redistest.Zset{"z": past + 2}), redistest.State{
			"": redistest.List{"m x", "m y"}, "_noti": ones(2), "_metrics:late": veryLate(2),
		}),
	},
	{
		name: "too large: stays, the others are moved",
		seed: redistest.State{
			"_scheduled": redistest.Zset{"x": past, "y": past + 1, "z": past + 2},
			"_tasks": redistest.Hash{
				"x": "m x", "y": big("y", wire.WorkerLimits.Bytes+1),
				"z": "m z",
			},
		},
		do:     moveWith(ShelfScheduled, 10),
		result: "2 moved, next overdue, too large [{y 1052673}]",
		want: redistest.State{
			"_scheduled": redistest.Zset{"y": past + 1},
			"_tasks":     redistest.Hash{"y": big("y", wire.WorkerLimits.Bytes+1)},
			"":           redistest.List{"m x", "m z"}, "_noti": ones(2), "_metrics:late": veryLate(2),
		},
	},
	{
		name: "as large as a message may be, alone",
		seed: redistest.State{
			"_scheduled": redistest.Zset{"x": past, "y": past + 1},
			"_tasks":     redistest.Hash{"x": fullSize, "y": "m y"},
		},
		do:     moveWith(ShelfScheduled, 10),
		result: "1 moved, next overdue",
		want: redistest.State{
			"_scheduled": redistest.Zset{"y": past + 1}, "_tasks": redistest.Hash{"y": "m y"},
			"": redistest.List{fullSize}, "_noti": ones(1), "_metrics:late": veryLate(1),
		},
	},
	{
		name: "ids without a message are dropped",
		seed: redistest.State{
			"_scheduled": redistest.Zset{"x": past, "y": past + 1},
			"_tasks":     redistest.Hash{"y": "m y"}, "_info": redistest.Hash{"x": "i"},
		},
		do:     moveWith(ShelfScheduled, 10),
		result: "1 moved, next never",
		want:   redistest.State{"": redistest.List{"m y"}, "_noti": ones(1), "_metrics:late": veryLate(1)},
	},
	{
		name:   "only ids without a message",
		seed:   redistest.State{"_scheduled": redistest.Zset{"x": past}},
		do:     moveWith(ShelfScheduled, 10),
		result: "0 moved, next never",
		want:   redistest.State{},
	},
	{
		name:   "as many as a call may have",
		seed:   manyDue,
		do:     moveWith(ShelfScheduled, 1000),
		result: "1000 moved, next never",
		want:   redistest.State{"": manyMoved, "_noti": ones(1000), "_metrics:late": veryLate(1000)},
	},
	{
		name: "no more is counted than Redis can count",
		seed: with(filedAs("_scheduled", redistest.Zset{"x": past}),
			redistest.State{"_metrics:late": redistest.Hash{"sum": "9223372036854775000"}}),
		do:     moveWith(ShelfScheduled, 10),
		result: "1 moved, next never",
		want: redistest.State{
			"": redistest.List{"m x"}, "_noti": ones(1),
			"_metrics:late": redistest.Hash{"sum": "9223372036854775000"},
		},
	},
}}

// TestDueTimes compares the times until the next task is due, as check and move return them, with Redis's clock.
func TestDueTimes(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	conn := server.Dial(t)
	s := NewStore(dialled(t, server.URL()), "", name)
	due := redistest.Time(t, conn) + 3_600_000
	redistest.Seed(t, conn, name, filedAs("_retry", redistest.Zset{"x": due}))
	for what, look := range map[string]func() (time.Duration, error){
		"check": func() (time.Duration, error) {
			todos, err := Check(bg, s.Src, []*Store{s})
			if err != nil {
				return 0, err
			}
			return todos[0].Due, nil
		},
		"move": func() (time.Duration, error) {
			_, next, _, err := s.Move(bg, ShelfRetry, 10)
			return next, err
		},
	} {
		start := redistest.Time(t, conn)
		next, err := look()
		end := redistest.Time(t, conn)
		if err != nil || next.Milliseconds() > due-start || next.Milliseconds() < due-end {
			t.Errorf("%s: next is due in %v, expected %d to %d ms, %v", what, next, due-end, due-start, err)
		}
	}
}

// TestPastIsByRedissClock: move and trim handle what was due a moment ago, and nothing that is due in a minute.
func TestPastIsByRedissClock(t *testing.T) {
	server := redistest.Shared(t)
	src := dialled(t, server.URL())
	for set, do := range map[string]func(s *Store) (int, error){
		"_retry": func(s *Store) (int, error) {
			n, _, _, err := s.Move(bg, ShelfRetry, 10)
			return n, err
		},
		"_archived": func(s *Store) (int, error) { return s.Trim(bg, 10, 10) },
	} {
		name := redistest.Name(t)
		conn := server.Dial(t)
		now := redistest.Time(t, conn)
		redistest.Seed(t, conn, name, filedAs(set, redistest.Zset{"x": now, "y": now + 60_000}))
		if n, err := do(NewStore(src, "", name)); n != 1 || err != nil {
			t.Errorf("%s: %d tasks, %v, expected 1", set, n, err)
		}
	}
}
