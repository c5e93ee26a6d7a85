package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// surveyOf surveys the queue as sweeper me, with lock life of an hour; two adds another queue in its slot.
func surveyOf(two bool) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		conn, err := s.Src.Conn(bg, s.keys.list)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		stores := []*Store{s}
		if two {
			stores = append(stores, NewStore(s.Src, "", s.keys.list+".other"))
		}
		queues, err := Survey(bg, &Link{conn: conn}, stores, "me", time.Hour)
		for i := range queues {
			slices.Sort(queues[i].Workers)
		}
		return fmt.Sprintf("%+v", queues), err
	}
}

var (
	myLock    = redistest.Expiring{Value: "me", For: time.Hour}
	otherLock = redistest.Expiring{Value: "other", For: 2 * time.Hour}
)

var surveyCases = storeTable{script: "survey", cases: []storeCase{
	{
		name:   "empty: the lock is taken",
		do:     surveyOf(false),
		result: "[{Locked:true Workers:[] Pending:0 Noti:0 Legacy:0}]",
		want:   redistest.State{"_sweeper": myLock},
	},
	{
		name: "everything, with the lock renewed",
		seed: working(redistest.State{
			"_sweeper": redistest.Expiring{Value: "me", For: time.Second},
			"_workers": redistest.Set{"v", "w"}, "": messages(2), "_noti": ones(3),
			"_processing": redistest.Hash{"l": "m"},
		}),
		do:     surveyOf(false),
		result: "[{Locked:true Workers:[v w] Pending:2 Noti:3 Legacy:1}]",
		want: working(redistest.State{
			"_sweeper": myLock, "_workers": redistest.Set{"v", "w"}, "": messages(2),
			"_noti": ones(3), "_processing": redistest.Hash{"l": "m"},
		}),
	},
	{
		name:   "everything, and the lock is taken",
		seed:   working(redistest.State{"": messages(2), "_noti": ones(3), "_processing": redistest.Hash{"l": "m"}}),
		do:     surveyOf(false),
		result: "[{Locked:true Workers:[w] Pending:2 Noti:3 Legacy:1}]",
		want: working(redistest.State{
			"_sweeper": myLock, "": messages(2), "_noti": ones(3),
			"_processing": redistest.Hash{"l": "m"},
		}),
	},
	{
		name:   "the lock is another's",
		seed:   working(redistest.State{"_sweeper": otherLock, "": messages(1), "_noti": ones(1)}),
		do:     surveyOf(false),
		result: "[{Locked:false Workers:[w] Pending:1 Noti:1 Legacy:0}]",
	},
	{
		name:   "only notifications",
		seed:   redistest.State{"_noti": ones(2), "_sweeper": otherLock},
		do:     surveyOf(false),
		result: "[{Locked:false Workers:[] Pending:0 Noti:2 Legacy:0}]",
	},
	{
		name:   "only legacy claims",
		seed:   redistest.State{"_processing": redistest.Hash{"a": "m", "b": "m"}, "_sweeper": otherLock},
		do:     surveyOf(false),
		result: "[{Locked:false Workers:[] Pending:0 Noti:0 Legacy:2}]",
	},
	{
		name: "each queue by itself",
		seed: redistest.State{"": messages(2), "_noti": ones(1), "_sweeper": otherLock},
		do:   surveyOf(true),
		result: "[{Locked:false Workers:[] Pending:2 Noti:1 Legacy:0} " +
			"{Locked:true Workers:[] Pending:0 Noti:0 Legacy:0}]",
	},
}}

func livesOfThree(s *Store) (any, error) {
	conn, err := s.Src.Conn(bg, s.keys.list)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	left, err := s.Lifetimes(bg, &Link{conn: conn}, []string{"a", "b", "c"})
	var text []string
	for _, d := range left {
		text = append(text, d.Round(time.Minute).String())
	}
	return strings.Join(text, " "), err
}

var livesCases = storeTable{script: "lives", cases: []storeCase{
	{
		name:   "two live",
		seed:   redistest.State{"_worker:a": alive, "_worker:c": redistest.Expiring{Value: "v", For: 2 * time.Hour}},
		do:     livesOfThree,
		result: "1h0m0s 0s 2h0m0s",
	},
}}

// testLimits are the limits of the sweeps in the cases.
var testLimits = SweepLimits{MaxDeaths: 3, DeathsLife: 2 * time.Hour, ArchiveKeep: time.Hour, ArchiveMost: 2}

