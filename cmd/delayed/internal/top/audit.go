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

	m     *model
	asked int // records that were asked for last
}

// mostRecords bounds the records that are read. Redis keeps no more.
const mostRecords = 10_000

func newAuditScreen(m *model) *auditScreen {
	type record = inspect.Record
	s := &auditScreen{m: m}
	s.id = func(r *record) string {
		return r.At.String() + " " + r.Actor + " " + r.Action + " " + r.Queue + " " + r.State + " " +
			strings.Join(r.IDs, " ")
	}
	s.text = func(r *record) string { return r.Actor + " " + r.Action + " " + r.Queue + " " + which(r) }
	s.empty = "Nobody has acted on anything yet."
	s.sort = -1
	s.columns = []column[record]{
		{term.Column{Name: "AT"}, func(r *record) term.Cell {
			return term.C(r.At.UTC().Format("01-02 15:04:05Z"), term.Dim)
		}, nil},
		{term.Column{Name: "WHO", Flex: true}, func(r *record) term.Cell { return term.C(r.Actor) }, nil},
		{term.Column{Name: "ACTION", Flex: true}, func(r *record) term.Cell {
			return term.C(r.Action, term.Bold)
		}, nil},
		{term.Column{Name: "QUEUE", Flex: true, Drop: 2}, func(r *record) term.Cell { return term.C(r.Queue) }, nil},
		{number("DONE"), func(r *record) term.Cell { return amount(r.Done) }, nil},
		{rare("FAILED", 3), func(r *record) term.Cell { return amount(r.Failed, term.Red) }, nil},
		{term.Column{Name: "WHICH", Flex: true}, func(r *record) term.Cell { return term.C(which(r)) }, nil},
	}
	return s
}

// which says to what something was done.
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

func (s *auditScreen) path() []string { return []string{theTabs[6]} }

func (s *auditScreen) filter() string { return s.list.filter }

func (s *auditScreen) setFilter(text string) (tea.Cmd, error) {
	s.list.filter = text
	s.arrange()
	return s.m.refresh(), nil // a filter looks through more records
}

// fetch reads as many records as are shown, and two screens more, so that one can go on; with a filter a thousand.
func (s *auditScreen) fetch(src source) func(context.Context) (any, error) {
	n := s.pos + 3*s.m.height
	if s.list.filter != "" {
		n = max(n, 1000)
	}
	n = min(n, mostRecords)
	s.asked = n
	return func(ctx context.Context) (any, error) { return src.Audit(ctx, 0, n) }
}

func (s *auditScreen) take(data any) {
	records, _ := data.([]inspect.Record)
	s.set(records)
}

func (s *auditScreen) draw(c *canvas, left int) {
	c.say(term.C(" who has acted on tasks, queues, workers and entries, the latest first", term.Dim))
	s.list.draw(c, left, s.enter)
}

// enter goes to the task if there was one, else to the queue.
func (s *auditScreen) enter() tea.Cmd {
	r := s.current()
	if r == nil {
		return nil
	}
	if len(r.IDs) == 1 && r.More == 0 {
		return s.m.findID(r.IDs[0])
	}
	if r.Queue == "" {
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
	if s.moveKey(key) {
		if s.pos+s.m.height > s.asked { // what comes next was not read yet
			return s.m.refresh(), true
		}
		return nil, true
	}
	if key == "enter" {
		return s.enter(), true
	}
	return nil, false
}

func (s *auditScreen) keys() []binding { return entering }
