package redisstore

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// shelving is a call of shelve by worker w.
type shelving struct {
	batches  []uint64
	on       Shelf
	most     int
	counters []string
	tasks    []Shelved
}

func (c shelving) do(s *Store) (any, error) {
	stood, canceled, err := s.Shelve(bg, "w", c.batches, c.on, c.most, c.counters, c.tasks)
	if canceled != nil {
		return fmt.Sprint(stood, canceled), err
	}
	return stood, err
}

// toShelve is the end of a claim: its task is stored under id with a message and an info made of the id.
func toShelve(token, id string, wait time.Duration) Shelved {
	return Shelved{Token: token, ID: id, Wait: wait, Message: []byte("m " + id), Info: []byte("i " + id)}
}

// underLock returns the task with a lock that its message names.
func underLock(lock string, task Shelved) Shelved {
	task.Lock = lock
	return task
}

// copies returns tasks and infos under the first n names that the script uses for an id.
func copies(id string, n int) (tasks, infos redistest.Hash, set redistest.Zset) {
	tasks, infos, set = redistest.Hash{}, redistest.Hash{}, redistest.Zset{}
	for i := range n {
		name := id
		if i > 0 {
			name = id + "#" + strconv.Itoa(i+1)
		}
		tasks[name], infos[name], set[name] = "old", "old", later
	}
	return tasks, infos, set
}

var copyTasks, copyInfos, copySet = copies("x", 9)

