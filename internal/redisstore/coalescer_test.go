package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// TestCoalescerSharesCalls: tasks that come while calls are under way go together, in their order, with the next call.
func TestCoalescerSharesCalls(t *testing.T) {
	h := newHeld(t)
	calls, results := h.busy()
	for i, want := range []string{"busy0", "busy1"} {
		if got := calls[i].Messages; len(got) != 1 || got[0] != want {
			t.Errorf("call %d has %q, expected %s alone", i, got, want)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	want := []string{"m0", "m1", "m2", "m3", "m4"}
	for i, m := range want {
		by := bg
		if i%2 == 1 {
			by = ctx
		}
		results = append(results, h.enqueue(by, m))
	}
	calls[1].OK()
	shared := h.call()
	if !slices.Equal(shared.Messages, want) {
		t.Errorf("the shared call has %q, expected %q", shared.Messages, want)
	}
	for i, r := range results[2:] {
		select {
		case err := <-r:
			t.Errorf("m%d returned before Redis confirmed it: %v", i, err)
		default:
		}
	}
	shared.OK()
	calls[0].OK()
	for i, r := range results {
		h.expect(fmt.Sprint("result ", i), r, nil)
	}
	h.idle()
	if n := h.Size("_noti"); n != callsAtOnce+len(want) {
		t.Errorf("%d notifications", n)
	}
	h.Check(redistest.Invariants{})
}

// TestCoalescerKeepsTheLimitsOfAScript fills bundles up to either limit. The next task begins another bundle, and the
// bundles are sent in order.
func TestCoalescerKeepsTheLimitsOfAScript(t *testing.T) {
	t.Parallel()
	h := newHeld(t)
	calls, results := h.busy()
	large := strings.Repeat("x", MaxCallBytes/8)
	sizes := []int{MaxBatchTasks, 8, 2}
	for i := range sizes[0] {
		results = append(results, h.enqueue(bg, fmt.Sprint("m", i)))
	}
	for range sizes[1] + 1 {
		results = append(results, h.enqueue(bg, large))
	}
	results = append(results, h.enqueue(bg, "last"))
	calls[0].OK()
	for i, n := range sizes {
		call := h.call()
		if len(call.Messages) != n {
			t.Errorf("call %d has %d messages, expected %d", i, len(call.Messages), n)
		}
		if i == 0 && (call.Messages[0] != "m0" || call.Messages[n-1] != fmt.Sprint("m", n-1)) {
			t.Errorf("call 0 begins with %q and ends with %q", call.Messages[0], call.Messages[n-1])
		}
		call.OK()
	}
	calls[1].OK()
	for i, r := range results {
		h.expect(fmt.Sprint("result ", i), r, nil)
	}
	h.idle()
}

// TestCoalescerTellsEachCaller: each caller gets the result of its own task.
func TestCoalescerTellsEachCaller(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   error
		not    error
	}{
		"full": {redis.Error("OOM command not allowed when used memory > 'maxmemory'."), ErrFull, ErrUnknown},
		"refused": {
			redis.Error("NOREPLICAS Not enough good replicas"),
			redis.Error("NOREPLICAS Not enough good replicas"), ErrUnknown,
		},
		"lost reply": {io.EOF, ErrUnknown, ErrFull},
		"panic":      {faultnet.ErrPanic, ErrUnknown, ErrFull},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			calls, busy := h.busy()
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			results := []chan error{h.enqueue(bg, "a"), h.enqueue(ctx, "b"), h.enqueue(bg, "c")}
			calls[1].OK()
			first := h.call()
			later := h.enqueue(bg, "d")
			first.Answer <- c.answer
			h.call().OK()
			for i, r := range results {
				err := redistest.Await(h.Bench, "an answer", r)
				if !errors.Is(err, c.want) || errors.Is(err, c.not) || !strings.HasPrefix(err.Error(), "delayed: ") {
					t.Errorf("caller %d: %v", i, err)
				}
			}
			h.expect("the next call", later, nil)
			h.expect("the call before", busy[1], nil)
			calls[0].OK()
			h.expect("the call beside", busy[0], nil)
			h.idle()
			if got := h.List(""); !slices.Equal(got, redistest.List{"busy1", "d", "busy0"}) {
				t.Errorf("Redis has %q", got)
			}
		})
	}
}

