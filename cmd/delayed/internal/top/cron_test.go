package top

import (
	"errors"
	"fmt"
	"slices"
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
		{"p", "Pause entry digest of queue mail?", "pauseEntry mail digest true"},
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
	if !b.hasAsked("pauseEntry reports monthly false") {
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

// TestLists reads entries, groups and records from Redis, and acts on entries there.
func TestLists(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	ctx := t.Context()
	b.Must(b.q.Periodic().Set(ctx, delayed.Entry{Name: "daily", Spec: "@daily", Task: delayed.Call(good, 1)}))
	_, err := b.q.With(delayed.Group("g")).Delay(together, 1)
	b.Must(err)
	d, err := b.src.entries(ctx)
	b.Must(err)
	if len(d.entries) != 1 || d.entries[0].Name != "daily" || d.entries[0].queue != "mail" || d.fault != nil {
		t.Fatalf("found the entries %+v", d)
	}
	b.Must(b.src.runEntry(ctx, "mail", "daily"))
	b.Must(b.src.pauseEntry(ctx, "mail", "daily", true))
	e, err := b.src.entry(ctx, "mail", "daily")
	b.Must(err)
	if e.entry == nil || !e.entry.Paused {
		t.Errorf("found the entry %+v, expected a paused one", e.entry)
	}
	b.Must(b.src.pauseEntry(ctx, "mail", "daily", false))
	b.Must(b.src.RemoveEntry(ctx, "mail", "daily"))
	if e, err = b.src.entry(ctx, "mail", "daily"); err != nil || e.entry != nil {
		t.Errorf("found the entry %+v after its end (%v)", e.entry, err)
	}
	groups, err := b.src.groups(ctx)
	b.Must(err)
	if len(groups.groups) != 1 || groups.groups[0].Key != "g" || groups.groups[0].Size != 1 {
		t.Errorf("found the groups %+v", groups)
	}
	page, err := b.src.Tasks(ctx, "mail", inspect.Query{State: inspect.States[0]})
	b.Must(err)
	_, err = b.src.Do(ctx, "mail", inspect.Delete(), page.Tasks[0].ID)
	b.Must(err)
	log, err := b.src.Audit(ctx, 0, 10)
	var acts []string
	for i := range log {
		acts = append(acts, log[i].Action+" "+log[i].Target)
	}
	want := []string{"delete ", "remove entry daily", "resume entry daily", "pause entry daily", "run entry daily"}
	if err != nil || !slices.Equal(acts, want) {
		t.Errorf("found the records %q (%v), expected %q", acts, err, want)
	}
}

func together(...int) error { return nil }