func plus[M ~map[string]V, V any](m M, key string, value V) M {
	out := M{key: value}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// manyShelved are as many tasks as one call stores, with the tokens of manyTokens.
var manyShelved, manyFiled = func() (list []Shelved, state redistest.State) {
	set, tasks, infos := redistest.Zset{}, redistest.Hash{}, redistest.Hash{}
	for i := range MaxShelved {
		id := fmt.Sprintf("id%d", i)
		list = append(list, toShelve(manyTokens[i], id, time.Hour))
		set[id], tasks[id], infos[id] = fromNow(time.Hour), "m "+id, "i "+id
	}
	held := redistest.Hash{}
	for _, token := range manyTokens[MaxShelved:] {
		held[token] = manyClaims[token]
	}
	return list, with(manyHeld, redistest.State{
		"_processing:w": held, "_retry": set, "_tasks": tasks, "_info": infos, "_wake": ones(1),
	})
}()

// manyOld are 1,005 archived tasks, five more than one call trims.
var manyOld = func() redistest.State {
	set, tasks, infos := redistest.Zset{}, redistest.Hash{}, redistest.Hash{}
	for i := range 1005 {
		id := fmt.Sprintf("old%04d", i)
		set[id], tasks[id], infos[id] = int64(past+i), "m", "i"
	}
	return redistest.State{"_archived": set, "_tasks": tasks, "_info": infos}
}()

var shelveCases = storeTable{script: "shelve", cases: []storeCase{
	{
		name: "a task that was canceled stays claimed",
		seed: working(redistest.State{"_revoked": redistest.Zset{"x": later, "z": later}}),
		do: shelving{on: ShelfRetry, counters: []string{"retried"}, tasks: []Shelved{
			toShelve("3-1", "x", time.Minute), toShelve("3-2", "y", time.Minute), toShelve("5-1", "z", time.Minute),
		}}.do,
		result: "[false true false] [true false false]",
		want: working(with(left("3-1 3-3 4-1", "3 4"), redistest.State{
			"_revoked": redistest.Zset{"x": later, "z": later}, "_retry": redistest.Zset{"y": fromNow(time.Minute)},
			"_tasks": redistest.Hash{"y": "m y"}, "_info": redistest.Hash{"y": "i y"}, "_wake": ones(1),
			testDay: counted(redistest.Hash{"retried": "1"}),
		})),
	},
	{
		name: "retry: due from now, wakes a mover",
		seed: working(nil),
		do: shelving{on: ShelfRetry, counters: []string{"processed", "failed", "retried"}, tasks: []Shelved{
			toShelve("3-1", "x", time.Minute), toShelve("4-1", "y", time.Millisecond),
		}, batches: []uint64{4}}.do,
		result: all(2),
		want: working(with(left("3-2 3-3", "3"), redistest.State{
			"_retry": redistest.Zset{"x": fromNow(time.Minute), "y": fromNow(time.Millisecond)},
			"_tasks": redistest.Hash{"x": "m x", "y": "m y"}, "_info": redistest.Hash{"x": "i x", "y": "i y"},
			"_wake": ones(1),
			testDay: counted(redistest.Hash{"processed": "2", "failed": "2", "retried": "2"}),
		})),
	},
	{
		name: "snoozed: scheduled from now, wakes a mover",
		seed: working(redistest.State{
			"_scheduled": redistest.Zset{"o": later}, "_retry": redistest.Zset{"p": past},
			"_tasks": redistest.Hash{"o": "m", "p": "m"},
		}),
		do: shelving{on: ShelfScheduled, counters: []string{"snoozed"}, tasks: []Shelved{
			toShelve("3-1", "x", time.Minute), toShelve("9-9", "y", 0),
		}}.do,
		result: []bool{true, false},
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_scheduled": redistest.Zset{"o": later, "x": fromNow(time.Minute)}, "_retry": redistest.Zset{"p": past},
			"_tasks": redistest.Hash{"o": "m", "p": "m", "x": "m x"}, "_info": redistest.Hash{"x": "i x"},
			"_wake": ones(1),
			testDay: counted(redistest.Hash{"snoozed": "1"}),
		})),
	},
	{
		name:   "retry: later than the first wakes nobody",
		seed:   working(redistest.State{"_retry": redistest.Zset{"o": past}, "_tasks": redistest.Hash{"o": "m"}}),
		do:     shelving{on: ShelfRetry, tasks: []Shelved{toShelve("3-1", "x", time.Minute)}}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_retry": redistest.Zset{"o": past, "x": fromNow(time.Minute)},
			"_tasks": redistest.Hash{"o": "m", "x": "m x"},
			"_info":  redistest.Hash{"x": "i x"},
		})),
	},
	{
		name:   "retry: earlier than a round time",
		seed:   working(redistest.State{"_retry": redistest.Zset{"o": round}, "_tasks": redistest.Hash{"o": "m"}}),
		do:     shelving{on: ShelfRetry, tasks: []Shelved{toShelve("3-1", "x", time.Minute)}}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_retry": redistest.Zset{"o": round, "x": fromNow(time.Minute)},
			"_tasks": redistest.Hash{"o": "m", "x": "m x"},
			"_info":  redistest.Hash{"x": "i x"}, "_wake": ones(1),
		})),
	},
	{
		name: "retry: the earliest of several decides about waking",
		seed: working(redistest.State{"_retry": redistest.Zset{"o": later}, "_tasks": redistest.Hash{"o": "m"}}),
		do: shelving{on: ShelfRetry, tasks: []Shelved{
			toShelve("3-1", "x", 200*365*24*time.Hour), toShelve("3-2", "y", time.Second),
			toShelve("3-3", "z", 200*365*24*time.Hour),
		}}.do,
		result: all(3),
		want: working(with(left("4-1", "3 4"), redistest.State{
			"_retry": redistest.Zset{
				"o": later, "x": fromNow(200 * 365 * 24 * time.Hour), "y": fromNow(time.Second),
				"z": fromNow(200 * 365 * 24 * time.Hour),
			},
			"_tasks": redistest.Hash{"o": "m", "x": "m x", "y": "m y", "z": "m z"},
			"_info":  redistest.Hash{"x": "i x", "y": "i y", "z": "i z"},
			"_wake":  ones(1),
		})),
	},
	{
		name:   "retry: a mover that has been called is not called again",
		seed:   working(redistest.State{"_wake": ones(1)}),
		do:     shelving{on: ShelfRetry, tasks: []Shelved{toShelve("3-1", "x", time.Second)}}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_retry": redistest.Zset{"x": fromNow(time.Second)}, "_tasks": redistest.Hash{"x": "m x"},
			"_info": redistest.Hash{"x": "i x"}, "_wake": ones(1),
		})),
	},
	{
		name: "retry at once: pending at the end, in the order of the claims, with no mover, lock or copy of an id",
		seed: both(working(redistest.State{
			"": redistest.List{"m o"}, "_noti": ones(1), "_scheduled": redistest.Zset{"x": later},
			"_tasks": redistest.Hash{"x": "m"}, "_revoked": redistest.Zset{"s": later},
		}), locked(later, redistest.Hash{"k:a": "x"})),
		do: shelving{on: ShelfRetry, counters: []string{"retried"}, tasks: []Shelved{
			underLock("k:a", toShelve("3-2", "y", 0)), toShelve("3-1", "x", 0), toShelve("3-3", "s", 0),
			toShelve("4-1", "z", time.Minute), toShelve("9-9", "n", 0),
		}, batches: []uint64{4}}.do,
		result: "[true true false true false] [false false true false false]",
		want: both(working(with(left("3-3", "3"), redistest.State{
			"": redistest.List{"m o", "m y", "m x"}, "_noti": ones(3),
			"_scheduled": redistest.Zset{"x": later}, "_retry": redistest.Zset{"z": fromNow(time.Minute)},
			"_tasks": redistest.Hash{"x": "m", "z": "m z"}, "_info": redistest.Hash{"z": "i z"},
			"_revoked": redistest.Zset{"s": later}, "_wake": ones(1),
			testDay: counted(redistest.Hash{"retried": "3"}),
		})), locked(later, redistest.Hash{"k:a": "x"})),
	},
	{
		name: "snoozed for no time: pending, and no mover is called",
		seed: working(redistest.State{"_scheduled": redistest.Zset{"o": later}, "_tasks": redistest.Hash{"o": "m"}}),
		do: shelving{on: ShelfScheduled, counters: []string{"snoozed"}, tasks: []Shelved{
			toShelve("3-1", "x", 0),
		}}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"": redistest.List{"m x"}, "_noti": ones(1), "_scheduled": redistest.Zset{"o": later},
			"_tasks": redistest.Hash{"o": "m"}, testDay: counted(redistest.Hash{"snoozed": "1"}),
		})),
	},
	{
		name: "parked: no mover is called",
		seed: working(nil),
		do: shelving{
			on: ShelfParked, counters: []string{"parked"},
			tasks: []Shelved{toShelve("3-1", "x", time.Hour)},
		}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_parked": redistest.Zset{"x": fromNow(time.Hour)}, "_tasks": redistest.Hash{"x": "m x"},
			"_info": redistest.Hash{"x": "i x"},
			testDay: counted(redistest.Hash{"parked": "1"}),
		})),
	},
	{
		name: "archived, be it for no time: no mover is called",
		seed: working(nil),
		do: shelving{
			on: ShelfArchived, most: 10, counters: []string{"archived"},
			tasks: []Shelved{toShelve("3-1", "x", 0)},
		}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"x": fromNow(0)}, "_tasks": redistest.Hash{"x": "m x"},
			"_info": redistest.Hash{"x": "i x"},
			testDay: counted(redistest.Hash{"archived": "1"}),
		})),
	},
	{
		name: "without a message: as it was claimed",
		seed: working(nil),
		do: shelving{on: ShelfArchived, most: 10, tasks: []Shelved{
			{Token: "3-1", ID: "x", Wait: time.Hour, Info: []byte("i x")},
			{Token: "2-1", ID: "y", Wait: time.Hour, Info: []byte("i y")},
		}}.do,
		result: []bool{true, false},
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"x": fromNow(time.Hour)}, "_tasks": redistest.Hash{"x": "a"},
			"_info": redistest.Hash{"x": "i x"},
		})),
	},
	{
		name: "stale tokens file nothing",
		seed: working(nil),
		do: shelving{on: ShelfRetry, counters: []string{"failed"}, tasks: []Shelved{
			toShelve("2-1", "v", 0), toShelve("3-1", "x", time.Second), toShelve("3-1", "y", 0), toShelve("", "z", 0),
		}}.do,
		result: []bool{false, true, false, false},
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_retry": redistest.Zset{"x": fromNow(time.Second)}, "_tasks": redistest.Hash{"x": "m x"},
			"_info": redistest.Hash{"x": "i x"}, "_wake": ones(1),
			testDay: counted(redistest.Hash{"failed": "1"}),
		})),
	},
	{
		name: "none stands: only the batch goes",
		seed: working(left("4-1", "3 4")),
		do: shelving{
			batches: []uint64{3}, on: ShelfRetry, counters: []string{"failed"},
			tasks: []Shelved{toShelve("3-1", "v", 0)},
		}.do,
		result: []bool{false},
		want:   working(left("4-1", "4")),
	},
	{
		name: "retry: ids and locks last longer by the wait, those of others do not",
		seed: both(working(nil),
			locked(later, redistest.Hash{"k:a": "x", "#x": "x", "#y": "y", "k:b": "z", "k:c": "n"})),
		do: shelving{on: ShelfRetry, tasks: []Shelved{
			underLock("k:a", toShelve("3-1", "x", time.Minute)), underLock("#y", toShelve("3-2", "y", time.Hour)),
			underLock("k:b", toShelve("3-3", "s", time.Minute)), underLock("k:c", toShelve("2-1", "n", time.Minute)),
		}}.do,
		result: []bool{true, true, true, false},
		want: both(working(with(left("4-1", "3 4"), redistest.State{
			"_retry": redistest.Zset{"x": fromNow(time.Minute), "y": fromNow(time.Hour), "s": fromNow(time.Minute)},
			"_tasks": redistest.Hash{"x": "m x", "y": "m y", "s": "m s"},
			"_info":  redistest.Hash{"x": "i x", "y": "i y", "s": "i s"}, "_wake": ones(1),
		})), locked(later+60_000, redistest.Hash{"k:a": "x", "#x": "x"}), locked(later+3600_000,
			redistest.Hash{"#y": "y"}),
			locked(later, redistest.Hash{"k:b": "z", "k:c": "n"})),
	},
	{
		name:   "parked: the lock lasts for as long",
		seed:   both(working(nil), locked(later, redistest.Hash{"k:a": "x"})),
		do:     shelving{on: ShelfParked, tasks: []Shelved{underLock("k:a", toShelve("3-1", "x", time.Hour))}}.do,
		result: all(1),
		want: both(working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_parked": redistest.Zset{"x": fromNow(time.Hour)}, "_tasks": redistest.Hash{"x": "m x"},
			"_info": redistest.Hash{"x": "i x"},
		})), locked(later+3600_000, redistest.Hash{"k:a": "x"})),
	},
	{
		name: "archived: ids and locks are free, those of others are not",
		seed: both(working(nil),
			locked(later, redistest.Hash{"k:a": "x", "#x": "x", "#y": "y", "k:b": "z", "k:c": "n"})),
		do: shelving{on: ShelfArchived, most: 10, tasks: []Shelved{
			underLock("k:a", toShelve("3-1", "x", time.Hour)), underLock("#y", toShelve("3-2", "y", time.Hour)),
			underLock("k:b", toShelve("3-3", "s", time.Hour)), underLock("k:c", toShelve("2-1", "n", time.Hour)),
		}}.do,
		result: []bool{true, true, true, false},
		want: both(working(with(left("4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"x": fromNow(time.Hour), "y": fromNow(time.Hour), "s": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"x": "m x", "y": "m y", "s": "m s"},
			"_info":     redistest.Hash{"x": "i x", "y": "i y", "s": "i s"},
		})), locked(later, redistest.Hash{"k:b": "z", "k:c": "n"})),
	},
	{
		name: "archived: the last lock",
		seed: both(working(nil), locked(later, redistest.Hash{"k:a": "x"})),
		do: shelving{on: ShelfArchived, most: 10, tasks: []Shelved{
			underLock("k:a", toShelve("3-1", "x", time.Hour)),
		}}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"x": fromNow(time.Hour)}, "_tasks": redistest.Hash{"x": "m x"},
			"_info": redistest.Hash{"x": "i x"},
		})),
	},
	{
		name: "an id that is taken becomes id#2, then id#3",
		seed: working(redistest.State{
			"_scheduled": redistest.Zset{"x": later},
			"_tasks":     redistest.Hash{"x": "other"},
		}),
		do: shelving{on: ShelfRetry, tasks: []Shelved{
			toShelve("3-1", "x", time.Minute), toShelve("3-2", "x", time.Minute), toShelve("3-3", "y", time.Minute),
		}}.do,
		result: all(3),
		want: working(with(left("4-1", "3 4"), redistest.State{
			"_scheduled": redistest.Zset{"x": later},
			"_retry": redistest.Zset{
				"x#2": fromNow(time.Minute), "x#3": fromNow(time.Minute),
				"y": fromNow(time.Minute),
			},
			"_tasks": redistest.Hash{"x": "other", "x#2": "m x", "x#3": "m x", "y": "m y"},
			"_info":  redistest.Hash{"x#2": "i x", "x#3": "i x", "y": "i y"}, "_wake": ones(1),
		})),
	},
	{
		name:   "the tenth copy",
		seed:   working(redistest.State{"_parked": copySet, "_tasks": copyTasks, "_info": copyInfos}),
		do:     shelving{on: ShelfParked, tasks: []Shelved{toShelve("3-1", "x", time.Hour)}}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_parked": plus(copySet, "x#10", fromNow(time.Hour)), "_tasks": plus(copyTasks, "x#10", "m x"),
			"_info": plus(copyInfos, "x#10", "i x"),
		})),
	},
	{
		name: "trimming: the oldest go, with all that is known of them",
		seed: working(redistest.State{
			"_archived":  redistest.Zset{"o1": past, "o2": past + 1, "o3": later},
			"_tasks":     redistest.Hash{"o1": "m1", "o2": "m2", "o3": "m3", "s": "m4"},
			"_scheduled": redistest.Zset{"s": later},
			"_info":      redistest.Hash{"o1": "i1", "o3": "i3"},
		}),
		do: shelving{
			on: ShelfArchived, most: 2, counters: []string{"archived"},
			tasks: []Shelved{toShelve("3-1", "x", time.Hour)},
		}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"o3": later, "x": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"o3": "m3", "s": "m4", "x": "m x"}, "_scheduled": redistest.Zset{"s": later},
			"_info": redistest.Hash{"o3": "i3", "x": "i x"},
			testDay: counted(redistest.Hash{"archived": "1", "trimmed": "2"}),
		})),
	},
	{
		name: "trimming: one",
		seed: working(filedAs("_archived", redistest.Zset{"o1": past, "o2": later})),
		do: shelving{
			on: ShelfArchived, most: 2, counters: []string{"archived"},
			tasks: []Shelved{toShelve("3-1", "x", time.Hour)},
		}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"o2": later, "x": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"o2": "m o2", "x": "m x"},
			"_info":     redistest.Hash{"o2": "i o2", "x": "i x"},
			testDay:     counted(redistest.Hash{"archived": "1", "trimmed": "1"}),
		})),
	},
	{
		name: "trimming: not below the bound",
		seed: working(redistest.State{
			"_archived": redistest.Zset{"o1": past}, "_tasks": redistest.Hash{"o1": "m1"},
			"_info": redistest.Hash{"o1": "i1"},
		}),
		do: shelving{
			on: ShelfArchived, most: 2, counters: []string{"archived"},
			tasks: []Shelved{toShelve("3-1", "x", time.Hour)},
		}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"o1": past, "x": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"o1": "m1", "x": "m x"},
			"_info":     redistest.Hash{"o1": "i1", "x": "i x"}, testDay: counted(redistest.Hash{"archived": "1"}),
		})),
	},
	{
		name: "trimming: no more than 1,000 in one call",
		seed: working(manyOld),
		do: shelving{
			on: ShelfArchived, most: 1, counters: []string{"archived"},
			tasks: []Shelved{toShelve("3-1", "x", time.Hour)},
		}.do,
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{
				"old1000": past + 1000, "old1001": past + 1001, "old1002": past + 1002, "old1003": past + 1003,
				"old1004": past + 1004,
				"x":       fromNow(time.Hour),
			},
			"_tasks": redistest.Hash{
				"old1000": "m", "old1001": "m", "old1002": "m", "old1003": "m", "old1004": "m",
				"x": "m x",
			},
			"_info": redistest.Hash{
				"old1000": "i", "old1001": "i", "old1002": "i", "old1003": "i", "old1004": "i",
				"x": "i x",
			},
			testDay: counted(redistest.Hash{"archived": "1", "trimmed": "1000"}),
		})),
	},
	{
		name:   "as many as a call may have",
		seed:   manyHeld,
		do:     shelving{on: ShelfRetry, tasks: manyShelved}.do,
		result: all(MaxShelved),
		want:   manyFiled,
	},
}}

