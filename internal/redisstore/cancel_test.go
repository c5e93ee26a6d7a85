package redisstore

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

func cancelWith(id string, keep time.Duration) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		found, err := s.Look(bg, id, true)
		return cancelSeen(id, "k:a", err != nil || found.Message.Exists(), keep)(s) // the script says what is wrong
	}
}

func cancelSeen(id, lock string, filed bool, keep time.Duration) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		became, err := s.Cancel(bg, id, lock, filed, keep, []byte("c "+id))
		return map[Cancellation]string{
			CancelTooLate: "too late", cancelRevoked: "revoked", cancelTaken: "taken",
			CancelAgain: "again",
		}[became], err
	}
}

// revokedNow is the state after a cancellation, which also signals the workers that may run the task.
func revokedNow(id string) redistest.State {
	return both(redistest.State{"_revoked": redistest.Zset{id: fromNow(revokedLife)}}, controlledNow(nil))
}

var countedCancel = redistest.State{testDay: counted(redistest.Hash{"canceled": "1"})}

var cancelCases = storeTable{script: "cancel", cases: []storeCase{
	{
		name:   "scheduled",
		seed:   filedAs("_scheduled", redistest.Zset{"x": later, "y": later}),
		do:     cancelWith("x", 0),
		result: "taken",
		want:   both(filedAs("_scheduled", redistest.Zset{"y": later}), countedCancel),
	},
	{
		name: "retrying, with a lock and an id of its own",
		seed: both(filedAs("_retry", redistest.Zset{"x": past}),
			locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"})),
		do:     cancelWith("x", 0),
		result: "taken",
		want:   both(locked(later, redistest.Hash{"k:b": "y"}), countedCancel),
	},
	{
		name: "parked, and its lock is another's by now",
		seed: both(filedAs("_parked", redistest.Zset{"x": later}),
			locked(later, redistest.Hash{"k:a": "y"})),
		do:     cancelWith("x", 0),
		result: "taken",
		want:   both(locked(later, redistest.Hash{"k:a": "y"}), countedCancel),
	},
	{
		name:   "scheduled, and somebody waits for it",
		seed:   filedAs("_scheduled", redistest.Zset{"x": later}),
		do:     cancelWith("x", time.Hour),
		result: "taken",
		want: both(redistest.State{
			"_completed": redistest.Zset{"x": fromNow(time.Hour)},
			"_results":   redistest.Hash{"x": "c x"},
		}, countedCancel),
	},
	{
		name: "retrying, after a report of progress",
		seed: both(filedAs("_retry", redistest.Zset{"x": later}),
			redistest.State{"_results": redistest.Hash{"x": "half", "y": "half"}}),
		do:     cancelWith("x", 0),
		result: "taken",
		want:   both(redistest.State{"_results": redistest.Hash{"y": "half"}}, countedCancel),
	},
	{
		name:   "filed since it was looked at",
		seed:   filedAs("_retry", redistest.Zset{"x": later}),
		do:     cancelSeen("x", "", false, 0),
		result: "again",
	},
	{
		name:   "gone since it was looked at",
		do:     cancelSeen("x", "k:a", true, time.Hour),
		result: "revoked",
		want:   revokedNow("x"),
	},
	{
		name:   "nowhere to be seen: it may be pending or active",
		do:     cancelWith("x", time.Hour),
		result: "revoked",
		want:   revokedNow("x"),
	},
	{
		name: "again",
		seed: both(redistest.State{"_revoked": redistest.Zset{"x": later - 1000}},
			controlled(redistest.Hash{"paused": "4"})),
		do:     cancelWith("x", 0),
		result: "revoked",
		want: both(redistest.State{"_revoked": redistest.Zset{"x": fromNow(revokedLife)}},
			controlledNow(redistest.Hash{"paused": "4"})),
	},
	{
		name:   "pending or active: its lock and its id stay, but the lock counts as free",
		seed:   locked(later, redistest.Hash{"k:a": "x", "#x": "x"}),
		do:     cancelWith("x", 0),
		result: "revoked",
		want:   both(locked(later, redistest.Hash{"k:a": "x", "#x": "x"}), revokedNow("x")),
	},
	{
		name: "what is over is forgotten",
		seed: both(redistest.State{"_revoked": redistest.Zset{"a": past, "b": past + 1, "c": later}},
			controlled(nil)),
		do:     cancelWith("x", 0),
		result: "revoked",
		want: both(redistest.State{"_revoked": redistest.Zset{"c": later, "x": fromNow(revokedLife)}},
			controlledNow(nil)),
	},
	{
		name:   "archived",
		seed:   filedAs("_archived", redistest.Zset{"x": later}),
		do:     cancelWith("x", time.Hour),
		result: "too late",
	},
	{
		name:   "completed",
		seed:   redistest.State{"_completed": redistest.Zset{"x": later}, "_results": redistest.Hash{"x": "r"}},
		do:     cancelWith("x", time.Hour),
		result: "too late",
	},
	{
		name:   "completed at a round time",
		seed:   redistest.State{"_completed": redistest.Zset{"x": round}, "_results": redistest.Hash{"x": "r"}},
		do:     cancelWith("x", time.Hour),
		result: "too late",
	},
	{
		name:   "completed, and its time is over",
		seed:   redistest.State{"_completed": redistest.Zset{"x": past}, "_results": redistest.Hash{"x": "r"}},
		do:     cancelWith("x", time.Hour),
		result: "revoked",
		want: both(redistest.State{"_completed": redistest.Zset{"x": past}, "_results": redistest.Hash{"x": "r"}},
			revokedNow("x")),
	},
}}

// toCancel returns a claim whose task was canceled.
func toCancel(token, id string) Completed {
	return Completed{Token: token, ID: id, Lock: "k:a", Canceled: true}
}

func revokedIDs(ids ...string) redistest.State {
	set := redistest.Zset{}
	for _, id := range ids {
		set[id] = later
	}
	return redistest.State{"_revoked": set}
}

func keptCanceled(token, id string) Completed {
	c := kept(token, id)
	c.Canceled = true
	return c
}

// manyCanceled are as many as one call ends, with the tokens of manyTokens.
var manyCanceled, manyRevoked, manyLeft = func() (list []Completed, seed, want redistest.State) {
	set := redistest.Zset{}
	for i := range MaxShelved {
		id := fmt.Sprintf("id%d", i)
		list = append(list, toCancel(manyTokens[i], id))
		set[id] = later
	}
	held := redistest.Hash{}
	for _, token := range manyTokens[MaxShelved:] {
		held[token] = manyClaims[token]
	}
	return list, with(manyHeld, redistest.State{"_revoked": set}),
		with(manyHeld, redistest.State{
			"_processing:w": held,
			testDay:         counted(redistest.Hash{"canceled": fmt.Sprint(MaxShelved)}),
		})
}()

// canceledEnds are the cases of complete with tasks that were canceled.
var canceledEnds = []storeCase{
	{
		name:   "revoked ones",
		seed:   working(revokedIDs("x", "y", "z")),
		do:     completeWith([]uint64{4}, toCancel("3-1", "x"), toCancel("4-1", "y")),
		result: []bool{true, true},
		want: working(both(left("3-2 3-3", "3"),
			both(revokedIDs("z"), redistest.State{testDay: counted(redistest.Hash{"canceled": "2"})}))),
	},
	{
		name:   "one that is not revoked any more",
		seed:   working(revokedIDs("x")),
		do:     completeWith(nil, toCancel("3-1", "x"), toCancel("3-2", "y")),
		result: "[true false] [false true]",
		want:   working(both(left("3-2 3-3 4-1", "3 4"), countedCancel)),
	},
	{
		name:   "one that is not, but was for certain",
		seed:   working(nil),
		do:     completeWith(nil, Completed{Token: "3-1", ID: "x", Canceled: true, Certain: true}),
		result: []bool{true},
		want:   working(both(left("3-2 3-3 4-1", "3 4"), countedCancel)),
	},
	{
		name:   "a claim that is lost, and one named twice",
		seed:   working(revokedIDs("x", "y")),
		do:     completeWith(nil, toCancel("5-1", "x"), toCancel("3-1", "y"), toCancel("3-1", "y")),
		result: []bool{false, true, false},
		want:   working(both(left("3-2 3-3 4-1", "3 4"), both(revokedIDs("x"), countedCancel))),
	},
	{
		name:   "with a lock, and an id of its own",
		seed:   working(both(revokedIDs("x"), locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"}))),
		do:     completeWith(nil, toCancel("3-1", "x")),
		result: []bool{true},
		want: working(both(left("3-2 3-3 4-1", "3 4"),
			both(locked(later, redistest.Hash{"k:b": "y"}), countedCancel))),
	},
	{
		name:   "somebody waits for it",
		seed:   working(revokedIDs("x")),
		do:     completeWith(nil, keptCanceled("3-1", "x")),
		result: []bool{true},
		want: working(both(left("3-2 3-3 4-1", "3 4"), both(countedCancel, redistest.State{
			"_completed": redistest.Zset{"x": fromNow(time.Hour)}, "_results": redistest.Hash{"x": "r x"},
		}))),
	},
	{
		name:   "after a report of progress",
		seed:   working(both(revokedIDs("x"), redistest.State{"_results": redistest.Hash{"x": "half", "y": "half"}})),
		do:     completeWith(nil, toCancel("3-1", "x")),
		result: []bool{true},
		want: working(both(left("3-2 3-3 4-1", "3 4"),
			both(countedCancel, redistest.State{"_results": redistest.Hash{"y": "half"}}))),
	},
	{
		name:   "as many as a call may have, canceled",
		seed:   manyRevoked,
		do:     completeWith(nil, manyCanceled...),
		result: all(MaxShelved),
		want:   manyLeft,
	},
}

func pardonSome(s *Store) (any, error) { return s.Pardon(bg, 2) }

var pardonCases = storeTable{script: "pardon", cases: []storeCase{
	{
		name:   "nothing",
		do:     pardonSome,
		result: 0,
	},
	{
		name: "some, as many as asked for",
		seed: both(redistest.State{"_revoked": redistest.Zset{"a": past, "b": past + 1, "c": past + 2, "d": later}},
			controlled(nil)),
		do:     pardonSome,
		result: 2,
		want:   both(redistest.State{"_revoked": redistest.Zset{"c": past + 2, "d": later}}, controlled(nil)),
	},
	{
		name:   "the last, and a control hash that says nothing",
		seed:   both(redistest.State{"_revoked": redistest.Zset{"a": past}}, controlled(nil)),
		do:     pardonSome,
		result: 1,
		want:   redistest.State{},
	},
	{
		name: "the last, and a control hash whose next version could be the same",
		seed: redistest.State{
			"_revoked": redistest.Zset{"a": past}, "_control": redistest.Hash{"version": strconv.FormatInt(later, 10)},
		},
		do:     pardonSome,
		result: 1,
		want:   redistest.State{"_control": redistest.Hash{"version": strconv.FormatInt(later, 10)}},
	},
	{
		name:   "the last, and a control hash that says something",
		seed:   both(redistest.State{"_revoked": redistest.Zset{"a": past}}, controlled(redistest.Hash{"weight": "3"})),
		do:     pardonSome,
		result: 1,
		want:   controlled(redistest.Hash{"weight": "3"}),
	},
}}

// TestRevokedIDs reads canceled ids in both ways.
func TestRevokedIDs(t *testing.T) {
	t.Parallel()
	b := redistest.NewBench(t, redistest.Shared(t))
	s := NewStore(dialled(t, b.Server.URL()), "", b.Name)
	for i := range 5 {
		b.Do("ZADD", b.Name+"_revoked", later+int64(i), fmt.Sprint("id", i))
	}
	for n, want := range map[int]string{
		4: "[id0 id1 id2 id3] false", 5: "[id0 id1 id2 id3 id4] true",
		9: "[id0 id1 id2 id3 id4] true",
	} {
		ids, all, err := s.Revoked(bg, n)
		if got := fmt.Sprint(ids, all); err != nil || got != want {
			t.Errorf("up to %d: %s, %v, expected %s", n, got, err, want)
		}
	}
	found, err := s.AreRevoked(bg, []string{"id3", "other", "", "id0"})
	if got := fmt.Sprint(found); err != nil || got != "[true false false true]" {
		t.Errorf("found %s, %v", got, err)
	}
	b.Must(s.Forgive(bg, []string{"id0", "other"}))
	if n := b.Size("_revoked"); n != 4 {
		t.Errorf("%d ids, expected 4", n)
	}
}
