//go:build unix

package itest_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/itest/ledger"
)

// touches delays n tasks that record that they ran, and returns their names.
func (p *pair) touches(t *testing.T, prefix string, n, millis int) []string {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", prefix, i)
		p.produce.delay(t, order{Function: "touch", Args: []any{names[i], millis}})
	}
	return names
}

// count returns how many events of a kind the task with this name has.
func (p *pair) count(t *testing.T, kind ledger.Kind, name string) int {
	t.Helper()
	return len(p.ledger.read(t).ByTask()[name].Of(kind))
}

// ended waits until tasks have ended.
func (p *pair) ended(t *testing.T, names []string) {
	t.Helper()
	waitForAtMost(t, matrixPatience, "all tasks to end", func() bool {
		return len(p.ledger.read(t).Of(ledger.End).Missing(names)) == 0
	})
}

// once checks that each of the tasks ran once.
func (p *pair) once(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if n := p.count(t, ledger.Start, name); n != 1 {
			t.Errorf("%s started %d times, expected once", name, n)
		}
	}
}

func plainScenario(t *testing.T, p *pair) {
	t.Helper()
	names := p.touches(t, "plain", 20, 0)
	p.ended(t, names)
	p.once(t, names)
}

// argumentsScenario sends arguments of all shapes. Each is given in JSON as it is sent and as the ledger should show
// it.
func argumentsScenario(t *testing.T, p *pair) {
	t.Helper()
	shapes := []string{
		`[]`, `[1]`, `[0, -1, 127, 128, 255, 256, -32769, 4294967296]`, `[9223372036854775807, -9223372036854775808]`,
		`["", "a", "ü😀 ", "` + "\\u0000" + `"]`, `[true, false, null]`, `[1.5, -0.25, 1e300]`,
		`[{"bytes": "00ff80"}, {"bytes": ""}]`,
		`["list", []]`, `["list", [1, [2, [null, "x"]]]]`, `["map", {}]`, `["map", {"a": {"b": [1, 2]}, "c": null}]`,
	}
	// If the only argument is an array, the message must contain the number of arguments, which keakon's Go tasks do
	// not.
	if p.producer != keakonParty || p.worker != goParty {
		shapes = append(shapes, `[[]]`, `[[1]]`, `[[1, 2]]`, `[[[1, 2]]]`)
	}
	before := len(p.ledger.calls(t))
	var want []any
	for _, s := range shapes {
		var args []any
		if err := json.Unmarshal([]byte(s), &args); err != nil {
			t.Fatal(err)
		}
		want = append(want, args)
		p.produce.delay(t, order{Function: "record", Args: raw(s)})
		waitForAtMost(t, matrixPatience, s+" to arrive",
			func() bool { return len(p.ledger.calls(t)) == before+len(want) })
	}
	for i, call := range p.ledger.calls(t)[before:] {
		if !reflect.DeepEqual(any(call.Args), want[i]) {
			t.Errorf("%s arrived as %v", shapes[i], call.Args)
		}
	}
}

// raw returns text as arguments in JSON.
func raw(text string) []any { return []any{json.RawMessage(text)} }

func retryScenario(t *testing.T, p *pair) {
	t.Helper()
	before := len(p.ledger.calls(t))
	p.produce.delay(t, order{Function: "fail_times", Args: []any{"key", 2}, Retry: 5})
	waitForAtMost(t, matrixPatience, "three runs", func() bool { return len(p.ledger.calls(t)) == before+3 })
	p.settled(t)
	for i, call := range p.ledger.calls(t)[before:] {
		if want := []any{"key", float64(i + 1)}; !reflect.DeepEqual(call.Args, want) {
			t.Errorf("call %d was %v, expected %v", i, call.Args, want)
		}
	}
}

func scheduledScenario(t *testing.T, p *pair) {
	t.Helper()
	const wait = time.Second
	start := time.Now()
	p.produce.delay(t, order{Function: "touch", Args: []any{"scheduled", 0}, Countdown: wait.Seconds()})
	p.ended(t, []string{"scheduled"})
	p.once(t, []string{"scheduled"})
	// Redis counts in whole milliseconds.
	if at := p.ledger.read(t).ByTask()["scheduled"][0].Time; at.Sub(start) < wait-2*time.Millisecond {
		t.Errorf("it started %v after it was delayed, expected %v", at.Sub(start), wait)
	}
}