// TestCoalescerWithoutConnection: callers for whom there is no connection get that error, which says that nothing was
// sent.
func TestCoalescerWithoutConnection(t *testing.T) {
	for name, panics := range map[string]bool{"error": false, "panic": true} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			calls, busy := h.busy()
			reached, fail := make(chan struct{}), make(chan error)
			h.src.OnDialed = func(context.Context) error {
				reached <- struct{}{}
				err := <-fail
				if panics {
					panic(err)
				}
				return err
			}
			a := h.enqueue(bg, "a")
			calls[0].OK()
			redistest.Await(h.Bench, "the dialling", reached)
			b := h.enqueue(bg, "b")
			c := h.schedule(bg, "c", later, false)
			fail <- errors.New("nobody listens")
			for _, err := range []error{
				redistest.Await(h.Bench, "an answer", a), redistest.Await(h.Bench, "an answer", b),
				redistest.Await(h.Bench, "an answer to another script", c).err,
			} {
				if err == nil || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "nobody listens") {
					t.Errorf("%v", err)
				}
			}
			h.src.OnDialed = nil
			calls[1].OK()
			h.expect("busy0", busy[0], nil)
			h.expect("busy1", busy[1], nil)
			h.idle()
		})
	}
}

var errLeft = errors.New("the caller has left")

// TestCoalescerTakesTasksBack: a caller whose context ends while its task waits gets the context's error, and the task
// is never sent.
func TestCoalescerTakesTasksBack(t *testing.T) {
	h := newHeld(t)
	calls, busy := h.busy()
	ctx, cancel := context.WithCancelCause(bg)
	a, b, c := h.enqueue(bg, "a"), h.enqueue(ctx, "b"), h.enqueue(bg, "c")
	cancel(errLeft)
	err := redistest.Await(h.Bench, "the caller that leaves", b)
	if !errors.Is(err, errLeft) || !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknown) {
		t.Errorf("taken back: %v", err)
	}
	if err := h.c.Enqueue(ctx, alone("never"), h.now); !errors.Is(err, errLeft) || errors.Is(err, ErrUnknown) {
		t.Errorf("a context that had ended: %v", err)
	}
	calls[0].OK()
	shared := h.call()
	if !slices.Equal(shared.Messages, []string{"a", "c"}) {
		t.Errorf("sent %q", shared.Messages)
	}
	shared.OK()
	calls[1].OK()
	for _, r := range append(busy, a, c) {
		h.expect("a result", r, nil)
	}
	h.idle()
}

// TestCoalescerEmptyBundle: if all waiting callers have left, nothing is sent; later callers are served as usual.
func TestCoalescerEmptyBundle(t *testing.T) {
	t.Parallel()
	h := newHeld(t)
	calls, busy := h.busy()
	ctx, cancel := context.WithCancel(bg)
	for range MaxBatchTasks {
		h.enqueue(ctx, "x")
	}
	stays := h.enqueue(bg, "stays") // it is in the second bundle, because the first one becomes empty
	cancel()
	h.Until("the others have left", func() bool {
		h.c.Mu.Lock()
		defer h.c.Mu.Unlock()
		return waitingIn(h.c) == 1
	})
	calls[0].OK()
	call := h.call()
	if !slices.Equal(call.Messages, []string{"stays"}) {
		t.Errorf("sent %q", call.Messages)
	}
	ctx, cancel = context.WithCancel(bg)
	gone := h.enqueue(ctx, "gone")
	cancel()
	h.expect("the one that leaves", gone, context.Canceled)
	call.OK()
	calls[1].OK()
	for _, r := range append(busy, stays) {
		h.expect("a result", r, nil)
	}
	h.idle()
	if got := h.List(""); len(got) != 3 {
		t.Errorf("Redis has %q", got)
	}
}

