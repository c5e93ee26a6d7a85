package redisstore

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// oneVersion is a control hash with nothing but a version.
var oneVersion = redistest.Hash{"version": "5"}

// weighed is a control hash without a version.
var weighed = redistest.Hash{"weight": "3"}

// movingCases empty keys while their slot moves to another node. Redis runs a script in such a slot only if all of its
// keys exist, and refuses each command of the script that names a key which no longer exists, even if the script itself
// has emptied that key.
var movingCases = []struct {
	name   string
	seed   redistest.State
	do     func(s *Store) (any, error)
	result any
	cut    bool // whether Redis ends the script after its last effect
	want   redistest.State
}{
	{
		name: "claim of everything",
		seed: working(redistest.State{
			"": redistest.List{"x", "y"}, "_noti": ones(2),
			testDay: counted(redistest.Hash{"processed": "1"}), "_control": oneVersion,
		}),
		do:     claimWith(ClaimCall{Batch: 7, Most: 10}),
		result: claimReply{"x y", 0},
		want: with(working(nil), redistest.State{
			"_processing:w": redistest.Hash{"3-1": "a", "3-2": "b", "3-3": "c", "4-1": "d", "7-1": "x", "7-2": "y"},
			"_claims:w":     redistest.Hash{"3": "1000", "4": "2000", "7": nowMark},
			testDay:         counted(redistest.Hash{"processed": "1"}),
			"_control":      oneVersion,
		}),
	},
	{
		name: "claim of the last notification",
		seed: working(redistest.State{
			"": redistest.List{"x", "y"}, "_noti": ones(1),
			testDay: counted(redistest.Hash{"processed": "1"}), "_control": oneVersion,
		}),
		do:     claimWith(ClaimCall{Batch: 7, Most: 1}),
		result: claimReply{"x", 1},
		want: with(working(redistest.State{"": redistest.List{"y"}, "_noti": ones(1)}), redistest.State{
			"_processing:w": redistest.Hash{"3-1": "a", "3-2": "b", "3-3": "c", "4-1": "d", "7-1": "x"},
			"_claims:w":     redistest.Hash{"3": "1000", "4": "2000", "7": nowMark},
			testDay:         counted(redistest.Hash{"processed": "1"}),
			"_control":      oneVersion,
		}),
	},
	{
		name: "claim that ends all others",
		seed: working(redistest.State{
			"": redistest.List{"x"}, "_noti": ones(1),
			testDay: counted(redistest.Hash{"processed": "1"}), "_control": oneVersion,
		}),
		do: claimWith(ClaimCall{Batch: 7, Most: 10, Ended: Ended{
			Pulse: "u", Tokens: []string{"3-1", "3-2", "3-3", "4-1", "4-2"}, Batches: []uint64{3, 4},
		}}),
		result: claimReplyWith{claimReply{"x", 0}, []bool{true, true, true, true, false}},
		want: with(working(nil), redistest.State{
			"_processing:w": redistest.Hash{"7-1": "x"}, "_claims:w": redistest.Hash{"7": nowMark},
			testDay: counted(redistest.Hash{"processed": "5"}), "_control": oneVersion,
		}),
	},
	{
		name:   "acknowledgement of the last claims and of a stale one",
		seed:   working(redistest.State{testDay: counted(redistest.Hash{"processed": "1"})}),
		do:     ackWith([]uint64{3, 4}, 0, "3-1", "3-2", "3-3", "4-1", "4-2"),
		result: []bool{true, true, true, true, false},
		want:   working(with(left("", ""), redistest.State{testDay: counted(redistest.Hash{"processed": "5"})})),
	},
	{
		name: "completion of the last claims, with the last lock, the last cancellation and what is over",
		seed: working(redistest.State{
			"_revoked":   redistest.Zset{"z": later},
			"_completed": redistest.Zset{"o": past}, "_results": redistest.Hash{"o": "r"},
			"_locks": redistest.Hash{"a": "4000000000001 x"}, testDay: counted(redistest.Hash{"processed": "1"}),
		}),
		do: completeWith([]uint64{3, 4}, kept("3-1", "x"), kept("3-2", "y"), kept("3-3", "z"),
			Completed{Token: "4-1", ID: "x", Keep: time.Hour, Value: []byte("r x"), Lock: "a"}, kept("4-2", "stale")),
		result: []bool{true, true, true, true, false},
		want: working(with(left("", ""), redistest.State{
			"_completed": redistest.Zset{"x": fromNow(time.Hour), "y": fromNow(time.Hour), "z": fromNow(time.Hour)},
			"_results":   redistest.Hash{"x": "r x", "y": "r y", "z": "r z"},
			testDay:      counted(redistest.Hash{"processed": "5"}),
		})),
	},
	{
		name:   "release of the last claims and of a stale one",
		seed:   working(with(left("3-1 3-2", "3"), redistest.State{"": redistest.List{"x"}, "_noti": ones(1)})),
		do:     releaseWith([]uint64{3}, "3-1", "3-2", "3-3"),
		result: []bool{true, true, false},
		want:   working(with(left("", ""), redistest.State{"": redistest.List{"a", "b", "x"}, "_noti": ones(3)})),
	},
	{
		name: "unpark of the last task and of one that is not parked",
		seed: with(with(queued("", 0), filedAs("_parked", redistest.Zset{"x": later})), redistest.State{
			"_control": oneVersion, "_processing:w": redistest.Hash{"3-1": "a"},
			"_claims:w": redistest.Hash{"3": "1000"},
		}),
		do:     unparkWith(9, "x", "y"),
		result: "2 looked at, version 5: m x",
		want: with(queued("", 0), redistest.State{
			"_control": oneVersion, "_processing:w": redistest.Hash{"3-1": "a", "7-1": "m x"},
			"_claims:w": redistest.Hash{"3": "1000", "7": nowMark},
		}),
	},
	{
		name: "call of all members of the last group",
		seed: with(gathering(past, "1000 2000 0 3 10 4", "x", "y"),
			redistest.State{"": redistest.List{"p"}, "_noti": ones(1), "_control": weighed}),
		do:     fireWith(0, gatherings(patient, "x", "y"), "xy"),
		result: "true, due never",
		want:   redistest.State{"": redistest.List{"p", "xy"}, "_noti": ones(2), "_control": weighed},
	},
	{
		name: "last claims, of canceled tasks with all that they hold, and a stale one",
		seed: working(both(left("3-1", "3"), revokedIDs("x"), locked(later, redistest.Hash{"k:a": "x", "#x": "x"}),
			redistest.State{
				"_completed": redistest.Zset{"o": later}, "_results": redistest.Hash{"x": "half", "o": "r"},
				testDay: counted(redistest.Hash{"processed": "1"}),
			})),
		do:     completeWith([]uint64{3}, toCancel("3-1", "x"), toCancel("3-2", "x")),
		result: []bool{true, false},
		want: working(both(left("", ""), redistest.State{
			"_completed": redistest.Zset{"o": later}, "_results": redistest.Hash{"o": "r"},
			testDay: counted(redistest.Hash{"processed": "1", "canceled": "1"}),
		})),
	},
	{
		name: "cancellation of the last scheduled task",
		seed: both(filedAs("_scheduled", redistest.Zset{"x": later}),
			locked(later, redistest.Hash{"k:a": "x", "#x": "x"}), redistest.State{
				"_revoked": redistest.Zset{"x": later}, "_control": weighed, "_retry": redistest.Zset{"o": later},
				"_parked":   redistest.Zset{"o": later},
				"_archived": redistest.Zset{"o": later}, "_completed": redistest.Zset{"o": later},
				"_results": redistest.Hash{"x": "half"},
				testDay:    counted(redistest.Hash{"processed": "1"}),
			}),
		do:     cancelWith("x", 0),
		result: "taken",
		want: redistest.State{
			"_control": weighed, "_retry": redistest.Zset{"o": later}, "_parked": redistest.Zset{"o": later},
			"_archived": redistest.Zset{"o": later}, "_completed": redistest.Zset{"o": later},
			testDay: counted(redistest.Hash{"processed": "1", "canceled": "1"}),
		},
	},
	{
		name:   "last claims that join a group, and a stale one",
		seed:   working(with(left("3-1", "3"), with(gathering(later, "1000 2000 0 9 5 2", "x"), wake))),
		do:     joinWith(wire.Gather{Grace: 60_000, MaxSize: 9}, []uint64{3}, "3-1", "3-2"),
		result: []bool{true, false},
		want: working(with(left("", ""),
			with(gathering(fromNow(time.Minute), "1000 now+60000 0 9 10 4", "x", "a"), wake))),
	},
	{
		name: "rerun of the last task and of one that is not archived",
		seed: both(filedAs("_archived", redistest.Zset{"x": later}), locked(later, redistest.Hash{"#o": "o"}),
			redistest.State{
				"": redistest.List{"p"}, "_noti": ones(1), "_revoked": redistest.Zset{"x": later},
			}),
		do:     rerunWith(again("x"), again("y")),
		result: []int{1, 0},
		want: both(locked(later, redistest.Hash{"#o": "o"}),
			redistest.State{"": redistest.List{"p", "new x"}, "_noti": ones(2)}),
	},
	{
		name: "enlist in place of the last tasks that are filed, and of the last lock",
		seed: both(filedAs("_scheduled", redistest.Zset{"a": later}), filedAs("_retry", redistest.Zset{"b": later}),
			filedAs("_parked", redistest.Zset{"c": later, "d": later}),
			locked(later, redistest.Hash{"k:a": "a", "k:b": "b", "k:c": "c", "k:d": "d"}),
			redistest.State{
				"": redistest.List{"p"}, "_noti": ones(1), "_revoked": redistest.Zset{"r": later},
				"_completed": redistest.Zset{"z": later},
				"_wake":      ones(1), "_control": redistest.Hash{"version": "1"},
			}),
		do: enlistWith(atBack, toEnlist("w", lockOf("k:a", conflictReplace)),
			toEnlist("x", lockOf("k:b", conflictReplace)),
			toEnlist("y", lockOf("k:c", conflictReplace)),
			toEnlist("z", lockOf("k:d", conflictReplace))),
		result: `["" "" "" ""]`,
		want: both(locked(hour, redistest.Hash{"k:a": "w", "k:b": "x", "k:c": "y", "k:d": "z"}), redistest.State{
			"": redistest.List{"p", "m w", "m x", "m y", "m z"}, "_noti": ones(5),
			"_revoked": redistest.Zset{"r": later}, "_completed": redistest.Zset{"z": later},
			"_wake": ones(1), "_control": redistest.Hash{"version": "1"},
		}),
	},
	{
		name: "unlock of the last lock",
		seed: both(locked(later, redistest.Hash{"k:a": "x"}),
			redistest.State{"_revoked": redistest.Zset{"r": later}}),
		do:     unlockOne("x", "k:a"),
		result: "left false, replaced false",
		want:   redistest.State{"_revoked": redistest.Zset{"r": later}},
	},
	{
		name:   "lapse of the last lock",
		seed:   locked(past, redistest.Hash{"k:a": "x"}),
		do:     lapseWith(10),
		result: "next 0, 1 of 1",
		want:   redistest.State{},
	},
	{
		name: "move of the last task",
		seed: with(filedAs("_scheduled", redistest.Zset{"x": past}),
			redistest.State{
				"": redistest.List{"p"}, "_noti": ones(1), "_metrics:late": redistest.Hash{"164": "1", "sum": "7"},
			}),
		do:  moveWith(ShelfScheduled, 10),
		cut: true, // at the look for the next due time
		want: redistest.State{
			"": redistest.List{"p", "m x"}, "_noti": ones(2), "_metrics:late": redistest.Hash{"164": "1", "sum": "7"},
		},
	},
	{
		name: "last tick of the only entry",
		seed: with(heldX(past), redistest.State{
			"": redistest.List{"p"}, "_noti": ones(1), "_periodic": redistest.Hash{"e": "old"},
			"_ticks": redistest.Zset{"e": past}, historyOfE: redistest.List{"line"},
			"_revoked": redistest.Zset{"y": later},
		}),
		do: func(s *Store) (any, error) {
			return s.Tick(bg, &schedule.Plan{
				Was: schedule.EntryValue{Name: "e", Raw: []byte("old")}, Free: []byte("new"), Lock: "p:e",
				Ticks: ticksE("enqueued", "overlap"),
			})
		},
		result: "",
		want: with(heldBy("e@1"), redistest.State{
			"": redistest.List{"p", "m1"}, "_noti": ones(2), "_periodic": redistest.Hash{"e": "new"},
			historyOfE: redistest.List{"1 now enqueued e@1", "line"}, "_revoked": redistest.Zset{"y": later},
		}),
	},
	{
		name: "removal of the only entry",
		seed: redistest.State{
			"_periodic": redistest.Hash{"e": "old"}, "_ticks": redistest.Zset{"e": past},
			historyOfE: redistest.List{"line"},
		},
		do:   setE("old", "", noTime),
		want: redistest.State{},
	},
}

