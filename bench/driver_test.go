package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// deafQueue accepts tasks and never runs them.
type deafQueue struct{ enqueued []string }

func (d *deafQueue) enqueue(_ int64, text string) error {
	d.enqueued = append(d.enqueued, text)
	return nil
}
func (d *deafQueue) enqueueMany(int64, []string) error { return errNone }
func (d *deafQueue) work(int, func(int64, string)) (func(), error) {
	return func() {}, nil
}
func (d *deafQueue) close() {}

func TestServe(t *testing.T) {
	q := &deafQueue{}
	var out strings.Builder
	requests := `{"op":"enqueue","n":4,"every":2}
{"op":"enqueue","n":4,"batch":2}
{"op":"enqueue","n":1,"schedule":true}
{"op":"nonsense"}
{"op":"report"}
{"op":"work"}
{"op":"report"}
`
	if err := (&driver{queue: q}).serve(strings.NewReader(requests), &out, func() {}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{
		`"seconds"`, `"none":true`, `"none":true`, "expected op", "before", `"ready":true`,
		"{", "{",
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d: expected %s in\n%s", i, want, out.String())
		}
	}
	if got := strings.Join(q.enqueued, " "); got != "hello-task long hello-task long" {
		t.Errorf("enqueued %s", got)
	}
	if err := (&driver{queue: q}).serve(strings.NewReader("rubbish"), io.Discard, func() {}); err == nil {
		t.Error("rubbish was accepted")
	}
}

// TestServeNoticesThatItsCallerIsGone checks that serve notices it even while it works.
func TestServeNoticesThatItsCallerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, caller := io.Pipe()
		gone := make(chan struct{})
		served := make(chan error, 1)
		var out strings.Builder
		go func() {
			served <- (&driver{queue: &deafQueue{}}).serve(in, &out, func() { close(gone) })
		}()
		if _, err := caller.Write([]byte(`{"op":"work","n":1}` + "\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		caller.Close()
		synctest.Wait()
		select {
		case <-gone:
		default:
			t.Fatal("nobody noticed")
		}
		if err := <-served; err != nil { // after its time limit
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "only 0 of 1 tasks") {
			t.Errorf("it answered %s", out.String())
		}
	})
}

// TestPace: pace keeps the times of tasks when a call is slow, and returns errors.
func TestPace(t *testing.T) {
	numbers := make(chan int64, 100)
	err := pace(func(number int64, text string) error {
		numbers <- number
		if text == "bad" {
			return errors.New("no luck")
		}
		return nil
	}, 50, 10_000, func(i int) string {
		if i == 49 {
			return "bad"
		}
		return ""
	})
	if err == nil || len(numbers) != 50 {
		t.Fatalf("%d calls, error %v", len(numbers), err)
	}
	low, high := <-numbers, int64(0)
	for range 49 {
		n := <-numbers
		low, high = min(low, n), max(high, n)
	}
	if high-low != 49*100_000 {
		t.Errorf("50 tasks at 10,000 a second were due within %d ns, expected 4,900,000", high-low)
	}
}