// TestCoalescerUnderWay: a caller whose context ends while the call is under way gets an unknown result. The others'
// call goes on, even if that caller started it.
func TestCoalescerUnderWay(t *testing.T) {
	h := newHeld(t)
	held := make(chan struct{})
	h.src.OnDialed = func(context.Context) error { <-held; return nil }
	ctx, cancel := context.WithCancelCause(bg)
	starter := h.enqueue(ctx, "starter")
	other := h.enqueue(bg, "other")
	close(held)
	call := h.call()
	if !slices.Equal(call.Messages, []string{"starter", "other"}) {
		t.Errorf("sent %q", call.Messages)
	}
	cancel(errLeft)
	err := redistest.Await(h.Bench, "the caller that leaves", starter)
	if !errors.Is(err, ErrUnknown) || !errors.Is(err, errLeft) || !errors.Is(err, context.Canceled) {
		t.Errorf("left while under way: %v", err)
	}
	call.OK()
	h.expect("the other", other, nil)
	h.idle()
	if got := h.List(""); len(got) != 2 {
		t.Errorf("Redis has %q", got)
	}
}

// TestCoalescerPanicOfTheCaller: a panic continues in the goroutine of the caller that sent the bundle, and waiting
// callers do not notice.
func TestCoalescerPanicOfTheCaller(t *testing.T) {
	h := newHeld(t)
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		_ = h.c.Enqueue(bg, alone("a"), h.now)
	}()
	first := h.call()
	b := make(chan error, 1)
	go func() { b <- h.c.Enqueue(bg, alone("b"), h.now) }()
	second := h.call()
	c := h.enqueue(bg, "c")
	first.Answer <- faultnet.ErrPanic
	p, _ := redistest.Await(h.Bench, "the panic", panicked).(error)
	if !errors.Is(p, faultnet.ErrPanic) {
		t.Errorf("recovered %v", p)
	}
	h.call().OK()
	second.OK()
	h.expect("b", b, nil)
	h.expect("c", c, nil)
	h.idle()
}

// TestCoalescerDeserted: after all callers have left, nothing waits for a connection any more, and no task or goroutine
// remains.
func TestCoalescerDeserted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &faultnet.HoldSource{Calls: make(chan *faultnet.HeldCall)}
		dialled := 0
		src.OnDialed = func(ctx context.Context) error {
			if dialled++; dialled > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		c := NewCoalescer(NewStore(src, "", "q"))
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		first := make(chan error, 1)
		go func() { first <- c.Enqueue(ctx, alone("a"), time.Now()) }()
		synctest.Wait()
		time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnknown) {
			t.Errorf("%v", err)
		}
		second := make(chan error, 1)
		go func() { second <- c.Enqueue(t.Context(), alone("b"), time.Now()) }()
		call := <-src.Calls
		call.OK()
		if err := <-second; err != nil || !slices.Equal(call.Messages, []string{"b"}) {
			t.Errorf("%v, sent %q", err, call.Messages)
		}
		synctest.Wait()
		if c.calls+c.givenUp+c.opening != 0 {
			t.Errorf("%d calls, %d given up, %d opening", c.calls, c.givenUp, c.opening)
		}
	})
}