// sweepW sweeps claims of worker w.
func sweepW(actions ...SweepAction) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		return sweepText(s.Sweep(bg, s.ClaimsOf("w"), testLimits, actions))
	}
}

// sweepLegacyL sweeps claims of legacy workers, with a key of the queue instead of the one that the worker's id names.
func sweepLegacyL(actions ...SweepAction) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		return sweepText(s.Sweep(bg, ClaimHash{s.keys.legacy, s.keys.heartbeat + "l"}, testLimits, actions))
	}
}

func sweepText(requeued, archived int, alive bool, err error) (any, error) {
	return fmt.Sprintf("%d requeued, %d archived, alive %v", requeued, archived, alive), err
}

// judged is what happens to a claim: the message is put back with "+" appended.
func judged(token, message, action, id string) SweepAction {
	return SweepAction{
		Claimed: Claimed{Token: token, Message: []byte(message)}, Kind: action,
		Renewed: []byte(message + "+"), ID: id, Info: []byte("i " + id), Digest: "sha " + message,
	}
}

// judgedHolder is judged, of a task whose message names a lock.
func judgedHolder(token, message, action, id, lock string) SweepAction {
	a := judged(token, message, action, id)
	a.Lock = lock
	return a
}

var dead = working(redistest.State{"_worker:w": nil})

func deaths(h redistest.Hash) redistest.Expiring {
	return redistest.Expiring{Value: h, For: testLimits.DeathsLife}
}

