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

// TestReschedule gives tasks another due time, and refuses what is none.
func TestReschedule(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys(screens["tasks"]...) // two are marked
	b.src.asked()
	b.keys("R")
	b.shows("reschedule 2 retry tasks to:", "15m, 2d, or 2026-01-31 15:04")
	for _, wrong := range []string{"soon", "-5m", ""} {
		b.keys("ctrl+u", wrong, "enter")
		b.shows("expected ")
	}
	b.keys("ctrl+u", "2d", "enter")
	b.shows("Reschedule 2 retry tasks of queue mail to 2026-02-02 12:00:00Z (in 2d0h)?")
	b.keys("y")
	if !b.hasAsked("Do mail reschedule to 2026-02-02T12:00:00Z r-01,r-02") {
		t.Errorf("the source was asked %s", b.src.asked())
	}
	b.shows("rescheduled 2 tasks")
	b.keys("*", "R", "2026-03-01T00:00:00Z", "enter", "y")
	if !b.hasAsked("DoAll mail reschedule to 2026-03-01T00:00:00Z retry ") {
		t.Errorf("the source was asked %s", b.src.asked())
	}
	b.keys("right", "R")
	b.shows("cannot reschedule: no task is selected")
	b.keys("right", "right", "R") // archived
	b.shows("expected a task that is pending, scheduled or retry")
}

// TestEdit writes other arguments of a task, which are checked against what workers publish.
func TestEdit(t *testing.T) {
	t.Parallel()
	b := newBench(t, 120, 24)
	b.keys(screens["task"]...)
	b.keys("e")
	b.shows(`arguments: [42,"en",{"Name":"Ann"}]`)
	b.keys("home", "right", "right", "right", "backspace", "3") // 42 becomes 43
	b.shows(`arguments: [43,"en",{"Name":"Ann"}]`)
	b.keys("end", "backspace", "enter")
	b.shows("expected a JSON array")
	b.keys(`,1]`, "enter")
	b.shows("expected the arguments of mail.Welcome(int64, string, mail.User), found 4")
	b.keys("backspace", "backspace", "backspace", "]", "enter")
	b.shows("Edit 1 retry task of queue mail?", `Its arguments will be [43,"en",{"Name":"Ann"}]`)
	b.keys("n", "e")
	b.keys(strings.Repeat("x", 200), "enter")
	b.shows("expected a JSON array") // however long the line is
	b.keys("home", "enter")
	b.shows("expected a JSON array")
	b.keys("esc", "e", "enter", "y")
	if !b.hasAsked("Do mail edit r-00") {
		t.Errorf("the source was asked %s", b.src.asked())
	}
	b.keys("esc", "space", "e")
	b.shows("cannot edit: expected one task, not marked ones")
	b.keys("space", "up", "space", "up")
	b.src.known = nil
	b.keys("esc", "e")
	b.shows("cannot edit: no worker of its queue has published mail.Welcome")
}

// TestWorkerTellsWhatRuns shows tasks that a worker says it runs although they are not among the claims that were read.
func TestWorkerTellsWhatRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.src.short = true
	b.src.work[0].MoreRunning = 5
	b.keys("2", "enter")
	b.shows("running   7 tasks for more than a second; it does not say which 5 of them are",
		"> 12m00s  mail   mail.Digest(…) ", "      3s  mail   mail.Welcome(…)")
	b.src.short = false // all claims are read: a-2 is not among them, so it has just ended
	b.keys("ctrl+r")
	b.hides("mail.Welcome(…)")
	b.shows("> 12m00s  mail   mail.Digest(")
}
