package top

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// entryRow is a periodic entry of a queue.
type entryRow struct {
	delayed.PeriodicEntry

	queue string
}

// cronScreen lists the periodic entries of all queues.
type cronScreen struct {
	list[entryRow]

	m     *model
	fault error // why entries are missing in the list
}

// entriesData is what a cronScreen reads.
type entriesData struct {
	entries []entryRow
	fault   error // of queues or entries that could not be read
}

func newCronScreen(m *model) *cronScreen {
	s := &cronScreen{m: m}
	s.id = func(e *entryRow) string { return e.queue + "/" + e.Name }
	s.text = func(e *entryRow) string {
		return e.Name + " " + e.queue + " " + e.Spec + " " + inspect.ShortName(e.Function) + " " + e.Owner + " " +
			entryState(&e.PeriodicEntry).Text
	}
	s.empty = "No periodic entries."
	s.columns = []column[entryRow]{
		{
			term.Column{Name: "ENTRY", Flex: true},
			func(e *entryRow) term.Cell { return term.C(e.Name, term.Bold) },
			smallest(func(e *entryRow) string { return e.Name }),
		},
		{
			term.Column{Name: "QUEUE", Flex: true, Drop: 3},
			func(e *entryRow) term.Cell { return term.C(e.queue) },
			smallest(func(e *entryRow) string { return e.queue }),
		},
		{term.Column{Name: "SPEC", Flex: true}, func(e *entryRow) term.Cell { return term.C(e.Spec) }, nil},
		{
			term.Column{Name: "ZONE", Drop: 7, Optional: true},
			func(e *entryRow) term.Cell { return term.C(e.Zone, term.Dim) }, nil,
		},
		{
			term.Column{Name: "FUNCTION", Flex: true, Drop: 2},
			func(e *entryRow) term.Cell { return term.C(inspect.ShortName(e.Function)) },
			smallest(func(e *entryRow) string { return inspect.ShortName(e.Function) }),
		},
		{
			term.Column{Name: "NEXT"},
			func(e *entryRow) term.Cell { return s.moment(e.Next) },
			smallest(func(e *entryRow) int64 { return nextOf(&e.PeriodicEntry) }),
		},
		{
			term.Column{Name: "PREVIOUS", Drop: 5},
			func(e *entryRow) term.Cell { return s.moment(e.Previous) },
			largest(func(e *entryRow) int64 { return e.Previous.UnixMilli() }),
		},
		{
			term.Column{Name: "OWNER", Flex: true, Optional: true, Drop: 6},
			func(e *entryRow) term.Cell { return term.C(e.Owner, term.Dim) },
			smallest(func(e *entryRow) string { return e.Owner }),
		},
		{
			term.Column{Name: "STATE", Optional: true},
			func(e *entryRow) term.Cell { return entryState(&e.PeriodicEntry) }, nil,
		},
	}
	return s
}

// moment says how far a tick is from now.
func (s *cronScreen) moment(t time.Time) term.Cell {
	if t.IsZero() {
		return term.C("-", term.Dim)
	}
	return term.C(term.Ago(t, s.m.current().at))
}

// nextOf orders entries by their next tick; those without one come last.
func nextOf(e *delayed.PeriodicEntry) int64 {
	if e.Next.IsZero() {
		return 1<<63 - 1
	}
	return e.Next.UnixMilli()
}

// entryState says what is unusual about an entry.
func entryState(e *delayed.PeriodicEntry) term.Cell {
	switch {
	case e.Paused:
		return term.C("paused", term.Yellow)
	case e.Waiting:
		return term.C("waits", term.Yellow) // for the end of the previous task
	}
	return term.C("")
}

func (s *cronScreen) path() []string { return []string{theTabs[4]} }

func (s *cronScreen) filter() string { return s.list.filter }

func (s *cronScreen) setFilter(text string) (tea.Cmd, error) {
	s.list.filter = text
	s.arrange()
	return nil, nil
}

func (s *cronScreen) fetch(src source) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) { return src.entries(ctx) }
}

func (s *cronScreen) take(data any) {
	d, _ := data.(entriesData)
	s.fault = d.fault
	s.set(d.entries)
}

func (s *cronScreen) draw(c *canvas, left int) {
	paused := 0
	for i := range s.items {
		if s.items[i].Paused {
			paused++
		}
	}
	n := len(s.items)
	cells := []term.Cell{term.C(" " + term.Number(n) + " periodic " + plurals(n, "entry", "entries"))}
	if paused > 0 {
		cells = append(cells, term.C(", "+term.Number(paused)+" paused", term.Yellow))
	}
	c.say(append(cells, faultCell(s.fault))...)
	s.list.draw(c, left, s.enter)
}

// faultCell says why a list is not complete.
func faultCell(err error) term.Cell {
	if err == nil {
		return term.C("")
	}
	return term.C("  not complete: "+errText(err), term.Red)
}

func (s *cronScreen) enter() tea.Cmd {
	if e := s.current(); e != nil {
		return s.m.open(newEntryScreen(s.m, e))
	}
	return nil
}

func (s *cronScreen) key(key string) (tea.Cmd, bool) {
	if s.moveKey(key) || s.sortKey(key) {
		return nil, true
	}
	e := s.current()
	if e == nil {
		return nil, false
	}
	if key == "enter" {
		return s.enter(), true
	}
	return nil, s.m.steerEntry(key, e)
}

// steerEntry answers the keys that do something to an entry.
func (m *model) steerEntry(key string, e *entryRow) bool {
	queue, entry := e.queue, e.Name
	name := "entry " + term.Clip(entry, 40) + " of queue " + term.Clip(queue, 40)
	switch {
	case key == "r":
		m.steer("Enqueue the task of "+name+" now?", "Its ticks stay as they are.", "enqueued the task of "+name,
			func(ctx context.Context) error { return m.src.runEntry(ctx, queue, entry) })
	case key == "p" && e.Paused:
		m.steer("Resume "+name+"?", "It ticks again; ticks during the pause are not made up for.", "resumed "+name,
			func(ctx context.Context) error { return m.src.pauseEntry(ctx, queue, entry, false) })
	case key == "p":
		m.steer("Pause "+name+"?", "It does not tick until it is resumed.", "paused "+name,
			func(ctx context.Context) error { return m.src.pauseEntry(ctx, queue, entry, true) })
	case key == "d":
		m.steer("Delete "+name+" and its history?",
			"If code declares it, it comes back when its program starts.", "deleted "+name,
			func(ctx context.Context) error { return m.src.RemoveEntry(ctx, queue, entry) })
	default:
		return false
	}
	return true
}

// entryKeys are the keys of steerEntry.
func entryKeys() []binding {
	return []binding{
		{key: "r", what: "run now: enqueue its task; its ticks stay as they are", hint: "run now"},
		{key: "p", what: "pause or resume the entry", hint: "pause"},
		{key: "d", what: "delete the entry and its history", hint: "delete"},
	}
}

func (s *cronScreen) keys() []binding { return slices.Concat(entering, entryKeys(), sorting) }
