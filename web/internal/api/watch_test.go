package api

import (
	"fmt"
	"testing"
	"time"
)

// TestSlowListener drops a client that does not take its events, and no other.
func TestSlowListener(t *testing.T) {
	t.Parallel()
	ws := &watchers{}
	slow := &listener{events: make(chan []byte, eventBuffer)}
	quick := &listener{events: make(chan []byte, eventBuffer)}
	w := &watcher{func() {}, map[*listener]struct{}{slow: {}, quick: {}}}
	ws.size = 2
	for i := range eventBuffer + 1 {
		ws.tell("", w, func(*listener) []byte { return fmt.Append(nil, i) })
		if got := string(<-quick.events); got != fmt.Sprint(i) {
			t.Fatalf("the quick client gets %s, expected %d", got, i)
		}
	}
	n := 0
	for range slow.events { // it is closed
		n++
	}
	if n != eventBuffer || slow.why == "" || ws.size != 1 {
		t.Errorf("the slow client has got %d events, and was told %q; %d clients remain", n, slow.why, ws.size)
	}
}

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
