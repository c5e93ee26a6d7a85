package top

import (
	"cmp"
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// entryScreen is one periodic entry with what became of its last ticks.
type entryScreen struct {
	list[delayed.PeriodicRun]

	entry   inspect.Entry
	deleted bool
}

func newEntryScreen(m *model, e *inspect.Entry) *entryScreen {
	type tick = delayed.PeriodicRun
	s := &entryScreen{entry: *e}
	s.m, s.where, s.actKeys = m, []string{theTabs[4], e.Queue, "entry " + e.Name}, entryKeys
	s.id = func(t *tick) string { return t.Tick.String() + " " + t.ID + " " + t.Skipped }
	s.text = func(t *tick) string { return t.ID + " " + tickResult(t).Text }
	s.empty = "It has not ticked yet."
	s.sort = -1 // the latest first
	s.open = func(t *tick) tea.Cmd {
		if t.ID == "" {
			return nil
		}
		return m.findID(t.ID) // it may be gone
	}
	s.columns = []column[tick]{
		texts(term.Column{Name: "TICK"}, func(t *tick) string { return t.Tick.UTC().Format("2006-01-02 15:04:05Z") }),
		texts(term.Column{Name: "WHEN", Drop: 1}, func(t *tick) string {
			return term.Ago(t.At, m.current().at)
		}, term.Dim),
		cells(term.Column{Name: "RESULT"}, tickResult),
		texts(term.Column{Name: "TASK", Flex: true}, func(t *tick) string { return t.ID }, term.Dim),
	}
	return s
}

// tickResult is what became of a tick.
func tickResult(t *delayed.PeriodicRun) term.Cell {
	if t.Skipped == "" {
		return term.C("enqueued", term.Green)
	}
	return term.C(t.Skipped, term.Yellow)
}

func (s *entryScreen) fetch() func(context.Context) (func(), error) {
	queue, name := s.entry.Queue, s.entry.Name
	return func(ctx context.Context) (func(), error) {
		entries, err := s.m.src.Entries(ctx, queue)
		for i := range entries {
			if e := &entries[i]; e.Name == name {
				ticks, err := s.m.src.EntryHistory(ctx, queue, name)
				return func() {
					s.entry, s.deleted = *e, false
					s.set(ticks)
				}, err
			}
		}
		return nil, cmp.Or(err, inspect.ErrNotFound)
	}
}

func (s *entryScreen) gone() {
	s.deleted = true
	s.set(nil)
}

func (s *entryScreen) draw(c *canvas, left int) {
	e, now := &s.entry, s.m.current().at
	if now.IsZero() { // not read yet
		now = s.m.now()
	}
	state := entryState(e)
	switch {
	case s.deleted:
		state = term.C("gone: somebody has deleted it", term.Red)
	case e.Waiting && !e.Paused:
		state = term.C("a tick waits for the end of the previous task", term.Yellow)
	}
	c.field("entry", term.C(e.Name, term.Bold), term.C("  "), state)
	c.field("spec", term.C(e.Spec), term.C("  "+e.Zone, term.Dim))
	c.field("function", term.C(e.Function))
	c.field("next", moments(now, e.Next)...)
	c.field("previous", moments(now, e.Previous)...)
	c.field("rules", term.C(strings.Join(entryRules(e), ", ")))
	c.field("owner", term.C(e.Owner))
	s.drawRows(c, left)
}

// moments are a time and how far it is from now.
func moments(now, t time.Time) []term.Cell {
	if t.IsZero() {
		return []term.Cell{term.C("-", term.Dim)}
	}
	return []term.Cell{term.C(t.Format("2006-01-02 15:04:05 -0700")), term.C("  "+term.Ago(t, now), term.Dim)}
}

// entryRules are the options of an entry.
func entryRules(e *inspect.Entry) (rules []string) {
	rules = append(rules, "overlap "+e.Overlap.String())
	switch {
	case e.CatchUp < 0:
		rules = append(rules, "missed ticks are left out")
	case e.CatchUp > 0:
		rules = append(rules, "catches up with "+term.Count(e.CatchUp, "missed tick"))
	}
	if e.Jitter > 0 {
		rules = append(rules, "jitter "+term.Duration(e.Jitter))
	}
	if !e.From.IsZero() {
		rules = append(rules, "from "+e.From.UTC().Format(time.RFC3339))
	}
	if !e.Until.IsZero() {
		rules = append(rules, "until "+e.Until.UTC().Format(time.RFC3339))
	}
	return rules
}

func (s *entryScreen) key(key string) (tea.Cmd, bool) {
	if s.m.steerEntry(key, &s.entry) {
		return nil, true
	}
	return s.list.key(key)
}
