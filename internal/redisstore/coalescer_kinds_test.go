package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// newHeldKinds is newHeld, with all scripts of a coalescer known to the server.
func newHeldKinds(t *testing.T) *held {
	t.Helper()
	h := newHeld(t)
	for _, k := range kinds {
		h.Server.Do(t, "SCRIPT", "LOAD", k.script.Source)
	}
	return h
}

// memberOf returns a call for a group; its message is made of the id.
func memberOf(name, id string) []group.Member {
	return []group.Member{{
		Message: []byte("m " + id), Group: name, How: wire.Gather{Grace: 60_000, MaxSize: 100}, Bytes: 1, Values: 1,
	}}
}

// outcome is what a caller got.
type outcome struct {
	other string
	err   error
}

// later calls f in a goroutine, and returns once its task waits.
func (h *held) later(f func() (string, error)) chan outcome {
	h.T.Helper()
	count := func() int {
		h.c.Mu.Lock()
		defer h.c.Mu.Unlock()
		return waitingIn(h.c)
	}
	before, result := count(), make(chan outcome, 1)
	go func() {
		other, err := f()
		result <- outcome{other, err}
	}()
	h.Until("the task waits", func() bool { return count() > before })
	return result
}

func (h *held) schedule(ctx context.Context, id string, due int64, relative bool) chan outcome {
	h.T.Helper()
	return h.later(func() (string, error) {
		return "", h.c.Schedule(ctx, []Envelope{{ID: id, Message: []byte("m " + id)}}, due, relative, h.now)
	})
}

func (h *held) enlist(ctx context.Context, at Place, e Envelope) chan outcome {
	h.T.Helper()
	return h.later(func() (string, error) {
		others, err := h.c.Enlist(ctx, at, []Envelope{e}, h.now)
		return strings.Join(others, ","), err
	})
}

func (h *held) gather(ctx context.Context, name, id string) chan outcome {
	h.T.Helper()
	return h.later(func() (string, error) {
		_, err := h.c.Gather(ctx, memberOf(name, id), h.now)
		return "", err
	})
}

// told checks what a caller got: an existing task's id, an error, or neither.
func (h *held) told(what string, result chan outcome, want outcome) {
	h.T.Helper()
	got := redistest.Await(h.Bench, what, result)
	var taken, wanted *TakenError
	if errors.As(want.err, &wanted) {
		if !errors.As(got.err, &taken) || taken.ID != wanted.ID {
			h.T.Errorf("%s: %v, expected that %s is there", what, got.err, wanted.ID)
		}
		return
	}
	if got.other != want.other || !errors.Is(got.err, want.err) || (got.err == nil) != (want.err == nil) {
		h.T.Errorf("%s: %q, %v, expected %q, %v", what, got.other, got.err, want.other, want.err)
	}
}

var fine = outcome{}

func taken(id string) outcome { return outcome{err: &TakenError{ID: id}} }

// end lets the busy calls end.
func (h *held) end(calls []*faultnet.HeldCall, busy []chan error) {
	h.T.Helper()
	for _, c := range calls {
		c.OK()
	}
	for _, r := range busy {
		h.expect("a call before", r, nil)
	}
	h.idle()
}

// TestCoalescerMixesKinds: tasks of one script go together, whatever comes between them, in their order.
func TestCoalescerMixesKinds(t *testing.T) {
	h := newHeldKinds(t)
	calls, busy := h.busy()
	var results []chan outcome
	var plain []chan error
	for i := range 3 {
		results = append(results,
			h.schedule(bg, fmt.Sprint("s", i), later+int64(i), false),
			h.enlist(bg, atBack, toEnlist(fmt.Sprint("e", i), lockOf(fmt.Sprint("k:", i), conflictFail))),
			h.gather(bg, fmt.Sprint("g", i%2), fmt.Sprint("c", i)))
		plain = append(plain, h.enqueue(bg, fmt.Sprint("p", i)))
	}
	calls[0].OK()
	for i, n := range []int{9, 2 + 3*7, 2 + 3*7, 3} {
		call := h.call()
		if len(call.Messages) != n {
			t.Errorf("call %d has the arguments %q, expected %d", i, call.Messages, n)
		}
		call.OK()
	}
	for i, r := range results {
		h.told(fmt.Sprint("task ", i), r, fine)
	}
	for i, r := range plain {
		h.expect(fmt.Sprint("plain task ", i), r, nil)
	}
	h.end(calls[1:], busy)
	if got, want := h.List(""), (redistest.List{"busy0", "m e0", "m e1", "m e2", "p0", "p1", "p2", "busy1"}); !slices.
		Equal(got, want) {
		t.Errorf("pending %q, expected %q", got, want)
	}
	if got := h.List("_group:g0"); !slices.Equal(got, redistest.List{"m c0", "m c2"}) {
		t.Errorf("gathered %q", got)
	}
	if n := h.Size("_scheduled"); n != 3 {
		t.Errorf("%d scheduled, expected 3", n)
	}
	h.Check(redistest.Invariants{})
}

