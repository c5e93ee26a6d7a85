package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/cli"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

// screen is what a command has printed so far.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// following runs a command line until end is called, which returns its exit code.
func (b *bench) following(args ...string) (out, errs *screen, end func() int) {
	b.T.Helper()
	ctx, cancel := context.WithCancel(bg)
	b.T.Cleanup(cancel)
	out, errs = new(screen), new(screen)
	code := make(chan int, 1)
	streams, columns := b.streams(out, errs), b.columns
	streams.Columns = func() int { return columns }
	go func() { code <- cli.Run(ctx, args, streams) }()
	return out, errs, func() int {
		b.T.Helper()
		cancel()
		return redistest.Await(b.Bench, "the end of the command", code)
	}
}

// delayUntil delays a call again and again until a condition holds: workers publish events only from a moment on.
func (b *bench) delayUntil(what string, call *delayed.Task, cond func() bool) {
	b.T.Helper()
	b.Until(what, func() bool {
		_, err := b.q.With(delayed.MaxRetry(0)).Enqueue(bg, call)
		b.Must(err)
		<-time.After(10 * time.Millisecond) // between two tasks
		return cond()
	})
}

func TestTail(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(fails, welcome)
	b.columns = 100
	people, peopleErrs, endPeople := b.following("tail", queueName)
	b.columns = 0
	machine, _, endMachine := b.following("tail", "--func", "fails", "--kind", "archived,failed", "--json")
	b.delayUntil("both publish a failure", delayed.Call(fails, 1), func() bool {
		return strings.Contains(people.String(), "task archived") && strings.Contains(machine.String(), "archived")
	})
	b.delayUntil("people see a success", delayed.Call(welcome, 7, "en"), func() bool {
		return strings.Contains(people.String(), "task done")
	})
	for _, end := range []func() int{endPeople, endMachine} {
		if code := end(); code != 0 {
			t.Errorf("exit code %d after Ctrl-C, expected 0", code)
		}
	}
	checkPrintable(t, "tail", people.String())
	if text := people.String(); !strings.Contains(text, "Following mail") ||
		!strings.Contains(text, `mailbox\nfull:\x1b[31m red`) || peopleErrs.String() != "" {
		t.Errorf("people see %s%s", text, peopleErrs.String())
	}
	validate(t, "tail", machine.String())
	kinds := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(machine.String()), "\n") {
		var e struct{ Kind, Function string }
		b.Must(json.Unmarshal([]byte(line), &e)) // a document on each line
		if kinds[e.Kind] = true; !strings.HasSuffix(e.Function, ".fails") {
			t.Errorf("an event of %s, expected those of fails alone", e.Function)
		}
	}
	if len(kinds) != 2 || !kinds["task failed"] || !kinds["task archived"] {
		t.Errorf("events of the kinds %v, expected task failed and task archived", kinds)
	}
}

// TestTailOfMany has a worker publish more events than it may.
func TestTailOfMany(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome)
	out, _, end := b.following("tail", "--kind", "worker stopped", "--json")
	calls := make([]*delayed.Task, 1000)
	for i := range calls {
		calls[i] = delayed.Call(welcome, i, "en")
	}
	b.Until("something was left out", func() bool {
		_, err := b.q.DelayMany(bg, calls...)
		b.Must(err)
		b.Until("they are done", func() bool { return b.Size("") == 0 })
		return strings.Contains(out.String(), `"kind":"missed"`)
	})
	if code := end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	validate(t, "tail", out.String())
	if strings.Contains(out.String(), "task") {
		t.Errorf("it tells of tasks: %s", out.String())
	}
}

func TestTailGoesOnWhenRedisComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome)
	proxy := faultnet.NewProxy(t, b.Server.Addr())
	b.env["DELAYED_URL"] = proxy.URL()
	out, errs, end := b.following("tail")
	call := delayed.Call(welcome, 1, "en")
	b.delayUntil("it tells of a task", call, func() bool { return strings.Contains(out.String(), "task done") })
	proxy.Refuse()
	proxy.CutAll()
	b.Until("it says that Redis is away", func() bool { return strings.Contains(errs.String(), "connecting to Redis") })
	proxy.Heal()
	before := len(out.String())
	b.delayUntil("it tells of a task again", call, func() bool {
		return strings.Contains(out.String()[before:], "task done")
	})
	if code := end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestTailRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fails(2, `--kind "nonsense": expected one of task started, `, "tail", "--kind", "nonsense")
	b.fails(2, "--limit -1: expected 0 or more", "tail", "-n", "-1")
	b.fails(2, "tail follows events without it", "tail", "--watch")
	b.fails(3, "nobody has enqueued a task there", "tail", "nosuch")
	b.env["DELAYED_URL"] = "redis://127.0.0.1:1"
	b.fails(1, "connecting to Redis", "tail")
}

// TestTailEndsByItself ends after as many events as it was asked for.
func TestTailEndsByItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome)
	done := make(chan result, 1)
	go func() { done <- b.run("tail", "-n", "2", "--json") }()
	b.Until("it has ended", func() bool {
		_, err := b.q.Delay(welcome, 1, "en")
		b.Must(err)
		return len(done) > 0
	})
	if r := <-done; r.code != 0 || strings.Count(r.out, "\n") != 2 {
		t.Errorf("%+v, expected two events", r)
	}
}