func uniqueScenario(t *testing.T, p *pair) {
	t.Helper()
	o := order{Function: "touch", Args: []any{"unique", 0}, Unique: 60, Countdown: 1}
	first := p.produce.delay(t, o)
	second := p.produce.delay(t, o)
	if first.Conflict != "" || second.Conflict != first.ID || first.ID == "" {
		t.Errorf("the first is %+v, the second %+v", first, second)
	}
	p.ended(t, []string{"unique"})
	p.settled(t) // its lock has ended as well
	if third := p.produce.delay(t, o); third.Conflict != "" {
		t.Errorf("after the end of the first another is refused: %+v", third)
	}
	waitForAtMost(t, matrixPatience, "the second run", func() bool { return p.count(t, ledger.End, "unique") == 2 })
}

func resultScenario(t *testing.T, p *pair) {
	t.Helper()
	ref := p.produce.delay(t, order{Function: "total", Args: []any{2, 40}, KeepResult: 60})
	if got := p.produce.result(t, ref.ID); got.Value != 42.0 || got.Error != "" {
		t.Errorf("the result is %+v, expected 42", got)
	}
	before := len(p.ledger.calls(t))
	ref = p.produce.delay(t, order{Function: "broken", Args: []any{}, KeepResult: 60, NoRetry: true})
	if got := p.produce.result(t, ref.ID); got.Error == "" {
		t.Errorf("the result of a task that fails is %+v, expected an error", got)
	}
	if n := len(p.ledger.calls(t)) - before; n != 1 {
		t.Errorf("a task that may not be retried ran %d times", n)
	}
	if err := delayed.NewQueue(p.queue, handle(t, p.server)).Ref(ref.ID).Delete(t.Context()); err != nil {
		t.Errorf("the task is not archived: %v", err)
	}
}

// cancelScenario cancels tasks that are scheduled, active and pending.
func cancelScenario(t *testing.T, p *pair) {
	t.Helper()
	scheduled := p.produce.delay(t, order{Function: "touch", Args: []any{"cancel-scheduled", 0}, Countdown: 3600})
	p.produce.cancel(t, scheduled.ID)
	var active []outcome
	for i := range matrixConcurrency {
		name := fmt.Sprint("cancel-active-", i)
		active = append(active, p.produce.delay(t, order{Function: "touch", Args: []any{name, 3_600_000}}))
		waitForAtMost(t, matrixPatience, name+" to start", func() bool { return p.count(t, ledger.Start, name) == 1 })
	}
	pending := p.produce.delay(t, order{Function: "touch", Args: []any{"cancel-pending", 0}})
	p.produce.cancel(t, pending.ID)
	for _, a := range active {
		p.produce.cancel(t, a.ID)
	}
	after := p.touches(t, "cancel-after", 2*matrixConcurrency, 0)
	p.ended(t, after)
	for _, name := range []string{"cancel-scheduled", "cancel-pending"} {
		if n := p.count(t, ledger.Start, name); n != 0 {
			t.Errorf("%s started %d times, expected never", name, n)
		}
	}
	for i := range matrixConcurrency {
		name := fmt.Sprint("cancel-active-", i)
		if s, e := p.count(t, ledger.Start, name), p.count(t, ledger.End, name); s != 1 || e != 0 {
			t.Errorf("%s started %d times and ended %d times, expected one start", name, s, e)
		}
	}
}

// killedScenario kills the worker while it holds tasks, and another one takes over.
func killedScenario(t *testing.T, p *pair) {
	t.Helper()
	// The first run of this task does not end.
	p.produce.delay(t, order{Function: "hang_once", Args: []any{"hangs"}})
	names := append(p.touches(t, "killed", 30, 20), "hangs")
	waitForAtMost(t, matrixPatience, "the worker to be at it",
		func() bool { return p.count(t, ledger.Start, "hangs") == 1 })
	p.work.kill(t)
	p.work = startMatrixWorker(p.t, p)
	p.ended(t, names)
	if n := p.count(t, ledger.Start, "hangs"); n != 2 {
		t.Errorf("the task in hand started %d times, expected twice", n)
	}
}