// TestCoalescerOwnOutcomes: of the tasks that go together, each caller gets the outcome of its own, also behind one
// that was taken back.
func TestCoalescerOwnOutcomes(t *testing.T) {
	h := newHeldKinds(t)
	calls, busy := h.busy()
	ctx, cancel := context.WithCancelCause(bg)
	on := func(id, lock string, rule Conflict) chan outcome {
		return h.enlist(bg, atBack, toEnlist(id, lockOf(lock, rule)))
	}
	first := on("a", "k:a", conflictFail)
	gone := h.enlist(ctx, atBack, toEnlist("gone", lockOf("k:g", conflictFail)))
	refused, skipped := on("b", "k:a", conflictFail), on("c", "k:a", conflictSkip)
	replaced, replaces := on("d", "k:d", conflictReplace), on("e", "k:d", conflictReplace)
	afterwards := on("f", "k:d", conflictFail)
	id, again := h.enlist(bg, inMin, toEnlist("x", ownID)), h.enlist(bg, atFront, toEnlist("x", ownID))
	cancel(errLeft)
	h.told("the one that leaves", gone, outcome{err: errLeft})
	free := on("h", "k:g", conflictFail)
	calls[0].OK()
	h.call().OK()
	h.told("first", first, fine)
	h.told("refused", refused, taken("a"))
	h.told("skipped", skipped, outcome{other: "a"})
	h.told("replaced", replaced, fine)
	h.told("replaces", replaces, fine)
	h.told("refused because of a replacement", afterwards, taken("e"))
	h.told("with an id", id, fine)
	h.told("with the same id", again, taken("x"))
	h.told("with the lock of the one that left", free, fine)
	h.end(calls[1:], busy)
	if got := h.List(""); !slices.Equal(got, redistest.List{"busy0", "m a", "m d", "m e", "m h", "busy1"}) {
		t.Errorf("pending %q", got)
	}
	if n := h.Size("_revoked"); n != 1 {
		t.Errorf("%d revoked, expected d", n)
	}
}

// TestCoalescerOwnRefusal: if one of several tasks has an id that is taken, or needs a key of another type, the others
// are enqueued all the same.
func TestCoalescerOwnRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		seed    func(h *held)
		tasks   func(h *held) []chan outcome // the second one is refused
		args    int                          // of a call with one task
		pending redistest.List               // behind the first task
		want    func(err error) bool
	}{
		"id": {
			func(h *held) { h.Do("HSET", h.Name+"_tasks", "b", "m") },
			func(h *held) []chan outcome {
				return []chan outcome{
					h.schedule(bg, "a", later, false), h.schedule(bg, "b", 1000, true),
					h.schedule(bg, "c", later, false),
				}
			}, 3,
			redistest.List{"busy1"},
			func(err error) bool {
				var taken *TakenError
				return errors.As(err, &taken) && taken.ID == "b"
			},
		},
		"id of one that would replace": {
			func(h *held) { h.Do("HSET", h.Name+"_tasks", "b", "m") },
			func(h *held) []chan outcome {
				return []chan outcome{
					h.enlist(bg, atBack, toEnlist("a", lockOf("k:a", conflictReplace))),
					h.enlist(bg, atBack, toEnlist("b", &Hold{
						Reserve: true, Name: "k:b", Life: 1000, Conflict: conflictReplace,
					})),
					h.enlist(bg, atBack, toEnlist("c", nil)),
				}
			}, 9,
			redistest.List{"m a", "busy1"},
			func(err error) bool {
				var taken *TakenError
				return errors.As(err, &taken) && taken.ID == "b"
			},
		},
		"tasks hash": {
			func(h *held) { h.Do("SET", h.Name+"_tasks", "another type") },
			func(h *held) []chan outcome {
				return []chan outcome{
					h.enlist(bg, atBack, toEnlist("a", lockOf("k:a", conflictFail))),
					h.enlist(bg, inMin, toEnlist("b", lockOf("k:b", conflictFail))),
					h.enlist(bg, atFront, toEnlist("c", nil)),
				}
			}, 9,
			redistest.List{"m a", "busy1"},
			func(err error) bool { return IsWrongType(err) && strings.Contains(err.Error(), "_tasks") },
		},
		"group list": {
			func(h *held) { h.Do("SET", h.Name+"_group:b", "another type") },
			func(h *held) []chan outcome {
				return []chan outcome{h.gather(bg, "a", "a"), h.gather(bg, "b", "b"), h.gather(bg, "c", "c")}
			}, 9,
			redistest.List{"busy1"},
			func(err error) bool { return IsWrongType(err) && strings.Contains(err.Error(), "_group:b") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeldKinds(t)
			c.seed(h)
			calls, busy := h.busy()
			results := c.tasks(h)
			calls[0].OK()
			h.call().OK()
			for i := range results {
				call := h.call()
				if len(call.Messages) != c.args {
					t.Errorf("call %d has %q, expected %d arguments", i, call.Messages, c.args)
				}
				if i == 2 {
					call.Answer <- io.EOF // nobody else's answer is lost with it
				} else {
					call.OK()
				}
			}
			h.told("the first", results[0], fine)
			if got := redistest.Await(h.Bench, "the second", results[1]); !c.want(got.err) ||
				errors.Is(got.err, ErrUnknown) {
				t.Errorf("the second: %v", got.err)
			}
			h.told("the third", results[2], outcome{err: ErrUnknown})
			h.end(calls[1:], busy)
			if got := h.List(""); !slices.Equal(got, append(redistest.List{"busy0"}, c.pending...)) {
				t.Errorf("pending %q", got)
			}
		})
	}
}

