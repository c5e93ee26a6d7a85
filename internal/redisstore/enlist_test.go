package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// locked is a state with locks: holders maps each lock or '#id' to the id of a task, and all expire at due.
func locked(due int64, holders redistest.Hash) redistest.State {
	expiry := fmt.Sprint(due)
	if due >= fromNowBase {
		expiry = fmt.Sprintf("%s+%d", nowMark, due-fromNowBase)
	}
	locks := redistest.Hash{}
	for name, id := range holders {
		locks[name] = expiry + " " + id
	}
	return redistest.State{"_locks": locks}
}

// both joins states: keys that are hashes or sets are merged, for others the last state counts.
func both(states ...redistest.State) redistest.State {
	out := redistest.State{}
	for _, s := range states {
		for suffix, value := range s {
			switch value := value.(type) {
			case redistest.Hash:
				out[suffix] = joined(out[suffix], value)
			case redistest.Zset:
				out[suffix] = joined(out[suffix], value)
			default:
				out[suffix] = value
			}
		}
	}
	return out
}

func joined[M ~map[string]V, V any](old any, more M) M {
	out := maps.Clone(more)
	before, _ := old.(M)
	for k, v := range before {
		if _, ok := out[k]; !ok {
			out[k] = v
		}
	}
	return out
}

// toEnlist is a task with a message made of its id.
func toEnlist(id string, h *Hold) Envelope {
	return Envelope{id, []byte("m " + id), h}
}

// lockOf returns a lock that lasts an hour.
func lockOf(name string, on Conflict) *Hold {
	return &Hold{Name: name, Life: time.Hour.Milliseconds(), Conflict: on}
}

var (
	ownID   = &Hold{Reserve: true}
	hour    = fromNow(time.Hour)
	idLife  = fromNow(LockLife)
	atFront = Place{How: "front"}
	atBack  = Place{How: "back"}
	inMin   = Place{How: "in", Due: time.Minute.Milliseconds()}
)

// refusedError says which task was refused, and the id of the task that it conflicts with.
type refusedError struct {
	index int
	id    string
}

func (e refusedError) Error() string {
	return fmt.Sprintf("task %d was refused because of %s", e.index, e.id)
}

// enlistWith returns the id of the existing task for each one that was not enqueued.
func enlistWith(at Place, tasks ...Envelope) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		others, err := s.Enlist(bg, at, tasks)
		var refused *EnlistError
		if errors.As(err, &refused) {
			return nil, refusedError{refused.Index, refused.ID}
		}
		return fmt.Sprintf("%q", others), err
	}
}

var manyListed, manyListedState = func() (list []Envelope, state redistest.State) {
	locks := redistest.Hash{}
	var messages redistest.List
	for i := range MaxEnlisted {
		id := fmt.Sprintf("id%d", i)
		list = append(list, Envelope{
			id, []byte("m " + id),
			&Hold{Reserve: true, Name: "k:" + id, Life: LockLife.Milliseconds()},
		})
		locks["#"+id], locks["k:"+id] = id, id
		messages = append(messages, "m "+id)
	}
	return list, both(locked(idLife, locks), redistest.State{"": messages, "_noti": ones(MaxEnlisted)})
}()

