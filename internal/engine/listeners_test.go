package engine

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/loop"
)

// heard collects events.
type heard struct {
	mu     sync.Mutex
	events []events.Event
}

func (h *heard) listen(e events.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// of returns the events of some kinds, all if none is given.
func (h *heard) of(kinds ...event.Kind) []events.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.events),
		func(e events.Event) bool { return len(kinds) > 0 && !slices.Contains(kinds, e.Kind) })
}

// listened makes a worker whose events are collected.
func (b *bench) listened(cfg WorkerConfig, fns ...*Function) (*Worker, *heard) {
	b.T.Helper()
	w, err := NewWorker(b.rdb, cfg)
	if err != nil {
		b.T.Fatal(err)
	}
	if len(fns) > 0 {
		if err := w.Register(fns, nil); err != nil {
			b.T.Fatal(err)
		}
	}
	h := &heard{}
	if err := w.Listen(h.listen); err != nil {
		b.T.Fatal(err)
	}
	return w, h
}

func TestEventsThatListenersAreTooSlowFor(t *testing.T) {
	var h events.Listeners
	var got []events.Event
	h.Add(func(e events.Event) { got = append(got, e) })
	for range events.MaxEvents + 5 {
		h.Emit(events.Event{Kind: event.TaskDone})
	}
	h.Start(loop.NewJournal((&logText{}).logger()))
	for {
		h.Mu.Lock()
		taken := len(h.Queue) == 0
		h.Mu.Unlock()
		if taken {
			break
		}
		runtime.Gosched()
	}
	h.Emit(events.Event{Kind: event.TaskStarted})
	h.Emit(events.Event{Kind: event.TaskFailed})
	h.Stop(patience)
	if len(got) != events.MaxEvents+2 || got[0].Missed != 0 {
		t.Fatalf("expected %d events, found %d, the first is %+v", events.MaxEvents+2, len(got), got[0])
	}
	// The first event after missed ones contains their number, and no other does.
	for i, want := range []events.Event{{Kind: event.TaskStarted, Missed: 5}, {Kind: event.TaskFailed}} {
		if e := got[events.MaxEvents+i]; e.Kind != want.Kind || e.Missed != want.Missed {
			t.Errorf("expected %v after %d missed ones, found %+v", want.Kind, want.Missed, e)
		}
	}
}

// TestPatienceWithListeners: Run waits for listeners for CancelGrace, and at least for a second.
func TestPatienceWithListeners(t *testing.T) {
	for grace, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Millisecond: time.Second,
		time.Minute: time.Minute,
	} {
		if got := (&Config{CancelGrace: grace}).listenGrace(); got != want {
			t.Errorf("with a CancelGrace of %v it waits for %v, expected %v", grace, got, want)
		}
	}
}

func TestEventsCostNothingWithoutListeners(t *testing.T) {
	b := newBench(t)
	w, err := NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		w.events.Emit(events.Event{Kind: event.TaskDone, Duration: time.Second})
	}); n != 0 {
		limits.Errorf(t, "expected no allocations, found %v", n)
	}
	if n := len(w.events.Queue); n != 0 {
		t.Errorf("expected no events, found %d", n)
	}
	h := &w.events
	h.Start(w.log)
	if h.Delivered != nil {
		t.Error("a goroutine waits for events that nobody hears")
	}
}
