package delayed_test

import (
	"errors"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
)

// heard collects events.
type heard struct {
	mu     sync.Mutex
	events []delayed.Event
}

func (h *heard) listen(e delayed.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// of returns the events of some kinds, all if none is given.
func (h *heard) of(kinds ...event.Kind) []delayed.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.events),
		func(e delayed.Event) bool { return len(kinds) > 0 && !slices.Contains(kinds, e.Kind) })
}

func (h *heard) names(kinds ...event.Kind) []string {
	var names []string
	for _, e := range h.of(kinds...) {
		names = append(names, e.Kind.String())
	}
	return names
}

// listened makes a worker whose events are collected.
func (b *bench) listened(cfg delayed.WorkerConfig, fns ...any) (*delayed.Worker, *heard) {
	b.T.Helper()
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		b.T.Fatal(err)
	}
	if len(fns) > 0 {
		if err := w.Register(fns...); err != nil {
			b.T.Fatal(err)
		}
	}
	h := &heard{}
	if err := w.Listen(h.listen); err != nil {
		b.T.Fatal(err)
	}
	return w, h
}

func TestEventsOfAWorker(t *testing.T) {
	b := newBench(t)
	w, h := b.listened(b.config())
	s := b.start(w)
	w.Pause()
	w.Resume()
	w.Quiet()
	s.mustStop()
	got := h.names(event.WorkerStarted, event.WorkerPaused, event.WorkerResumed, event.WorkerQuiet,
		event.WorkerStopping,
		event.WorkerStopped)
	want := []string{
		"worker started", "worker paused", "worker resumed", "worker quiet", "worker stopping",
		"worker stopped",
	}
	if !slices.Equal(got, want) {
		t.Errorf("expected %q, found %q", want, got)
	}
	for _, e := range h.of() {
		if e.At.IsZero() {
			t.Errorf("%s without a time", e.Kind)
		}
	}
	for _, e := range h.of(event.WorkerStopping, event.WorkerStopped) {
		if e.Reason != "context" || e.Err != nil {
			t.Errorf("%s: expected reason %q and no error, found %q and %v", e.Kind, "context", e.Reason, e.Err)
		}
	}
	if reason := w.Status().StopReason; reason != "context" {
		t.Errorf("status: expected reason %q, found %q", "context", reason)
	}
}

func TestListenIsForWorkersThatDoNotRun(t *testing.T) {
	b := newBench(t)
	w, err := delayed.NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Listen(nil); !errors.Is(err, delayed.ErrFunction) {
		t.Errorf("nil: expected ErrFunction, found %v", err)
	}
	b.start(w)
	if err := w.Listen(func(delayed.Event) {}); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("after Run: expected ErrClosed, found %v", err)
	}
}

// TestListenersCannotHarmTheWorker has one panic, one end its goroutine and one hang.
func TestListenersCannotHarmTheWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, h := b.listened(b.config())
	hang := make(chan struct{})
	defer close(hang)
	for _, harm := range []func(delayed.Event){
		func(e delayed.Event) {
			if e.Kind == event.WorkerStarted {
				panic("no")
			}
		},
		func(e delayed.Event) {
			if e.Kind == event.WorkerPaused {
				runtime.Goexit()
			}
		},
		func(e delayed.Event) {
			if e.Kind == event.WorkerStopped {
				<-hang
			}
		},
	} {
		if err := w.Listen(harm); err != nil {
			t.Fatal(err)
		}
	}
	s := b.start(w)
	w.Pause()
	w.Resume()
	s.mustStop()
	want := []string{"worker started", "worker paused", "worker resumed", "worker stopping", "worker stopped"}
	if got := h.names(event.WorkerStarted, event.WorkerPaused, event.WorkerResumed, event.WorkerStopping,
		event.WorkerStopped); !slices.Equal(got, want) {
		t.Errorf("expected %q, found %q", want, got)
	}
	for _, text := range []string{"a listener panicked", "a listener for events has not returned"} {
		if !strings.Contains(b.log.String(), text) {
			t.Errorf("the log lacks %q:\n%s", text, b.log)
		}
	}
}

// TestHooksPage compares docs/HOOKS.md with the kinds of events and the reasons to stop.
func TestHooksPage(t *testing.T) {
	page, err := os.ReadFile("docs/HOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("event/kind.go")
	if err != nil {
		t.Fatal(err)
	}
	first := func(text []byte, pattern string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		return found
	}
	constants, rows := first(source, `(?m)^\t((?:Task|Worker|Heartbeat|Queue)\w+) .*//`),
		first(page, "(?m)^- `event\\.(\\w+)`: ")
	if len(constants) == 0 || !slices.Equal(constants, rows) {
		t.Errorf("kinds of events in event/kind.go and docs/HOOKS.md differ: %d and %d\n%q\n%q", len(constants),
			len(rows),
			constants, rows)
	}
	for i, constant := range constants {
		name := event.Kind(i + 1).String()
		if strings.ReplaceAll(name, " ", "") != strings.ToLower(constant) {
			t.Errorf("%s is called %q", constant, name)
		}
	}
	for _, none := range []int{0, len(constants) + 1} {
		if name := event.Kind(none).String(); name != "unknown event" {
			t.Errorf("kind %d, which is none, is called %q", none, name)
		}
	}
	_, reasons, _ := strings.Cut(string(page), "\n### Why a worker stops\n")
	source, err = os.ReadFile("state/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	said, listed := first(source, `(?m)^\tStop\w+ +Reason = "([^"]+)"`),
		first([]byte(reasons), "(?m)^- `([^`]+)`: ")
	if len(said) == 0 || !slices.Equal(said, listed) {
		t.Errorf("reasons to stop in state/reason.go and docs/HOOKS.md differ:\n%q\n%q", said, listed)
	}
}
