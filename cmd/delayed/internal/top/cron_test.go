package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// TestPeriodicEntries acts on entries, in the list and on the page of one, and goes to the task of a tick.
func TestPeriodicEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("5")
	b.shows("2 periodic entries, 1 paused", "> digest", "in 18h00m")
	for _, step := range []struct{ keys, asks, calls string }{
		{"r", "Enqueue the task of entry digest of queue mail now?", "runEntry mail digest"},
		{"p", "Pause entry digest of queue mail?", "pauseEntry mail digest"},
		{"d", "Delete entry digest of queue mail and its history?", "removeEntry mail digest"},
	} {
		for _, where := range [][]string{{"esc"}, {"enter"}} { // in the list, and on the entry's page
			b.keys(where...)
			b.src.asked()
			b.keys(step.keys)
			b.shows(step.asks)
			b.keys("n")
			if got := b.src.asked(); got != "" {
				t.Errorf("a no to %q has done %s", step.asks, got)
			}
			b.keys(step.keys, "y")
			if !b.hasAsked(step.calls) {
				t.Errorf("%s has done %s, expected %s", step.keys, b.src.asked(), step.calls)
			}
		}
		b.keys("esc")
		b.shows("2 periodic entries")
	}
	b.keys("down", "p")
	b.shows("Resume entry monthly of queue reports?")
	b.keys("y")
	if !b.hasAsked("resumeEntry reports monthly") {
		t.Errorf("p has not resumed the paused entry: %s", b.src.asked())
	}
	b.keys("up", "enter")
	b.shows("Cron › mail › entry digest", "> 2026-01-31 06:00:00Z  6h00m ago  enqueued", "overlap", "missed")
	b.keys("enter")
	b.shows("task r-00")
	b.keys("esc")
	b.src.crons = nil
	b.keys("ctrl+r")
	b.shows("gone: somebody has deleted it")
	b.keys("esc", "ctrl+r")
	b.shows("No periodic entries.")
}

// TestGroups goes from a group to its calls.
func TestGroups(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("6")
	b.shows("2 groups  1,201 calls", "> ann") // what is due first comes first
	b.keys("down", "enter")
	b.shows("Queues › mail › aggregating  filter: func:example.com/app/search.Index")
	b.keys("esc", "esc", "/", "ann", "enter")
	b.shows("ann")
	b.hides("search.Index")
	b.src.fault = errors.New("delayed: no such luck")
	b.keys("ctrl+r")
	b.shows("not complete: no such luck")
}

// TestAudit goes from a record to the task, or to the list, that it tells of, and reads more records while one goes on.
func TestAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("7")
	b.asked("Audit 0 72")
	b.shows("> 01-31 11:59:00Z  ann@desk  run ", "b-1 b-2 and 3 more")
	b.keys("enter")
	b.shows("task r-00")
	b.keys("esc", "down", "enter")
	b.shows("Queues › mail › archived")
	b.keys("esc", "down", "enter")
	b.shows("Queues › billing › pending")
	b.keys("esc")
	for i := range 500 {
		b.src.log = append(b.src.log, inspect.Record{
			At: before(3*time.Hour + time.Duration(i)*time.Second), Actor: "eve", Action: fmt.Sprintf("run-%d", i),
		})
	}
	b.keys("ctrl+r")
	for range 60 {
		b.keys("pgdown")
	}
	b.shows("run-499")
	b.keys("/", "run-499", "enter")
	b.shows("> ", "run-499")
	b.hides("run-498")
}

// TestRedisIsNamed finds which Redis is shown on narrow and wide terminals.
func TestRedisIsNamed(t *testing.T) {
	t.Parallel()
	for width, place := range map[int]int{80: 1, 100: 0, 120: 0} {
		lines := strings.Split(newBench(t, width, 24).screen(), "\n")
		if !strings.Contains(lines[place], "redis.example.") {
			t.Errorf("with %d columns, line %d is %q", width, place+1, lines[place])
		}
	}
}

// TestEntryOfRedis reads an entry from Redis until somebody has removed it.
func TestEntryOfRedis(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	ctx := t.Context()
	b.Must(b.q.Periodic().Set(ctx, delayed.Entry{Name: "daily", Spec: "@daily", Task: delayed.Call(good, 1)}))
	entries, err := b.src.Entries(ctx)
	b.Must(err)
	s := newEntryScreen(newModel(ctx, Config{}, b.src), &entries[0])
	read := func() error {
		show, err := s.fetch()(ctx)
		if err == nil {
			show()
		}
		return err
	}
	b.Must(b.src.PauseEntry(ctx, "mail", "daily"))
	_, err = b.src.RunEntry(ctx, "mail", "daily")
	b.Must(err)
	b.Must(read())
	if !s.entry.Paused || s.entry.Queue != "mail" || len(s.items) != 1 {
		t.Errorf("found the entry %+v with the ticks %v, expected a paused one with one tick", s.entry, s.items)
	}
	b.Must(b.src.RemoveEntry(ctx, "mail", "daily"))
	if err := read(); !errors.Is(err, inspect.ErrNotFound) {
		t.Errorf("after its end found %v, expected ErrNotFound", err)
	}
}

func together(...int) error { return nil }
