package lane

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// TestReporter compares the times at which reports are sent with those at which they were made.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		var sent []int64
		failure := errors.New("no connection")
		var fail error
		r := &reporter{send: func(_ context.Context, p wire.Progress) error {
			at, sent = append(at, time.Since(start)), append(sent, p.Done)
			return fail
		}}
		report := func(n int64, want error) {
			t.Helper()
			if err := r.report(t.Context(), wire.Progress{Done: n}); !errors.Is(err, want) {
				t.Errorf("report %d: %v, expected %v", n, err, want)
			}
		}
		step := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		report(1, nil) // sent at once
		step(30 * time.Millisecond)
		report(2, nil)
		report(3, nil)
		step(60 * time.Millisecond)
		report(4, nil) // sent at 100 ms
		step(time.Second)
		report(5, nil) // sent at once, at 1,090 ms
		fail = failure
		step(10 * time.Millisecond)
		report(6, nil) // fails at 1,190 ms
		step(time.Second)
		fail = nil
		report(7, nil) // sent at once: it replaces the one that failed
		fail = failure
		step(50 * time.Millisecond)
		report(8, nil) // sent later, fails
		step(60 * time.Millisecond)
		report(9, failure) // returns the error of the last one; sent later
		report(9, nil)     // it was returned already
		step(time.Second)
		report(10, failure) // sent at once, returns its own error
		report(11, nil)     // never sent, because the handler returns
		r.close()
		step(time.Second)
		if err := r.report(t.Context(), wire.Progress{}); err == nil {
			t.Error("a report after the end")
		}
		want := []int64{0, 100, 1090, 1190, 2100, 2200, 2300, 3210}
		if len(at) != len(want) {
			t.Fatalf("sent %v at %v, expected times %v", sent, at, want)
		}
		for i := range want {
			if at[i].Milliseconds() != want[i] {
				t.Errorf("report %d was sent at %v, expected %d ms", sent[i], at[i], want[i])
			}
		}
	})
}
