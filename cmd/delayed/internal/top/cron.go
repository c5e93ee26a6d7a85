package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// cronScreen lists the periodic entries of all queues.
type cronScreen struct{ list[inspect.Entry] }

func newCronScreen(m *model) *cronScreen {
	type entry = inspect.Entry
	s := &cronScreen{}
	s.m, s.where, s.head, s.act, s.actKeys = m, []string{theTabs[4]}, s.sums, m.steerEntry, entryKeys
	s.open = func(e *entry) tea.Cmd { return m.open(newEntryScreen(m, e)) }
	s.id = func(e *entry) string { return e.Queue + "/" + e.Name }
	s.text = func(e *entry) string {
		return e.Name + " " + e.Queue + " " + e.Spec + " " + inspect.ShortName(e.Function) + " " + e.Owner + " " +
			entryState(e).Text
	}
	s.empty = "No periodic entries."
	s.columns = []column[entry]{
		texts(term.Column{Name: "ENTRY", Flex: true}, func(e *entry) string { return e.Name }, term.Bold),
		texts(term.Column{Name: "QUEUE", Flex: true, Drop: 3}, func(e *entry) string { return e.Queue }),
		cells(term.Column{Name: "SPEC", Flex: true}, func(e *entry) term.Cell { return term.C(e.Spec) }),
		cells(term.Column{Name: "ZONE", Drop: 7, Optional: true}, func(e *entry) term.Cell {
			return term.C(e.Zone, term.Dim)
		}),
		texts(term.Column{Name: "FUNCTION", Flex: true, Drop: 2}, func(e *entry) string {
			return inspect.ShortName(e.Function)
		}),
		{term.Column{Name: "NEXT"}, func(e *entry) term.Cell { return s.ago(e.Next) }, smallest(nextOf)},
		{
			term.Column{Name: "PREVIOUS", Drop: 5},
			func(e *entry) term.Cell { return s.ago(e.Previous) },
			largest(func(e *entry) int64 { return e.Previous.UnixMilli() }),
		},
		texts(term.Column{Name: "OWNER", Flex: true, Optional: true, Drop: 6}, func(e *entry) string {
			return e.Owner
		}, term.Dim),
		cells(term.Column{Name: "STATE", Optional: true}, entryState),
	}
	return s
}

// ago is how far a tick is from now.
func (s *cronScreen) ago(t time.Time) term.Cell {
	if t.IsZero() {
		return term.C("-", term.Dim)
	}
	return term.C(term.Ago(t, s.m.current().at))
}

// nextOf orders entries by their next tick; those without one come last.
func nextOf(e *inspect.Entry) int64 {
	if e.Next.IsZero() {
		return 1<<63 - 1
	}
	return e.Next.UnixMilli()
}

// entryState is what is unusual about an entry.
func entryState(e *inspect.Entry) term.Cell {
	switch {
	case e.Paused:
		return term.C("paused", term.Yellow)
	case e.Waiting:
		return term.C("waits", term.Yellow) // for the end of the previous task
	}
	return term.C("")
}

func (s *cronScreen) fetch() func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) { return s.showsSome(s.m.src.Entries(ctx)) }
}

func (s *cronScreen) sums() []term.Cell {
	paused := 0
	for i := range s.items {
		if s.items[i].Paused {
			paused++
		}
	}
	n := len(s.items)
	cells := []term.Cell{term.C(" " + term.Number(n) + " periodic " + term.Plural(n, "entry", "entries"))}
	if paused > 0 {
		cells = append(cells, term.C(", "+term.Number(paused)+" paused", term.Yellow))
	}
	return append(cells, s.missing())
}

// entryKeys are the keys of steerEntry.
var entryKeys = []binding{
	{key: "r", what: "run now: enqueue its task; its ticks stay as they are", hint: "run now"},
	{key: "p", what: "pause or resume the entry", hint: "pause"},
	{key: "d", what: "delete the entry and its history", hint: "delete"},
}

// steerEntry handles the keys that act on an entry.
func (m *model) steerEntry(key string, e *inspect.Entry) bool {
	queue, entry := e.Queue, e.Name
	name := "entry " + term.Clip(entry, 40) + " of queue " + term.Clip(queue, 40)
	ask := func(question, detail, done string, do func(ctx context.Context, queue, name string) error) {
		m.steer(question, detail, done+" "+name, func(ctx context.Context) error { return do(ctx, queue, entry) })
	}
	switch {
	case key == "r":
		ask("Enqueue the task of "+name+" now?", "Its ticks stay as they are.", "enqueued the task of",
			func(ctx context.Context, queue, name string) error {
				_, err := m.src.RunEntry(ctx, queue, name)
				return err
			})
	case key == "p" && e.Paused:
		ask("Resume "+name+"?", "It ticks again; ticks during the pause are not made up for.", "resumed",
			m.src.ResumeEntry)
	case key == "p":
		ask("Pause "+name+"?", "It does not tick until it is resumed.", "paused", m.src.PauseEntry)
	case key == "d":
		ask("Delete "+name+" and its history?", "If code declares it, it comes back when its program starts.",
			"deleted", m.src.RemoveEntry)
	default:
		return false
	}
	return true
}
