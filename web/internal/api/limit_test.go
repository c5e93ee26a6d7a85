package api

import (
	"fmt"
	"testing"
	"time"
)

// TestLimiter asks at times that the test chooses.
func TestLimiter(t *testing.T) {
	t.Parallel()
	l, now := newLimiter(10), time.Unix(0, 0)
	for i := range 20 {
		if wait := l.take("ann", now); wait != 0 {
			t.Fatalf("request %d waits for %v", i, wait)
		}
	}
	if wait := l.take("ann", now); wait != 100*time.Millisecond {
		t.Errorf("one too many waits for %v", wait)
	}
	if wait := l.take("bob", now); wait != 0 {
		t.Errorf("another user waits for %v", wait)
	}
	if wait := l.take("ann", now.Add(100*time.Millisecond)); wait != 0 {
		t.Errorf("after a while it waits for %v", wait)
	}
	if wait := l.take("ann", now.Add(-time.Hour)); wait <= 0 {
		t.Error("a clock that goes back gives requests away")
	}
	for i := range 2 * maxBuckets {
		l.take(fmt.Sprint(i), now.Add(time.Duration(i)*time.Second))
	}
	if len(l.users) > maxBuckets {
		t.Errorf("%d users are remembered", len(l.users))
	}
	free := newLimiter(-1)
	for range 1000 {
		if free.take("ann", now) != 0 {
			t.Fatal("there is a bound where there should be none")
		}
	}
}
