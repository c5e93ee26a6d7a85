package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// TestReporter holds the times at which reports are sent against what was reported when.
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
		report(1, nil) // at once
		step(30 * time.Millisecond)
		report(2, nil)
		report(3, nil)
		step(60 * time.Millisecond)
		report(4, nil) // at 100 ms
		step(time.Second)
		report(5, nil) // at once, at 1,090 ms
		fail = failure
		step(10 * time.Millisecond)
		report(6, nil) // at 1,190 ms, fails
		step(time.Second)
		fail = nil
		report(7, nil) // at once: what failed before is of no interest
		fail = failure
		step(50 * time.Millisecond)
		report(8, nil) // later, fails
		step(60 * time.Millisecond)
		report(9, failure) // the error of the last one; later
		report(9, nil)     // which was told
		step(time.Second)
		report(10, failure) // at once, its own
		report(11, nil)     // never: the handler returns
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