var enlistCases = storeTable{script: "enlist", refused: true, cases: []storeCase{
	{
		name:   "at the back, under a lock",
		seed:   redistest.State{"": redistest.List{"p"}, "_noti": ones(1)},
		do:     enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictFail))),
		result: `[""]`,
		want: both(locked(hour, redistest.Hash{"k:a": "x"}),
			redistest.State{"": redistest.List{"p", "m x"}, "_noti": ones(2)}),
	},
	{
		name:   "at the front, without a lock",
		seed:   redistest.State{"": redistest.List{"p"}, "_noti": ones(1)},
		do:     enlistWith(atFront, toEnlist("x", nil), toEnlist("y", nil)),
		result: `["" ""]`,
		want:   redistest.State{"": redistest.List{"m x", "m y", "p"}, "_noti": ones(3)},
	},
	{
		name:   "later: the lock lasts from then",
		do:     enlistWith(inMin, toEnlist("x", lockOf("k:a", conflictFail))),
		result: `[""]`,
		want: both(locked(fromNow(time.Hour+time.Minute), redistest.Hash{"k:a": "x"}), redistest.State{
			"_scheduled": redistest.Zset{"x": fromNow(time.Minute)}, "_tasks": redistest.Hash{"x": "m x"},
			"_wake": ones(1),
		}),
	},
	{
		name:   "at a time that is over: the lock lasts from now",
		seed:   with(filedAs("_scheduled", redistest.Zset{"o": past - 1}), nil),
		do:     enlistWith(Place{How: "at", Due: past}, toEnlist("x", lockOf("k:a", conflictFail))),
		result: `[""]`,
		want: both(locked(hour, redistest.Hash{"k:a": "x"}), filedAs("_scheduled", redistest.Zset{"o": past - 1}),
			redistest.State{
				"_scheduled": redistest.Zset{"x": past}, "_tasks": redistest.Hash{"x": "m x"},
			}),
	},
	{
		name:   "at a round time, earlier than all others: wakes a mover that has been called already",
		seed:   with(filedAs("_scheduled", redistest.Zset{"o": later}), redistest.State{"_wake": ones(1)}),
		do:     enlistWith(Place{How: "at", Due: round}, toEnlist("x", ownID)),
		result: `[""]`,
		want: both(locked(round+LockLife.Milliseconds(), redistest.Hash{"#x": "x"}),
			filedAs("_scheduled", redistest.Zset{"o": later}), redistest.State{
				"_scheduled": redistest.Zset{"x": round}, "_tasks": redistest.Hash{"x": "m x"}, "_wake": ones(1),
			}),
	},
	{
		name: "a lock and an id: both last as long as the longer",
		do: enlistWith(atBack,
			Envelope{
				"x", []byte("m x"),
				&Hold{Reserve: true, Name: "k:a", Life: LockLife.Milliseconds() + 5},
			}),
		result: `[""]`,
		want: both(locked(idLife+5, redistest.Hash{"k:a": "x", "#x": "x"}),
			redistest.State{"": redistest.List{"m x"}, "_noti": ones(1)}),
	},
	{
		name: "held: refused, all or none",
		seed: locked(later, redistest.Hash{"k:a": "o"}),
		do:   enlistWith(atBack, toEnlist("x", nil), toEnlist("y", lockOf("k:a", conflictFail))),
		err:  refusedError{1, "o"},
	},
	{
		name: "held until a round time",
		seed: locked(round, redistest.Hash{"k:a": "o"}),
		do:   enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictFail))),
		err:  refusedError{0, "o"},
	},
	{
		name:   "held: skipped, with nothing else to do",
		seed:   locked(later, redistest.Hash{"k:a": "o"}),
		do:     enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictSkip))),
		result: `["o"]`,
		idle:   true,
	},
	{
		name: "held: skipped, among others",
		seed: locked(later, redistest.Hash{"k:a": "o"}),
		do: enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictSkip)), toEnlist("y", lockOf("k:b", conflictSkip)),
			toEnlist("z", nil)),
		result: `["o" "" ""]`,
		want: both(locked(later, redistest.Hash{"k:a": "o"}), locked(hour, redistest.Hash{"k:b": "y"}), redistest.State{
			"": redistest.List{"m y", "m z"}, "_noti": ones(2),
		}),
	},
	{
		name:   "lapsed: taken over",
		seed:   locked(past, redistest.Hash{"k:a": "o"}),
		do:     enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictFail))),
		result: `[""]`,
		want: both(locked(hour, redistest.Hash{"k:a": "x"}),
			redistest.State{"": redistest.List{"m x"}, "_noti": ones(1)}),
	},
	{
		name:   "held by an id with blanks and a line break, which begins like a time",
		seed:   locked(later, redistest.Hash{"k:a": "1 2\n3"}),
		do:     enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictSkip))),
		result: `["1 2\n3"]`,
		idle:   true,
	},
	{
		name: "held by a canceled task: taken over",
		seed: both(locked(later, redistest.Hash{"k:a": "o", "#o": "o"}),
			redistest.State{"_revoked": redistest.Zset{"o": later}}),
		do:     enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictFail))),
		result: `[""]`,
		want: both(locked(later, redistest.Hash{"#o": "o"}), locked(hour, redistest.Hash{"k:a": "x"}), redistest.State{
			"": redistest.List{"m x"}, "_noti": ones(1), "_revoked": redistest.Zset{"o": later},
		}),
	},
	{
		name: "held by a canceled task: nothing to replace",
		seed: both(locked(later, redistest.Hash{"k:a": "o", "k:b": "p"}),
			redistest.State{"_revoked": redistest.Zset{"o": later}}),
		do: enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictReplace)),
			toEnlist("y", lockOf("k:b", conflictSkip))),
		result: `["" "p"]`,
		want: both(locked(hour, redistest.Hash{"k:a": "x"}), locked(later, redistest.Hash{"k:b": "p"}),
			redistest.State{
				"": redistest.List{"m x"}, "_noti": ones(1), "_revoked": redistest.Zset{"o": later},
			}),
	},
	{
		name:   "without a time at which it expires: taken over",
		seed:   redistest.State{"_locks": redistest.Hash{"k:a": "o"}},
		do:     enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictFail))),
		result: `[""]`,
		want: both(locked(hour, redistest.Hash{"k:a": "x"}),
			redistest.State{"": redistest.List{"m x"}, "_noti": ones(1)}),
	},
	{
		name: "replaced: a scheduled task is gone",
		seed: both(locked(later, redistest.Hash{"k:a": "o", "#o": "o"}),
			filedAs("_scheduled", redistest.Zset{"o": later, "p": later})),
		do:     enlistWith(inMin, toEnlist("x", lockOf("k:a", conflictReplace))),
		result: `[""]`,
		want: both(locked(fromNow(time.Hour+time.Minute), redistest.Hash{"k:a": "x"}),
			filedAs("_scheduled", redistest.Zset{"p": later}), redistest.State{
				"_scheduled": redistest.Zset{"x": fromNow(time.Minute)}, "_tasks": redistest.Hash{"x": "m x"},
				"_wake": ones(1),
			}),
	},
	{
		name: "replaced: a retrying and a parked task are gone",
		seed: both(locked(later, redistest.Hash{"k:a": "o", "k:b": "p"}),
			filedAs("_retry", redistest.Zset{"o": later}), filedAs("_parked", redistest.Zset{"p": later})),
		do: enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictReplace)),
			toEnlist("y", lockOf("k:b", conflictReplace))),
		result: `["" ""]`,
		want: both(locked(hour, redistest.Hash{"k:a": "x", "k:b": "y"}),
			redistest.State{"": redistest.List{"m x", "m y"}, "_noti": ones(2)}),
	},
	{
		name: "replaced: one that is pending or active is revoked, and keeps its id",
		seed: both(locked(later, redistest.Hash{"k:a": "o", "#o": "o"}),
			redistest.State{"": redistest.List{"m o"}, "_noti": ones(1)}),
		do:     enlistWith(inMin, toEnlist("x", lockOf("k:a", conflictReplace))),
		result: `[""]`,
		want: both(locked(fromNow(time.Hour+time.Minute), redistest.Hash{"k:a": "x"}),
			locked(later, redistest.Hash{"#o": "o"}), redistest.State{
				"": redistest.List{"m o"}, "_noti": ones(1), "_revoked": redistest.Zset{"o": idLife},
				"_control":   redistest.Hash{"version": nowMark},
				"_scheduled": redistest.Zset{"x": fromNow(time.Minute)}, "_tasks": redistest.Hash{"x": "m x"},
				"_wake": ones(1),
			}),
	},
	{
		name: "replaced: the version rises beyond the last",
		seed: both(locked(later, redistest.Hash{"k:a": "o"}),
			redistest.State{"_control": redistest.Hash{"version": "4000000000000"}}),
		do:     enlistWith(atBack, toEnlist("x", lockOf("k:a", conflictReplace))),
		result: `[""]`,
		want: both(locked(hour, redistest.Hash{"k:a": "x"}), redistest.State{
			"": redistest.List{"m x"}, "_noti": ones(1), "_revoked": redistest.Zset{"o": idLife},
			"_control": redistest.Hash{"version": "4000000000001"},
		}),
	},
	{
		name: "within one call: refused, skipped, replaced",
		do: enlistWith(atBack, toEnlist("a", lockOf("k:s", conflictSkip)), toEnlist("b", lockOf("k:s", conflictSkip)),
			toEnlist("c", lockOf("k:r", conflictReplace)), toEnlist("d", lockOf("k:r", conflictReplace)),
			toEnlist("e", lockOf("k:r", conflictReplace))),
		result: `["" "a" "" "" ""]`,
		want: both(locked(hour, redistest.Hash{"k:s": "a", "k:r": "e"}), redistest.State{
			"": redistest.List{"m a", "m c", "m d", "m e"}, "_noti": ones(4),
			"_revoked": redistest.Zset{"c": idLife, "d": idLife}, "_control": redistest.Hash{"version": nowMark},
		}),
	},
	{
		name: "within one call: replaced before they are due, so left out",
		do: enlistWith(inMin, toEnlist("a", lockOf("k:a", conflictReplace)),
			toEnlist("b", lockOf("k:a", conflictReplace))),
		result: `["" ""]`,
		want: both(locked(fromNow(time.Hour+time.Minute), redistest.Hash{"k:a": "b"}), redistest.State{
			"_scheduled": redistest.Zset{"b": fromNow(time.Minute)}, "_tasks": redistest.Hash{"b": "m b"},
			"_wake": ones(1),
		}),
	},
	{
		name: "within one call: an id that an ended task had, revoked anew",
		seed: redistest.State{"_revoked": redistest.Zset{"a": later}},
		do: enlistWith(atBack,
			toEnlist("a", &Hold{Reserve: true, Name: "k:a", Life: time.Hour.Milliseconds()}),
			toEnlist("b", lockOf("k:a", conflictReplace))),
		result: `["" ""]`,
		want: both(locked(hour, redistest.Hash{"k:a": "b"}), locked(idLife, redistest.Hash{"#a": "a"}), redistest.State{
			"": redistest.List{"m a", "m b"}, "_noti": ones(2), "_revoked": redistest.Zset{"a": idLife},
			"_control": redistest.Hash{"version": nowMark},
		}),
	},
	{
		name: "within one call: refused",
		do: enlistWith(atBack, toEnlist("a", lockOf("k:s", conflictFail)),
			toEnlist("b", lockOf("k:s", conflictFail))),
		err: refusedError{1, "a"},
	},
	{
		name:   "an id of its own",
		do:     enlistWith(atBack, toEnlist("x", ownID)),
		result: `[""]`,
		want: both(locked(idLife, redistest.Hash{"#x": "x"}),
			redistest.State{"": redistest.List{"m x"}, "_noti": ones(1)}),
	},
	{
		name: "an id that a pending or active task has",
		seed: locked(later, redistest.Hash{"#x": "x"}),
		do:   enlistWith(atBack, toEnlist("x", ownID)),
		err:  refusedError{0, "x"},
	},
	{
		name:   "an id that has lapsed",
		seed:   locked(past, redistest.Hash{"#x": "x"}),
		do:     enlistWith(atBack, toEnlist("x", ownID)),
		result: `[""]`,
		want: both(locked(idLife, redistest.Hash{"#x": "x"}),
			redistest.State{"": redistest.List{"m x"}, "_noti": ones(1)}),
	},
	{
		name: "an id that a filed task has",
		seed: filedAs("_archived", redistest.Zset{"x": later}),
		do:   enlistWith(atBack, toEnlist("x", ownID)),
		err:  refusedError{0, "x"},
	},
	{
		name:   "an id that a filed task has: skipped",
		seed:   filedAs("_retry", redistest.Zset{"x": later}),
		do:     enlistWith(atBack, toEnlist("x", &Hold{Reserve: true, Conflict: conflictSkip})),
		result: `["x"]`,
		idle:   true,
	},
	{
		name: "an id that a completed task has",
		seed: redistest.State{"_completed": redistest.Zset{"x": later}, "_results": redistest.Hash{"x": "r"}},
		do:   enlistWith(atBack, toEnlist("x", ownID)),
		err:  refusedError{0, "x"},
	},
	{
		name:   "an id that a completed task had",
		seed:   redistest.State{"_completed": redistest.Zset{"x": past}, "_results": redistest.Hash{"x": "r"}},
		do:     enlistWith(atBack, toEnlist("x", ownID)),
		result: `[""]`,
		want: both(locked(idLife, redistest.Hash{"#x": "x"}), redistest.State{
			"": redistest.List{"m x"}, "_noti": ones(1), "_completed": redistest.Zset{"x": past},
			"_results": redistest.Hash{"x": "r"},
		}),
	},
	{
		name: "an id that a revoked task has",
		seed: both(locked(later, redistest.Hash{"#x": "x"}), redistest.State{"_revoked": redistest.Zset{"x": later}}),
		do:   enlistWith(atBack, toEnlist("x", ownID)),
		err:  refusedError{0, "x"},
	},
	{
		name:   "an id of a task that had ended when it was revoked",
		seed:   redistest.State{"_revoked": redistest.Zset{"x": later, "y": later}},
		do:     enlistWith(atBack, toEnlist("x", ownID)),
		result: `[""]`,
		want: both(locked(idLife, redistest.Hash{"#x": "x"}), redistest.State{
			"": redistest.List{"m x"}, "_noti": ones(1), "_revoked": redistest.Zset{"y": later},
		}),
	},
	{
		name: "an id twice in one call",
		do:   enlistWith(atBack, toEnlist("x", ownID), toEnlist("x", ownID)),
		err:  refusedError{1, "x"},
	},
	{
		name: "as many as a call may have",
		do:   func(s *Store) (any, error) { _, err := s.Enlist(bg, atBack, manyListed); return nil, err },
		want: manyListedState,
	},
}}