// TestCoalescerRefusalOfAKind: what Redis refuses for all tasks of a call is sent once, and each caller learns why.
func TestCoalescerRefusalOfAKind(t *testing.T) {
	for name, add := range map[string]func(h *held, id string) chan outcome{
		"schedule": func(h *held, id string) chan outcome { return h.schedule(bg, id, later, false) },
		"enlist":   func(h *held, id string) chan outcome { return h.enlist(bg, atBack, toEnlist(id, ownID)) },
		"gather":   func(h *held, id string) chan outcome { return h.gather(bg, "g", id) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeldKinds(t)
			calls, busy := h.busy()
			refused := []chan outcome{add(h, "a"), add(h, "b")}
			calls[0].OK()
			call := h.call()
			later := add(h, "c")
			call.Answer <- redis.Error("OOM command not allowed when used memory > 'maxmemory'.")
			for _, r := range refused {
				h.told("a refused task", r, outcome{err: ErrFull})
			}
			h.call().OK()
			h.told("the next one", later, fine)
			h.end(calls[1:], busy)
			if n := h.Size("_tasks") + h.Size("_locks") + h.Size("_group:g"); n != 1 {
				t.Errorf("%d tasks are there, expected one", n)
			}
		})
	}
}

// TestCoalescerLostAnswerOfAKind: exactly the callers whose tasks went together do not know what became of them.
func TestCoalescerLostAnswerOfAKind(t *testing.T) {
	h := newHeldKinds(t)
	calls, busy := h.busy()
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	a, b := h.enlist(bg, atBack, toEnlist("a", ownID)), h.schedule(bg, "b", later, false)
	c, d := h.enlist(ctx, atBack, toEnlist("c", ownID)), h.schedule(ctx, "d", later, false)
	calls[0].OK()
	h.call().Answer <- io.EOF
	h.told("enlisted", a, outcome{err: ErrUnknown})
	h.told("enlisted", c, outcome{err: ErrUnknown})
	h.call().OK()
	h.told("scheduled", b, fine)
	h.told("scheduled", d, fine)
	h.end(calls[1:], busy)
}

// TestCoalescerLoneCallerSendsItself: a caller that finds no call under way sends its task in its own goroutine,
// whatever the task. A panic in it shows that.
func TestCoalescerLoneCallerSendsItself(t *testing.T) {
	h := newHeldKinds(t)
	for name, call := range map[string]func() error{
		"schedule": func() error { return h.c.Schedule(bg, alone("m"), 1000, true, h.now) },
		"enlist": func() error {
			_, err := h.c.Enlist(bg, atBack, []Envelope{toEnlist("b", ownID)}, h.now)
			return err
		},
		"gather": func() error {
			_, err := h.c.Gather(bg, memberOf("g", "a"), h.now)
			return err
		},
	} {
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			t.Errorf("%s returned %v", name, call())
		}()
		h.call().Answer <- faultnet.ErrPanic
		if p, _ := redistest.Await(h.Bench, "the panic", panicked).(error); !errors.Is(p, faultnet.ErrPanic) {
			t.Errorf("%s: recovered %v", name, p)
		}
		h.idle()
		done := make(chan error, 1)
		go func() { done <- call() }()
		h.call().OK()
		h.expect(name, done, nil)
	}
}

// TestCoalescerManyGroups: calls for more groups than a script takes go in several calls.
func TestCoalescerManyGroups(t *testing.T) {
	h := newHeldKinds(t)
	calls, busy := h.busy()
	var results []chan outcome
	for i := range MaxEnlisted + 1 {
		results = append(results, h.gather(bg, fmt.Sprint("g", i), fmt.Sprint("c", i)))
	}
	calls[0].OK()
	for _, n := range []int{MaxEnlisted, 1} {
		call := h.call()
		if len(call.Messages) != 2+7*n {
			t.Errorf("%d arguments, expected those of %d calls", len(call.Messages), n)
		}
		call.OK()
	}
	for _, r := range results {
		h.told("a call", r, fine)
	}
	h.end(calls[1:], busy)
	if n := h.Size("_groups"); n != len(results) {
		t.Errorf("%d groups, expected %d", n, len(results))
	}
}