// TestCoalescerStall: calls that hang delay later ones by stallTime. As long as calls end, none is given up, and at
// most as many are under way as there are connections.
func TestCoalescerStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &faultnet.HoldSource{Calls: make(chan *faultnet.HeldCall, 2*CallerConns)}
		c := NewCoalescer(NewStore(src, "", "q"))
		var group sync.WaitGroup
		enqueue := func() {
			group.Go(func() {
				if err := c.Enqueue(bg, alone("m"), time.Now()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range callsAtOnce + 2 {
			enqueue()
		}
		if n := len(src.Calls); n != callsAtOnce {
			t.Fatalf("%d calls at once", n)
		}
		time.Sleep(stallTime) //nolint:forbidigo // of the bubble's clock
		enqueue()
		if n := len(src.Calls); n != callsAtOnce {
			t.Errorf("%d calls after %v", n, stallTime)
		}
		(<-src.Calls).OK() // one has ended in time, and another one begins
		synctest.Wait()
		time.Sleep(stallTime) //nolint:forbidigo // as above
		enqueue()
		enqueue()
		if n := len(src.Calls); n != callsAtOnce {
			t.Errorf("%d calls wait, one of them with all that had waited", n)
		}
		for range 2 * CallerConns {
			time.Sleep(stallTime + 1) //nolint:forbidigo // as above
			enqueue()
		}
		if n := len(src.Calls); n != CallerConns {
			t.Errorf("%d calls that hang, expected %d", n, CallerConns)
		}
		go func() {
			for call := range src.Calls {
				call.OK()
			}
		}()
		group.Wait()
		synctest.Wait()
		close(src.Calls)
		if c.calls+c.givenUp+c.opening != 0 || c.first != nil {
			t.Errorf("%d calls, %d given up, %d opening", c.calls, c.givenUp, c.opening)
		}
	})
}

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

// held is a coalescer on a real server. Its calls are held, so that the test decides when each is answered.
type held struct {
	*redistest.Bench
	src *faultnet.HoldSource
	c   *Coalescer
	now time.Time // it does not move, so that no call stalls
}

func newHeld(t *testing.T) *held {
	t.Helper()
	b := redistest.NewBench(t, redistest.Shared(t))
	b.Server.Do(t, "SCRIPT", "LOAD", Scripts["enqueue"].Source)
	src := &faultnet.HoldSource{Source: dialled(t, b.Server.URL()), Calls: make(chan *faultnet.HeldCall)}
	return &held{b, src, NewCoalescer(NewStore(src, "", b.Name)), time.Now()}
}

// enqueue enqueues a message in a goroutine of its own and returns once the message is sent or waits.
func (h *held) enqueue(ctx context.Context, message string) (result chan error) {
	h.T.Helper()
	count := func() int {
		h.c.Mu.Lock()
		defer h.c.Mu.Unlock()
		return waitingIn(h.c)
	}
	before := count()
	result = make(chan error, 1)
	go func() { result <- h.c.Enqueue(ctx, alone(message), h.now) }()
	h.Until("the task waits", func() bool { return count() > before })
	return result
}

// waitingIn returns the number of tasks that wait.
func waitingIn(c *Coalescer) (n int) {
	for b := c.first; b != nil; b = b.next {
		n += b.Waiting
	}
	return n
}

// busy starts as many calls as are under way at once, each with one task, and returns them.
func (h *held) busy() (calls []*faultnet.HeldCall, results []chan error) {
	h.T.Helper()
	for i := range callsAtOnce {
		result := make(chan error, 1)
		go func() { result <- h.c.Enqueue(bg, alone(fmt.Sprint("busy", i)), h.now) }()
		calls = append(calls, redistest.Await(h.Bench, "a call", h.src.Calls))
		results = append(results, result)
	}
	return calls, results
}

func (h *held) call() *faultnet.HeldCall {
	h.T.Helper()
	return redistest.Await(h.Bench, "a call", h.src.Calls)
}

// expect checks the result of a caller.
func (h *held) expect(what string, result chan error, want error) {
	h.T.Helper()
	if err := redistest.Await(h.Bench, what, result); !errors.Is(err, want) || (want == nil) != (err == nil) {
		h.T.Errorf("%s: %v, expected %v", what, err, want)
	}
}

// idle checks that no call is under way and no task waits.
func (h *held) idle() {
	h.T.Helper()
	h.Until("no call is under way", func() bool {
		h.c.Mu.Lock()
		defer h.c.Mu.Unlock()
		return h.c.calls+h.c.givenUp+h.c.opening == 0 && h.c.first == nil && h.c.Last == nil
	})
}

// alone returns the task that has a message, as a batch.
func alone(message string) []Envelope { return []Envelope{{ID: "a", Message: []byte(message)}} }