var sweepCases = storeTable{script: "sweep", cases: []storeCase{
	{
		name:   "the worker lives",
		seed:   working(nil),
		do:     sweepW(judged("3-1", "a", "requeue", "x")),
		result: "0 requeued, 0 archived, alive true",
	},
	{
		name: "requeued at the front, in the old order",
		seed: with(dead, redistest.State{"": redistest.List{"p"}, "_noti": ones(1)}),
		do: sweepW(judged("4-1", "d", "requeue", "x"), judged("3-2", "b", "requeue", "y"),
			judged("3-1", "a", "requeue", "z")),
		result: "3 requeued, 0 archived, alive false",
		want: with(dead, with(left("3-3", "3 4"), redistest.State{
			"": redistest.List{"a+", "b+", "d+", "p"}, "_noti": ones(4), testDay: counted(redistest.Hash{"swept": "3"}),
		})),
	},
	{
		name: "what the tasks have reported goes, what is kept of older ones stays",
		seed: with(dead, redistest.State{
			"_results":   redistest.Hash{"x": "50 %", "y": "r", "z": "50 %", "o": "50 %"},
			"_completed": redistest.Zset{"y": later},
		}),
		do: sweepW(judged("4-1", "d", "archive", "x"), judged("3-2", "b", "requeue", "y"),
			judged("3-1", "a", "requeue", "z"), judged("3-3", "-", "requeue", "o")),
		result: "2 requeued, 1 archived, alive false",
		want: with(dead, with(left("3-3", "3 4"), redistest.State{
			"": redistest.List{"a+", "b+"}, "_noti": ones(2), "_results": redistest.Hash{"y": "r", "o": "50 %"},
			"_completed": redistest.Zset{"y": later},
			"_archived":  redistest.Zset{"x": fromNow(testLimits.ArchiveKeep)}, "_tasks": redistest.Hash{"x": "d+"},
			"_info": redistest.Hash{"x": "i x"},
			testDay: counted(redistest.Hash{"swept": "3", "archived": "1"}),
		})),
	},
	{
		name: "too large to be read: archived as it is, if it has the size",
		seed: with(dead, redistest.State{"_processing:w": redistest.Hash{"3-1": big("a", 500), "3-2": big("b", 600)}}),
		do: sweepW(
			SweepAction{Claimed: Claimed{Token: "3-1", Size: 500}, Kind: "archive", ID: "x", Info: []byte("i x")},
			SweepAction{Claimed: Claimed{Token: "3-2", Size: 500}, Kind: "archive", ID: "y", Info: []byte("i y")},
		),
		result: "0 requeued, 1 archived, alive false",
		want: with(dead, redistest.State{
			"_processing:w": redistest.Hash{"3-2": big("b", 600)},
			"_archived":     redistest.Zset{"x": fromNow(testLimits.ArchiveKeep)},
			"_tasks":        redistest.Hash{"x": big("a", 500)}, "_info": redistest.Hash{"x": "i x"},
			testDay: counted(redistest.Hash{"swept": "1", "archived": "1"}),
		}),
	},
	{
		name:   "a task that was canceled is not archived",
		seed:   with(dead, redistest.State{"_revoked": redistest.Zset{"x": later}}),
		do:     sweepW(judged("4-1", "d", "archive", "x"), judged("3-1", "a", "archive", "y")),
		result: "1 requeued, 1 archived, alive false",
		want: with(dead, with(left("3-2 3-3", "3 4"), redistest.State{
			"": redistest.List{"d+"}, "_noti": ones(1), "_revoked": redistest.Zset{"x": later},
			"_archived": redistest.Zset{"y": fromNow(testLimits.ArchiveKeep)}, "_tasks": redistest.Hash{"y": "a+"},
			"_info": redistest.Hash{"y": "i y"},
			testDay: counted(redistest.Hash{"swept": "2", "archived": "1"}),
		})),
	},
	{
		name: "claims that changed, or are gone, stay as they are",
		seed: dead,
		do: sweepW(judged("4-1", "other", "requeue", "x"), judged("9-1", "a", "archive", "y"),
			judged("3-1", "a", "requeue", "z")),
		result: "1 requeued, 0 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"": redistest.List{"a+"}, "_noti": ones(1), testDay: counted(redistest.Hash{"swept": "1"}),
		})),
	},
	{
		name:   "nothing of what was seen is left",
		seed:   dead,
		do:     sweepW(judged("9-1", "a", "count", "x")),
		result: "0 requeued, 0 archived, alive false",
	},
	{
		name:   "no claims given",
		seed:   dead,
		do:     sweepW(),
		result: "0 requeued, 0 archived, alive false",
	},
	{
		name:   "archived, others requeued",
		seed:   dead,
		do:     sweepW(judged("4-1", "d", "archive", "x"), judged("3-1", "a", "requeue", "y")),
		result: "1 requeued, 1 archived, alive false",
		want: with(dead, with(left("3-2 3-3", "3 4"), redistest.State{
			"": redistest.List{"a+"}, "_noti": ones(1), "_archived": redistest.Zset{"x": fromNow(time.Hour)},
			"_tasks": redistest.Hash{"x": "d+"}, "_info": redistest.Hash{"x": "i x"},
			testDay: counted(redistest.Hash{"swept": "2", "archived": "1"}),
		})),
	},
	{
		name: "archived: ids and locks are free; requeued: they stay",
		seed: both(dead, locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y", "#y": "y"})),
		do: sweepW(judgedHolder("4-1", "d", "archive", "x", "k:a"),
			judgedHolder("3-1", "a", "requeue", "y", "k:b")),
		result: "1 requeued, 1 archived, alive false",
		want: both(with(dead, with(left("3-2 3-3", "3 4"), redistest.State{
			"": redistest.List{"a+"}, "_noti": ones(1), "_archived": redistest.Zset{"x": fromNow(time.Hour)},
			"_tasks": redistest.Hash{"x": "d+"}, "_info": redistest.Hash{"x": "i x"},
			testDay: counted(redistest.Hash{"swept": "2", "archived": "1"}),
		})), locked(later, redistest.Hash{"k:b": "y", "#y": "y"})),
	},
	{
		name:   "archived under an id that is taken",
		seed:   with(dead, filedAs("_retry", redistest.Zset{"x": later})),
		do:     sweepW(judged("3-1", "a", "archive", "x"), judged("3-2", "b", "archive", "x")),
		result: "0 requeued, 2 archived, alive false",
		want: with(dead, with(left("3-3 4-1", "3 4"), redistest.State{
			"_retry":    redistest.Zset{"x": later},
			"_archived": redistest.Zset{"x#2": fromNow(time.Hour), "x#3": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"x": "m x", "x#2": "a+", "x#3": "b+"},
			"_info":     redistest.Hash{"x": "i x", "x#2": "i x", "x#3": "i x"},
			testDay:     counted(redistest.Hash{"swept": "2", "archived": "2"}),
		})),
	},
	{
		name:   "archived, the tenth copy",
		seed:   with(dead, redistest.State{"_parked": copySet, "_tasks": copyTasks, "_info": copyInfos}),
		do:     sweepW(judged("3-1", "a", "archive", "x")),
		result: "0 requeued, 1 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_parked": copySet, "_archived": redistest.Zset{"x#10": fromNow(time.Hour)},
			"_tasks": plus(copyTasks, "x#10", "a+"), "_info": plus(copyInfos, "x#10", "i x"),
			testDay: counted(redistest.Hash{"swept": "1", "archived": "1"}),
		})),
	},
	{
		name:   "archived, the oldest trimmed",
		seed:   with(dead, filedAs("_archived", redistest.Zset{"o1": past, "o2": past + 1, "o3": later})),
		do:     sweepW(judged("3-1", "a", "archive", "x")),
		result: "0 requeued, 1 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"o3": later, "x": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"o3": "m o3", "x": "a+"}, "_info": redistest.Hash{"o3": "i o3", "x": "i x"},
			testDay: counted(redistest.Hash{"swept": "1", "archived": "1", "trimmed": "2"}),
		})),
	},
	{
		name:   "archived, one trimmed",
		seed:   with(dead, filedAs("_archived", redistest.Zset{"o1": past, "o2": later})),
		do:     sweepW(judged("3-1", "a", "archive", "x")),
		result: "0 requeued, 1 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"o2": later, "x": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"o2": "m o2", "x": "a+"}, "_info": redistest.Hash{"o2": "i o2", "x": "i x"},
			testDay: counted(redistest.Hash{"swept": "1", "archived": "1", "trimmed": "1"}),
		})),
	},
	{
		name:   "requeued only: nothing is trimmed",
		seed:   with(dead, filedAs("_archived", redistest.Zset{"o1": past, "o2": past + 1, "o3": later})),
		do:     sweepW(judged("3-1", "a", "requeue", "x")),
		result: "1 requeued, 0 archived, alive false",
		want: with(dead, with(filedAs("_archived", redistest.Zset{"o1": past, "o2": past + 1, "o3": later}),
			with(left("3-2 3-3 4-1", "3 4"), redistest.State{
				"": redistest.List{"a+"}, "_noti": ones(1), testDay: counted(redistest.Hash{"swept": "1"}),
			}))),
	},
	{
		name:   "deaths counted beside the message: the first",
		seed:   dead,
		do:     sweepW(judged("3-1", "a", "count", "x")),
		result: "1 requeued, 0 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"": redistest.List{"a+"}, "_noti": ones(1), "_deaths": deaths(redistest.Hash{"sha a": "1"}),
			testDay: counted(redistest.Hash{"swept": "1"}),
		})),
	},
	{
		name: "deaths counted beside the message: the second, and the life of the counts begins anew",
		seed: with(dead, redistest.State{"_deaths": redistest.Expiring{Value: redistest.Hash{
			"sha a": "1",
			"sha b": "2",
		}, For: time.Minute}}),
		do:     sweepW(judged("3-1", "a", "count", "x")),
		result: "1 requeued, 0 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"": redistest.List{"a+"}, "_noti": ones(1), "_deaths": deaths(redistest.Hash{"sha a": "2", "sha b": "2"}),
			testDay: counted(redistest.Hash{"swept": "1"}),
		})),
	},
	{
		name: "deaths counted beside the message: company is no evidence",
		seed: with(dead, redistest.State{"_deaths": redistest.Expiring{Value: redistest.Hash{
			"sha a":       "9",
			"sha a alone": "2",
		}}}),
		do:     sweepW(judged("3-1", "a", "count", "x")),
		result: "1 requeued, 0 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"": redistest.List{"a+"}, "_noti": ones(1),
			"_deaths": deaths(redistest.Hash{"sha a": "10", "sha a alone": "2"}),
			testDay:   counted(redistest.Hash{"swept": "1"}),
		})),
	},
	{
		name:   "deaths counted beside the message: alone, the first",
		seed:   with(dead, redistest.State{"_deaths": redistest.Expiring{Value: redistest.Hash{"sha a": "9"}}}),
		do:     sweepW(judged("3-1", "a", "alone", "x")),
		result: "1 requeued, 0 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"": redistest.List{"a+"}, "_noti": ones(1),
			"_deaths": deaths(redistest.Hash{"sha a": "10", "sha a alone": "1"}),
			testDay:   counted(redistest.Hash{"swept": "1"}),
		})),
	},
	{
		name: "deaths counted beside the message: alone, one too many",
		seed: with(dead, redistest.State{"_deaths": redistest.Expiring{Value: redistest.Hash{
			"sha a":       "7",
			"sha a alone": "2", "sha b": "2",
		}}}),
		do:     sweepW(judged("3-1", "a", "alone", "x")),
		result: "0 requeued, 1 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"x": fromNow(time.Hour)}, "_tasks": redistest.Hash{"x": "a+"},
			"_info":   redistest.Hash{"x": "i x"},
			"_deaths": deaths(redistest.Hash{"sha b": "2"}),
			testDay:   counted(redistest.Hash{"swept": "1", "archived": "1"}),
		})),
	},
	{
		name: "deaths counted beside the message: the only count goes with its task",
		seed: with(dead, redistest.State{"_deaths": redistest.Expiring{Value: redistest.Hash{
			"sha a":       "2",
			"sha a alone": "2",
		}}}),
		do:     sweepW(judged("3-1", "a", "alone", "x")),
		result: "0 requeued, 1 archived, alive false",
		want: with(dead, with(left("3-2 3-3 4-1", "3 4"), redistest.State{
			"_archived": redistest.Zset{"x": fromNow(time.Hour)}, "_tasks": redistest.Hash{"x": "a+"},
			"_info": redistest.Hash{"x": "i x"},
			testDay: counted(redistest.Hash{"swept": "1", "archived": "1"}),
		})),
	},
	{
		name: "a legacy worker's claim",
		seed: redistest.State{
			"_processing": redistest.Hash{"l": "a", "k": "b"}, "": redistest.List{"p"},
			"_noti": ones(1),
		},
		do:     sweepLegacyL(judged("l", "a", "requeue", "x")),
		result: "1 requeued, 0 archived, alive false",
		want: redistest.State{
			"_processing": redistest.Hash{"k": "b"}, "": redistest.List{"a+", "p"}, "_noti": ones(2),
			testDay: counted(redistest.Hash{"swept": "1"}),
		},
	},
	{
		name:   "a legacy worker that has gone on to another task",
		seed:   redistest.State{"_processing": redistest.Hash{"l": "next"}},
		do:     sweepLegacyL(judged("l", "a", "count", "x")),
		result: "0 requeued, 0 archived, alive false",
	},
	{
		name:   "as many as a page has",
		seed:   with(manyHeld, redistest.State{"_worker:w": nil}),
		do:     sweepW(manyJudged...),
		result: fmt.Sprintf("%d requeued, 0 archived, alive false", SweepPage),
		want:   manySwept,
	},
}}

