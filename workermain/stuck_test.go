//go:build unix

package workermain

import (
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

// TestStuckBesideRunning: a handler that is stuck decides the exit code, also when another one just runs for long.
func TestStuckBesideRunning(t *testing.T) {
	q, flags := newQueue(t)
	release := make(chan struct{})
	defer close(release)
	handler := func() { <-release }
	stubborn := delayed.Func(handler, delayed.Name("test.stubborn"), delayed.Timeout(300*time.Millisecond))
	long := delayed.Func(handler, delayed.Name("test.long"))
	delay(t, q, stubborn)
	delay(t, q, long)
	limits := []string{"-stuck-after", "10ms", "-max-stuck", "-1", "-grace", "10ms", "-cancel-grace", "0"}
	code := run(Config{Args: slices.Concat(flags, limits), Functions: []any{stubborn, long}},
		func(string) (string, bool) { return "", false }, func() []string { return nil })
	if code != exitStuck {
		t.Errorf("code %d, expected %d", code, exitStuck)
	}
}
