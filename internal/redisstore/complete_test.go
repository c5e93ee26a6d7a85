package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

func completeWith(batches []uint64, tasks ...Completed) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		stood, again, err := s.Complete(bg, "w", batches, tasks)
		if again != nil {
			return fmt.Sprint(stood, again), err
		}
		return stood, err
	}
}

// kept returns a task whose result is kept for an hour.
func kept(token, id string) Completed {
	return Completed{Token: token, ID: id, Keep: time.Hour, Value: []byte("r " + id), Awaited: true}
}

// manyKept are as many as one call completes, with the tokens of manyTokens.
var manyKept, manyCompleted = func() (list []Completed, state redistest.State) {
	set, results := redistest.Zset{}, redistest.Hash{}
	for i := range MaxShelved {
		id := fmt.Sprintf("id%d", i)
		list = append(list, kept(manyTokens[i], id))
		set[id], results[id] = fromNow(time.Hour), "r "+id
	}
	held := redistest.Hash{}
	for _, token := range manyTokens[MaxShelved:] {
		held[token] = manyClaims[token]
	}
	return list, with(manyHeld, redistest.State{
		"_processing:w": held, "_completed": set, "_results": results,
		testDay: counted(redistest.Hash{"processed": fmt.Sprint(MaxShelved)}),
	})
}()

var completeCases = storeTable{script: "complete", cases: append([]storeCase{
	{
		name:   "results are kept",
		seed:   working(nil),
		do:     completeWith([]uint64{4}, kept("3-1", "x"), kept("4-1", "y")),
		result: all(2),
		want: working(with(left("3-2 3-3", "3"), redistest.State{
			"_completed": redistest.Zset{"x": fromNow(time.Hour), "y": fromNow(time.Hour)},
			"_results":   redistest.Hash{"x": "r x", "y": "r y"},
			testDay:      counted(redistest.Hash{"processed": "2"}),
		})),
	},
	{
		name:   "nothing is kept",
		seed:   working(nil),
		do:     completeWith(nil, Completed{Token: "3-1", ID: "x"}),
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"),
			redistest.State{testDay: counted(redistest.Hash{"processed": "1"})})),
	},
	{
		name: "nothing is kept: what was reported of it goes",
		seed: working(redistest.State{
			"_results":   redistest.Hash{"x": "50 %", "y": "r y"},
			"_completed": redistest.Zset{"y": later},
		}),
		do:     completeWith(nil, Completed{Token: "3-1", ID: "x"}, Completed{Token: "3-2", ID: "y"}),
		result: all(2),
		want: working(with(left("3-3 4-1", "3 4"), redistest.State{
			"_results": redistest.Hash{"y": "r y"}, "_completed": redistest.Zset{"y": later},
			testDay: counted(redistest.Hash{"processed": "2"}),
		})),
	},
	{
		name: "an id that was completed before: the last one is kept",
		seed: working(redistest.State{
			"_results": redistest.Hash{"x": "old", "y": "50 %"}, "_completed": redistest.Zset{"x": past},
			"_retry": redistest.Zset{"x": later},
			"_tasks": redistest.Hash{"x": "m"}, "_info": redistest.Hash{"x": "i"},
		}),
		do:     completeWith(nil, kept("3-1", "x"), kept("3-2", "y"), Completed{Token: "3-3", ID: "y"}),
		result: all(3),
		want: working(with(left("4-1", "3 4"), redistest.State{
			"_results":   redistest.Hash{"x": "r x", "y": "r y"},
			"_completed": redistest.Zset{"x": fromNow(time.Hour), "y": fromNow(time.Hour)},
			"_retry":     redistest.Zset{"x": later},
			"_tasks":     redistest.Hash{"x": "m"}, "_info": redistest.Hash{"x": "i"},
			testDay: counted(redistest.Hash{"processed": "3"}),
		})),
	},
	{
		name: "stale tokens keep nothing",
		seed: working(redistest.State{"_results": redistest.Hash{"v": "50 %"}}),
		do: completeWith(nil, kept("2-1", "u"), kept("3-1", "x"), kept("3-1", "y"),
			Completed{Token: "", ID: "v", Lock: "k:a"}),
		result: []bool{false, true, false, false},
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_results": redistest.Hash{"v": "50 %", "x": "r x"}, "_completed": redistest.Zset{"x": fromNow(time.Hour)},
			testDay: counted(redistest.Hash{"processed": "1"}),
		})),
	},
	{
		name: "none stands: only the batch goes",
		seed: working(with(left("4-1", "3 4"),
			locked(later, redistest.Hash{"l": "v"}))),
		do: completeWith([]uint64{3},
			Completed{Token: "3-1", ID: "v", Keep: time.Hour, Value: []byte("r"), Lock: "l"}),
		result: []bool{false},
		want: working(with(left("4-1", "4"),
			locked(later, redistest.Hash{"l": "v"}))),
	},
	{
		name: "locks end, of their holders only",
		seed: working(both(locked(later, redistest.Hash{"a": "x", "#x": "x", "#z": "z"}),
			locked(later+1, redistest.Hash{"b": "z"}), locked(past, redistest.Hash{"c": "o"}))),
		do: completeWith(nil, Completed{Token: "3-1", ID: "x", Lock: "a"},
			Completed{Token: "3-2", ID: "y", Lock: "b"},
			Completed{Token: "3-3", ID: "n", Lock: "d"}, Completed{Token: "4-1", ID: "o"}),
		result: all(4),
		want: working(with(left("", "3 4"), both(locked(later, redistest.Hash{"#z": "z"}),
			locked(later+1, redistest.Hash{"b": "z"}), locked(past, redistest.Hash{"c": "o"}), redistest.State{
				testDay: counted(redistest.Hash{"processed": "4"}),
			}))),
	},
	{
		name:   "the last lock",
		seed:   working(locked(later, redistest.Hash{"a": "x"})),
		do:     completeWith(nil, Completed{Token: "3-1", ID: "x", Keep: time.Hour, Value: []byte("r x"), Lock: "a"}),
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_completed": redistest.Zset{"x": fromNow(time.Hour)}, "_results": redistest.Hash{"x": "r x"},
			testDay: counted(redistest.Hash{"processed": "1"}),
		})),
	},
	{
		name:   "that they were canceled is forgotten, unless their claim does not stand",
		seed:   working(redistest.State{"_revoked": redistest.Zset{"x": later, "y": later, "v": later, "o": later}}),
		do:     completeWith(nil, kept("3-1", "x"), Completed{Token: "3-2", ID: "y"}, Completed{Token: "2-1", ID: "v"}),
		result: []bool{true, true, false},
		want: working(with(left("3-3 4-1", "3 4"), redistest.State{
			"_revoked": redistest.Zset{"v": later, "o": later}, "_completed": redistest.Zset{"x": fromNow(time.Hour)},
			"_results": redistest.Hash{"x": "r x"},
			testDay:    counted(redistest.Hash{"processed": "2"}),
		})),
	},
	{
		name: "what was kept for long enough goes, others stay",
		seed: working(redistest.State{
			"_completed": redistest.Zset{"o": past, "p": past + 1, "l": later, "r": round},
			"_results":   redistest.Hash{"o": "r", "p": "r", "l": "r", "r": "r", "a": "50 %"},
		}),
		do:     completeWith(nil, kept("3-1", "x")),
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_completed": redistest.Zset{"l": later, "r": round, "x": fromNow(time.Hour)},
			"_results":   redistest.Hash{"l": "r", "r": "r", "a": "50 %", "x": "r x"},
			testDay:      counted(redistest.Hash{"processed": "1"}),
		})),
	},
	{
		name:   "no more than 200 go in one call",
		seed:   working(manyOver),
		do:     completeWith(nil, kept("3-1", "x")),
		result: all(1),
		want: working(with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_completed": redistest.Zset{
				"old200": past + 200, "old201": past + 201, "old202": past + 202, "old203": past + 203,
				"old204": past + 204, "x": fromNow(time.Hour),
			},
			"_results": redistest.Hash{
				"old200": "r", "old201": "r", "old202": "r", "old203": "r", "old204": "r",
				"x": "r x",
			},
			testDay: counted(redistest.Hash{"processed": "1"}),
		})),
	},
	{
		name:   "as many as a call may have",
		seed:   manyHeld,
		do:     completeWith(nil, manyKept...),
		result: all(MaxShelved),
		want:   manyCompleted,
	},
}, canceledEnds...)}

