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
	"github.com/godelayed/delayed/internal/redistest"
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
