package top

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// entryScreen is one periodic entry with what became of its last ticks.
type entryScreen struct {
	list[delayed.PeriodicRun]

	m     *model
	entry entryRow
	gone  bool
}

// entryData is what an entryScreen reads.
type entryData struct {
	entry *entryRow // nil: it is gone
	ticks []delayed.PeriodicRun
}

func newEntryScreen(m *model, e *entryRow) *entryScreen {
	type tick = delayed.PeriodicRun
	s := &entryScreen{m: m, entry: *e}
	s.id = func(t *tick) string { return t.Tick.String() + " " + t.ID + " " + t.Skipped }
	s.text = func(t *tick) string { return t.ID + " " + tickResult(t).Text }
	s.empty = "It has not ticked yet."
	s.sort = -1 // the latest first
	s.columns = []column[tick]{
		{term.Column{Name: "TICK"}, func(t *tick) term.Cell {
			return term.C(t.Tick.UTC().Format("2006-01-02 15:04:05Z"))
		}, nil},
		{term.Column{Name: "WHEN", Drop: 1}, func(t *tick) term.Cell {
			return term.C(term.Ago(t.At, s.m.current().at), term.Dim)
		}, nil},
		{term.Column{Name: "RESULT"}, tickResult, nil},
		{term.Column{Name: "TASK", Flex: true}, func(t *tick) term.Cell { return term.C(t.ID, term.Dim) }, nil},
	}
	return s
}

// tickResult says what became of a tick.
func tickResult(t *delayed.PeriodicRun) term.Cell {
	if t.Skipped == "" {
		return term.C("enqueued", term.Green)
	}
	return term.C(t.Skipped, term.Yellow)
}

func (s *entryScreen) path() []string {
	return []string{theTabs[4], s.entry.queue, "entry " + s.entry.Name}
}

func (s *entryScreen) filter() string { return s.list.filter }

func (s *entryScreen) setFilter(text string) (tea.Cmd, error) {
	s.list.filter = text
	s.arrange()
	return nil, nil
}

func (s *entryScreen) fetch(src source) func(context.Context) (any, error) {
	queue, name := s.entry.queue, s.entry.Name
	return func(ctx context.Context) (any, error) { return src.entry(ctx, queue, name) }
}

func (s *entryScreen) take(data any) {
	d, _ := data.(entryData)
	if s.gone = d.entry == nil; !s.gone {
		s.entry = *d.entry
	}
	s.set(d.ticks)
}

func (s *entryScreen) draw(c *canvas, left int) {
	e, now := &s.entry.PeriodicEntry, s.m.current().at
	if now.IsZero() { // not read yet
		now = s.m.now()
	}
	field := func(name string, cells ...term.Cell) {
		if cells[0].Text != "" {
			c.say(append([]term.Cell{term.C(" "+padded(name, 10), term.Dim)}, cells...)...)
		}
	}
	state := entryState(e)
	switch {
	case s.gone:
		state = term.C("gone: somebody has deleted it", term.Red)
	case e.Waiting && !e.Paused:
		state = term.C("a tick waits for the end of the previous task", term.Yellow)
	}
	field("entry", term.C(e.Name, term.Bold), term.C("  "), state)
	field("spec", term.C(e.Spec), term.C("  "+e.Zone, term.Dim))
	field("function", term.C(e.Function))
	field("next", moments(now, e.Next, "-")...)
	field("previous", moments(now, e.Previous, "-")...)
	field("rules", term.C(strings.Join(entryRules(e), ", ")))
	field("owner", term.C(e.Owner))
	s.list.draw(c, left, s.enter)
}

// moments are a time and how far it is from now.
func moments(now, t time.Time, none string) []term.Cell {
	if t.IsZero() {
		return []term.Cell{term.C(none, term.Dim)}
	}
	return []term.Cell{term.C(t.Format("2006-01-02 15:04:05 -0700")), term.C("  "+term.Ago(t, now), term.Dim)}
}

// entryRules say what else an entry does.
func entryRules(e *delayed.PeriodicEntry) (rules []string) {
	rules = append(rules, "overlap "+e.Overlap.String())
	switch {
	case e.CatchUp < 0:
		rules = append(rules, "missed ticks are left out")
	case e.CatchUp > 0:
		rules = append(rules, "catches up with "+count(e.CatchUp, "missed tick"))
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

// enter looks for the task of the tick, which may be gone.
func (s *entryScreen) enter() tea.Cmd {
	if t := s.current(); t != nil && t.ID != "" {
		return s.m.findID(t.ID)
	}
	return nil
}

func (s *entryScreen) key(key string) (tea.Cmd, bool) {
	if s.moveKey(key) {
		return nil, true
	}
	if key == "enter" {
		return s.enter(), true
	}
	return nil, s.m.steerEntry(key, &s.entry)
}

func (s *entryScreen) keys() []binding { return slices.Concat(entering, entryKeys()) }
