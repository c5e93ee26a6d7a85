package top

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestMouse clicks on whatever can be clicked.
func TestMouse(t *testing.T) {
	t.Parallel()
	b := newBench(t, 120, 24)
	click := func(text string) {
		t.Helper()
		for y, line := range strings.Split(b.screen(), "\n") {
			if ahead, _, ok := strings.Cut(line, text); ok {
				b.send(tea.MouseClickMsg{X: len([]rune(ahead)) + 1, Y: y, Button: tea.MouseLeft})
				return
			}
		}
		t.Fatalf("no %q to click:\n%s", text, b.screen())
	}
	click("  mail ") // the problems above the list have no two blanks before it
	b.shows("> mail")
	click("> mail ")
	b.shows("Queues › mail › pending")
	click("retry 60")
	b.shows("Queues › mail › retry")
	b.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if line := b.line("> mail"); !strings.Contains(line, "r-03") {
		t.Errorf("the wheel leads to %q", line)
	}
	click("run now")
	b.shows("Run now 1 retry task")
	b.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	b.send(tea.MouseClickMsg{X: 5, Y: 8, Button: tea.MouseRight})
	click("[n] no")
	b.shows("nothing was done")
	click("1 Queues")
	b.shows("3 queues")
	click("PENDING")
	b.shows("PENDING↓")
	click("PENDING")
	b.shows("PENDING↑")
	click("and 1 more: !")
	b.shows("Queues › Problems", "start a worker with this queue")
	click("3 Functions")
	b.shows("3 functions")
	b.src.asked()
	click("1 Queues")
	click("  reports")
	click("p pause")
	click("[y] yes")
	if !b.hasAsked("resume reports") {
		t.Errorf("a click on yes did nothing: %s", b.src.asked())
	}
	b.keys("up")
	click("? help")
	b.shows("find a task by its id")
	click("e             its events") // a line of the help is its key
	b.until("the queue's events are shown", func() bool { return strings.Contains(b.screen(), "reports › Events") })
	click("7 Audit")
	b.shows("who has acted")
	click("5 Cron")
	click("d delete")
	b.shows("Delete entry digest")
	click("1 Queues") // the question must be answered first
	b.shows("Delete entry digest", "periodic entries")
	click("[n] no")
	b.keys("/")
	click("6 Groups") // so must the line that is being written
	b.shows("periodic entries", "filter:")
	b.keys("esc")
	click("q quit")
}
