package top

import (
	"strings"
	"testing"
)

// TestFailedAttempts shows the last failed attempts of a task, the latest first, and its error once.
func TestFailedAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t, 100, 40)
	b.keys(screens["task"]...)
	b.shows("failed        attempt 2, 2026-01-31 11:59:59Z (1s ago), on 1d7df465b91b…",
		"failed        attempt 1, 2026-01-31 11:59:00Z (1m00s ago), on 9ab8ce1c74e3…", "smtp: no route to host")
	text := b.screen()
	if strings.Index(text, "attempt 2,") > strings.Index(text, "attempt 1,") {
		t.Errorf("the latest attempt is not the first:\n%s", text)
	}
	if n := strings.Count(text, "mailbox full"); n != 1 {
		t.Errorf("the last error is shown %d times, expected once:\n%s", n, text)
	}
}
