package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestBackoffDoubles: the wait doubles after each failure, up to 1 s, and begins again after a success.
func TestBackoffDoubles(t *testing.T) {
	var b Backoff
	for range 2 {
		for i, ms := range []int{50, 100, 200, 400, 800, 1000, 1000, 1000} {
			want := time.Duration(ms) * time.Millisecond
			if got := b.Next(); got < want/2 || got > want*3/2 {
				t.Errorf("after failure %d it waits for %v, expected %v ± 50 %%", i+1, got, want)
			}
		}
		b.Reset()
	}
}

// TestBackoffIsJittered: callers that fail at the same time do not all try again at the same time.
func TestBackoffIsJittered(t *testing.T) {
	waits := map[time.Duration]bool{}
	for range 100 {
		waits[new(Backoff).Next()] = true
	}
	if len(waits) < 50 {
		t.Errorf("100 loops wait for %d different times", len(waits))
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !Sleep(t.Context(), time.Minute) || time.Since(start) != time.Minute {
			t.Errorf("slept for %v, expected a minute", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if Sleep(ctx, time.Minute) || time.Since(start) != time.Second {
			t.Errorf("slept for %v, expected a second", time.Since(start))
		}
	})
}