// TestEnlistOnKeysOfAnotherType: whichever key is of another type, nothing is written. A coalescer relies on that when
// it sends the tasks of a refused call again, one by one.
func TestEnlistOnKeysOfAnotherType(t *testing.T) {
	server := redistest.Shared(t)
	src, conn := dialled(t, server.URL()), server.Dial(t)
	seed := both(filedAs("_scheduled", redistest.Zset{"f": later}), filedAs("_retry", redistest.Zset{"r": later}),
		filedAs("_parked", redistest.Zset{"k": later}),
		locked(later, redistest.Hash{"k:f": "f", "k:r": "r", "k:k": "k", "k:p": "p"}))
	for _, suffix := range []string{
		"", "_noti", "_scheduled", "_retry", "_parked", "_tasks", "_info", "_completed", "_locks",
		"_revoked", "_wake", "_control",
	} {
		for _, reserve := range []bool{true, false} {
			if suffix == "_completed" && !reserve {
				continue // it is not looked at
			}
			s := NewStore(src, "", fmt.Sprint(redistest.Name(t), reserve))
			state := with(seed, redistest.State{suffix: "another type"})
			redistest.Seed(t, conn, s.Name, state)
			args := newArgs(s.enlistHead())
			for i, at := range []Place{atBack, atFront, inMin, {How: "at", Due: later}} {
				// The first ones replace tasks that are filed, the last one a pending one.
				hold := &Hold{Reserve: reserve, Name: "k:" + "frkp"[i:i+1], Life: 1000, Conflict: conflictReplace}
				task := listingArgs(&Envelope{fmt.Sprint("x", i), []byte("m"), hold}, at)
				args.list = append(args.list, task[:]...)
			}
			if _, err := s.accept(bg, byEnlist, args, 4); !IsWrongType(err) || errors.Is(err, ErrUnknown) {
				t.Errorf("N%s is of another type, ids reserved: %v: %v", suffix, reserve, err)
			}
			if diff := redistest.Diff(redistest.Dump(t, conn, s.Name), state); diff != "" {
				t.Errorf("N%s is of another type, ids reserved: %v, and this has changed:\n%s", suffix, reserve, diff)
			}
		}
	}
}
