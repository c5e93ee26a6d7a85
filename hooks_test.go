package delayed

import (
	"errors"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// heard collects events.
type heard struct {
	mu     sync.Mutex
	events []Event
}

func (h *heard) listen(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// of returns the events of some kinds, all if none is given.
func (h *heard) of(kinds ...EventKind) []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.events),
		func(e Event) bool { return len(kinds) > 0 && !slices.Contains(kinds, e.Kind) })
}

func (h *heard) names(kinds ...EventKind) []string {
	var names []string
	for _, e := range h.of(kinds...) {
		names = append(names, e.Kind.String())
	}
	return names
}

// listened makes a worker whose events are collected.
func (b *bench) listened(cfg WorkerConfig, fns ...any) (*Worker, *heard) {
	b.T.Helper()
	w, err := NewWorker(b.rdb, cfg)
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
	got := h.names(EventWorkerStarted, EventWorkerPaused, EventWorkerResumed, EventWorkerQuiet, EventWorkerStopping,
		EventWorkerStopped)
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
	for _, e := range h.of(EventWorkerStopping, EventWorkerStopped) {
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
	w, err := NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Listen(nil); !errors.Is(err, ErrFunction) {
		t.Errorf("nil: expected ErrFunction, found %v", err)
	}
	b.start(w)
	if err := w.Listen(func(Event) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Run: expected ErrClosed, found %v", err)
	}
}

// TestListenersCannotHarmTheWorker has one panic, one end its goroutine and one hang.
func TestListenersCannotHarmTheWorker(t *testing.T) {
	b := newBench(t)
	w, h := b.listened(b.config())
	hang := make(chan struct{})
	defer close(hang)
	for _, harm := range []func(Event){
		func(e Event) {
			if e.Kind == EventWorkerStarted {
				panic("no")
			}
		},
		func(e Event) {
			if e.Kind == EventWorkerPaused {
				runtime.Goexit()
			}
		},
		func(e Event) {
			if e.Kind == EventWorkerStopped {
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
	if got := h.names(EventWorkerStarted, EventWorkerPaused, EventWorkerResumed, EventWorkerStopping,
		EventWorkerStopped); !slices.Equal(got, want) {
		t.Errorf("expected %q, found %q", want, got)
	}
	for _, text := range []string{"a listener panicked", "a listener for events has not returned"} {
		if !strings.Contains(b.log.String(), text) {
			t.Errorf("the log lacks %q:\n%s", text, b.log)
		}
	}
}

// TestHooksPage holds docs/HOOKS.md against the kinds of events and the reasons to stop.
func TestHooksPage(t *testing.T) {
	page, err := os.ReadFile("docs/HOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	first := func(text []byte, pattern string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		return found
	}
	constants, rows := first(source, `(?m)^\t(Event(?:Task|Worker|Heartbeat|Queue)\w+) .*//`),
		first(page, "(?m)^\\| `(Event\\w+)` \\|")
	if len(constants) != int(publicKinds)-1 || !slices.Equal(constants, rows) {
		t.Errorf("kinds of events in event.go and docs/HOOKS.md differ: %d, %d and %d\n%q\n%q", publicKinds-1,
			len(constants), len(rows), constants, rows)
	}
	for k := EventKind(1); k < publicKinds; k++ {
		if k.String() == "" || strings.ReplaceAll("Event"+strings.ReplaceAll(k.String(), " ", ""), "-",
			"") != strings.ReplaceAll(strings.ToLower(constants[k-1]), "event", "Event") {
			t.Errorf("%s is called %q", constants[k-1], k)
		}
	}
	source, err = os.ReadFile("internal/engine/events.go")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string // the same in the same order: their numbers are converted
	for _, kind := range first(source, `(?m)^\t[Kk]ind(\w+)`) {
		kinds = append(kinds, "Event"+kind)
	}
	if !slices.Equal(kinds, constants) {
		t.Errorf("workers tell of %q, and listeners hear of %q", kinds, constants)
	}
	if EventKind(0).String() != "unknown event" || publicKinds.String() != "unknown event" {
		t.Error("kinds that are none have names")
	}
	_, reasons, _ := strings.Cut(string(page), "| reason |")
	source, err = os.ReadFile("internal/engine/limits.go")
	if err != nil {
		t.Fatal(err)
	}
	said, listed := first(source, `(?m)^\s*(?:const )?[Ss]top[A-Z]\w* += "([^"]+)"`),
		first([]byte(reasons), "(?m)^\\| `([^`]+)` \\|")
	if len(said) == 0 || !slices.Equal(said, listed) {
		t.Errorf("reasons to stop in limits.go and docs/HOOKS.md differ:\n%q\n%q", said, listed)
	}
}