// TestEndsAreTold checks what scripts that end tasks for good publish: the ends of tasks for which a caller may wait,
// if the claim existed.
func TestEndsAreTold(t *testing.T) {
	shelving := shelving{on: ShelfArchived, most: 10, tasks: []Shelved{
		toShelve("2-1", "stale", 0),
		toShelve("3-1", "x", 0), toShelve("3-2", "quiet", 0), toShelve("4-1", "y", 0),
	}}
	sweeping := []SweepAction{
		judged("4-1", "d", "archive", "y"), judged("3-3", "other", "archive", "stale"),
		judged("3-2", "b", "requeue", "again"), judged("3-1", "a", "archive", "x"),
	}
	for i := range 4 {
		shelving.tasks[i].Awaited, sweeping[i].Awaited = i != 2, true
	}
	for _, c := range []struct {
		script string
		seed   redistest.State
		do     func(s *Store) (any, error)
		want   []string
	}{
		{"complete", working(nil), completeWith(nil, kept("3-1", "x"), kept("2-1", "stale"),
			Completed{Token: "3-2", ID: "quiet"}, kept("4-1", "y")), []string{"x", "y"}},
		{"shelve", working(nil), shelving.do, []string{"x", "y"}},
		{"sweep", dead, sweepW(sweeping...), []string{"y", "x"}},
	} {
		t.Run(c.script, func(t *testing.T) {
			server := redistest.Shared(t)
			name := redistest.Name(t)
			s := NewStore(dialled(t, server.URL()), "", name)
			redistest.Seed(t, server.Dial(t), name, present(c.seed))
			conn := redis.PubSubConn{Conn: server.Dial(t)}
			if err := conn.PSubscribe(name + "_ended:*"); err != nil {
				t.Fatal(err)
			}
			hear := func() string {
				for {
					switch v := conn.ReceiveWithTimeout(redistest.Patience).(type) {
					case redis.Subscription:
						return ""
					case redis.Message:
						return strings.TrimPrefix(v.Channel, name+"_ended:")
					case error:
						t.Fatal(v)
					}
				}
			}
			hear()
			if _, err := c.do(s); err != nil {
				t.Fatal(err)
			}
			if _, err := server.Dial(t).Do("PUBLISH", name+"_ended:last", ""); err != nil {
				t.Fatal(err)
			}
			var heard []string
			for id := hear(); id != "last"; id = hear() {
				heard = append(heard, id)
			}
			if !slices.Equal(heard, c.want) {
				t.Errorf("heard %q, expected %q", heard, c.want)
			}
		})
	}
}

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