// TestFilingBeyondTenCopies: if ten copies of an id exist, a further one gets a name made of token and time.
func TestFilingBeyondTenCopies(t *testing.T) {
	server := redistest.Shared(t)
	src := dialled(t, server.URL())
	tasks, infos, set := copies("x", 10)
	for script, do := range map[string]func(s *Store) (any, error){
		"shelve": shelving{on: ShelfArchived, tasks: []Shelved{toShelve("3-1", "x", time.Hour)}}.do,
		"sweep":  sweepW(judged("3-1", "m x", "archive", "x")),
	} {
		t.Run(script, func(t *testing.T) {
			name := redistest.Name(t)
			conn := server.Dial(t)
			seed := with(dead, redistest.State{
				"_retry": set, "_tasks": tasks, "_info": infos,
				"_processing:w": redistest.Hash{"3-1": "m x"},
			})
			redistest.Seed(t, conn, name, present(seed))
			start := redistest.Time(t, conn)
			if _, err := do(NewStore(src, "", name)); err != nil {
				t.Fatal(err)
			}
			end := redistest.Time(t, conn)
			have := redistest.Dump(t, conn, name)
			found, _ := have["_tasks"].(redistest.Hash)
			maps.DeleteFunc(found, func(id, _ string) bool { return tasks[id] != "" })
			for id, message := range found {
				at, err := strconv.ParseInt(strings.TrimPrefix(id, "x#3-1-"), 10, 64)
				if err != nil || at < start || at > end || strings.TrimSuffix(message, "+") != "m x" {
					t.Errorf("filed %q as %q, expected x#3-1-%d or up to %d", message, id, start, end)
				}
				archived, _ := have["_archived"].(redistest.Zset)
				info, _ := have["_info"].(redistest.Hash)
				if archived[id] < start+time.Hour.Milliseconds() || info[id] != "i x" {
					t.Errorf("%q expires at %d with the info %q", id, archived[id], info[id])
				}
			}
			if len(found) != 1 {
				t.Errorf("%d tasks were filed, expected 1", len(found))
			}
			redistest.CheckInvariants(t, conn, name, redistest.Invariants{})
		})
	}
}