// TestStoreWhileSlotMoves runs the cases. No task is lost, and a call that has claimed tasks returns them.
func TestStoreWhileSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	const tag = "{moving}"
	owner := cluster.NodeOf(t, tag)
	other := cluster.Nodes[0]
	if other == owner {
		other = cluster.Nodes[1]
	}
	id, err := redis.String(other.Do(t, "CLUSTER", "MYID"), nil)
	if err != nil {
		t.Fatal(err)
	}
	src := dialled(t, owner.URL())
	slot := owner.Do(t, "CLUSTER", "KEYSLOT", tag)
	for _, c := range movingCases {
		t.Run(c.name, func(t *testing.T) {
			key := tag + "." + strings.ReplaceAll(c.name, " ", ".")
			conn := owner.Dial(t)
			redistest.Seed(t, conn, key, present(c.seed))
			owner.Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", id)
			defer owner.Do(t, "CLUSTER", "SETSLOT", slot, "STABLE")
			start := redistest.Time(t, conn)
			result, err := c.do(fixedDay(NewStore(src, "", key)))
			end := redistest.Time(t, conn)
			owner.Do(t, "CLUSTER", "SETSLOT", slot, "STABLE")
			switch {
			case c.cut:
				if err == nil || errors.Is(err, ErrUnknown) || !MayHaveRun(err) {
					t.Errorf("expected an error after which the script may have run, found %v with %v", err, result)
				}
			case err != nil:
				t.Error(err)
			case !reflect.DeepEqual(result, c.result):
				t.Errorf("returned %v, expected %v", result, c.result)
			}
			have := redistest.Dump(t, conn, key)
			markTimes(have, c.want, start, end)
			if diff := redistest.Diff(have, present(c.want)); diff != "" {
				t.Errorf("after the call:\n%s", diff)
			}
		})
	}
}
