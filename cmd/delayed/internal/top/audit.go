package top

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// auditScreen lists who has acted on tasks, queues, workers and entries, the latest first.
type auditScreen struct {
	list[inspect.Record]

	asked int // records that were asked for last
}

// mostRecords bounds the records that are read. Redis keeps no more.
const mostRecords = 10_000

func newAuditScreen(m *model) *auditScreen {
	type record = inspect.Record
	s := &auditScreen{}
	s.m, s.where, s.sort, s.open = m, []string{theTabs[6]}, -1, s.openRecord
	s.id = func(r *record) string {
		return r.At.String() + " " + r.Actor + " " + r.Action + " " + r.Queue + " " + r.State + " " +
			strings.Join(r.IDs, " ")
	}
	s.text = func(r *record) string { return r.Actor + " " + r.Action + " " + r.Queue + " " + which(r) }
	s.empty = "Nobody has acted on anything yet."
	s.head = func() []term.Cell {
		return []term.Cell{term.C(" who has acted on tasks, queues, workers and entries, the latest first", term.Dim)}
	}
	s.columns = []column[record]{
		texts(term.Column{Name: "AT"}, func(r *record) string {
			return r.At.UTC().Format("01-02 15:04:05Z")
		}, term.Dim),
		texts(term.Column{Name: "WHO", Flex: true}, func(r *record) string { return r.Actor }),
		texts(term.Column{Name: "ACTION", Flex: true}, func(r *record) string { return r.Action }, term.Bold),
		texts(term.Column{Name: "QUEUE", Flex: true, Drop: 2}, func(r *record) string { return r.Queue }),
		amounts(term.Num("DONE"), func(r *record) int { return r.Done }),
		amounts(term.Rare("FAILED", 3), func(r *record) int { return r.Failed }, term.Red),
		texts(term.Column{Name: "WHICH", Flex: true}, which),
	}
	return s
}

// which names the tasks, or whatever else, that an action was applied to.
func which(r *inspect.Record) string {
	switch {
	case r.State != "" && r.Filter != nil && !r.Filter.IsZero():
		return "all " + r.State + " that match a filter"
	case r.State != "":
		return "all " + r.State
	}
	text := strings.TrimSpace(r.Target + " " + strings.Join(r.IDs, " "))
	if r.More > 0 {
		text += " and " + term.Number(r.More) + " more"
	}
	return text
}

func (s *auditScreen) setFilter(text string) (tea.Cmd, error) {
	s.wanted = text
	s.arrange()
	return s.m.refresh(), nil // a filter searches more records
}

// fetch reads as many records as are shown, and two screens more, so that one can go on; with a filter a thousand.
func (s *auditScreen) fetch() func(context.Context) (func(), error) {
	n := s.pos + 3*s.m.height
	if s.wanted != "" {
		n = max(n, 1000)
	}
	s.asked = min(n, mostRecords)
	n = s.asked
	return func(ctx context.Context) (func(), error) { return s.shows(s.m.src.Audit(ctx, 0, n)) }
}

// openRecord opens the task if there was one, else the queue.
func (s *auditScreen) openRecord(r *inspect.Record) tea.Cmd {
	switch {
	case len(r.IDs) == 1 && r.More == 0:
		return s.m.findID(r.IDs[0])
	case r.Queue == "":
		return nil
	}
	t := newTasksScreen(s.m, r.Queue)
	for _, in := range inspect.States {
		if in.String() == r.State {
			t.query.State = in
		}
	}
	return s.m.open(t)
}

func (s *auditScreen) key(key string) (tea.Cmd, bool) {
	cmd, known := s.list.key(key)
	if known && key != "enter" && s.pos+s.m.height > s.asked { // what comes next was not read yet
		return s.m.refresh(), true
	}
	return cmd, known
}
