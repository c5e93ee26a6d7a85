package main

import (
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
func (d *deafQueue) enqueueMany(int64, []string) error   { return errNone }
func (d *deafQueue) work(int, func(int64, string)) error { return nil }

func TestServe(t *testing.T) {
	q := &deafQueue{}
	var out strings.Builder
	requests := `{"Op":"enqueue","N":2}
{"Op":"enqueue","N":4,"Batch":2}
{"Op":"enqueue","N":1,"Rate":1,"Lead":1}
{"Op":"enqueue","N":1,"Form":"unique"}
{"Op":"nonsense"}
{"Op":"pretend"}
{"Op":"work"}
rubbish`
	var gone error
	if err := serve(q, strings.NewReader(requests), &out, func(err error) { gone = err }); err != nil || gone == nil {
		t.Fatalf("expected the error of rubbish, found %v, %v", gone, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{
		`"Seconds"`, `"None":true`, `"None":true`, `"None":true`, "expected op", `"None":true`, `"Ready":true`, "{",
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d: expected %s in\n%s", i, want, out.String())
		}
	}
	if got := strings.Join(q.enqueued, " "); got != "hello-task hello-task" {
		t.Errorf("enqueued %s", got)
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
			served <- serve(&deafQueue{}, in, &out, func(error) { close(gone) })
		}()
		if _, err := caller.Write([]byte(`{"Op":"work","N":1}` + "\n")); err != nil {
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
