package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

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
	b.Server.Do(t, "SCRIPT", "LOAD", ScriptEnqueue.Source)
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