// manyJudged are actions on the first claims of manyHeld, last claimed first.
var manyJudged, manySwept = func() (list []SweepAction, state redistest.State) {
	hash, pending := redistest.Hash{}, redistest.List{}
	for i, m := range messages(MaxTokens) {
		if i < SweepPage {
			list = append(list, judged(manyTokens[i], m, "requeue", "x"))
			pending = append(pending, m+"+")
		} else {
			hash[manyTokens[i]] = m
		}
	}
	slices.Reverse(list)
	return list, with(manyHeld, redistest.State{
		"_worker:w": nil, "_processing:w": hash, "": pending, "_noti": ones(SweepPage),
		testDay: counted(redistest.Hash{"swept": fmt.Sprint(SweepPage)}),
	})
}()

func repairWith(n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Repair(bg, n) }
}

var repairCases = storeTable{script: "repair", cases: []storeCase{
	{name: "empty", do: repairWith(10), result: 0},
	{name: "in step", seed: queued("a b", 2), do: repairWith(10), result: 0},
	{name: "too many", seed: queued("a b", 9), do: repairWith(10), result: -7, want: queued("a b", 2)},
	{name: "too many, nothing pending", seed: queued("", 9), do: repairWith(0), result: -9, want: queued("", 0)},
	{name: "too few", seed: queued("a b c", 1), do: repairWith(10), result: 2, want: queued("a b c", 3)},
	{name: "one too few", seed: queued("a b c d", 3), do: repairWith(10), result: 1, want: queued("a b c d", 4)},
	{name: "one too many", seed: queued("a b", 3), do: repairWith(10), result: -1, want: queued("a b", 2)},
	{name: "none at all", seed: queued("a b c", 0), do: repairWith(10), result: 3, want: queued("a b c", 3)},
	{
		name: "too few, no more than asked for", seed: queued("a b c d", 1), do: repairWith(2), result: 2,
		want: queued("a b c d", 3),
	},
	{name: "too few, none asked for", seed: queued("a b", 1), do: repairWith(0), result: 0},
	{
		name: "as many as a call may add", seed: redistest.State{"": messages(2500)}, do: repairWith(2500),
		result: 2500,
		want:   redistest.State{"": messages(2500), "_noti": ones(2500)},
	},
}}
