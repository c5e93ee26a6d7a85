package top

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// groupsScreen lists the groups of calls that wait for more calls.
type groupsScreen struct {
	list[inspect.Group]

	m     *model
	fault error // why groups are missing in the list
}

// groupsData is what a groupsScreen reads.
type groupsData struct {
	groups []inspect.Group
	fault  error // of queues whose groups could not be read
}

func newGroupsScreen(m *model) *groupsScreen {
	s := &groupsScreen{m: m}
	s.id = func(g *inspect.Group) string { return g.Queue + "/" + g.Function + "/" + g.Key + "/" + g.Due.String() }
	s.text = func(g *inspect.Group) string { return g.Queue + " " + g.Key + " " + inspect.ShortName(g.Function) }
	s.empty = "No groups: no calls wait to run as one."
	s.columns = []column[inspect.Group]{
		{
			term.Column{Name: "GROUP", Flex: true},
			func(g *inspect.Group) term.Cell { return term.C(g.Key, term.Bold) },
			smallest(func(g *inspect.Group) string { return g.Key }),
		},
		{
			term.Column{Name: "QUEUE", Flex: true, Drop: 2},
			func(g *inspect.Group) term.Cell { return term.C(g.Queue) },
			smallest(func(g *inspect.Group) string { return g.Queue }),
		},
		{
			term.Column{Name: "FUNCTION", Flex: true, Drop: 1},
			func(g *inspect.Group) term.Cell { return term.C(inspect.ShortName(g.Function)) },
			smallest(func(g *inspect.Group) string { return inspect.ShortName(g.Function) }),
		},
		{
			number("CALLS"), func(g *inspect.Group) term.Cell { return amount(g.Size) },
			largest(func(g *inspect.Group) int { return g.Size }),
		},
		{
			term.Column{Name: "DUE"},
			func(g *inspect.Group) term.Cell { return term.C(term.Ago(g.Due, s.m.current().at)) },
			smallest(func(g *inspect.Group) int64 { return g.Due.UnixMilli() }),
		},
	}
	s.sort = len(s.columns) - 1
	return s
}

func (s *groupsScreen) path() []string { return []string{theTabs[5]} }

func (s *groupsScreen) filter() string { return s.list.filter }

func (s *groupsScreen) setFilter(text string) (tea.Cmd, error) {
	s.list.filter = text
	s.arrange()
	return nil, nil
}

func (s *groupsScreen) fetch(src source) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) { return src.groups(ctx) }
}

func (s *groupsScreen) take(data any) {
	d, _ := data.(groupsData)
	s.fault = d.fault
	s.set(d.groups)
}

func (s *groupsScreen) draw(c *canvas, left int) {
	calls := 0
	for i := range s.items {
		calls += s.items[i].Size
	}
	c.say(term.C(" "+count(len(s.items), "group")), term.C("  "), amount(calls),
		term.C(" "+plural(calls, "call"), term.Dim), faultCell(s.fault),
		term.C("  wait for more calls; of each queue the first 100 groups", term.Dim))
	s.list.draw(c, left, s.enter)
}

// enter lists the gathered calls of the group's function: a filter does not know groups.
func (s *groupsScreen) enter() tea.Cmd {
	g := s.current()
	if g == nil {
		return nil
	}
	t := newTasksScreen(s.m, g.Queue)
	t.query.State = state.Aggregating
	if g.Function != "" {
		t.written, t.query.Filter = "func:"+g.Function, inspect.Filter{Function: g.Function}
	}
	return s.m.open(t)
}

func (s *groupsScreen) key(key string) (tea.Cmd, bool) {
	if s.moveKey(key) || s.sortKey(key) {
		return nil, true
	}
	switch key {
	case "enter":
		return s.enter(), true
	case "f":
		g := s.current()
		if g == nil || g.Function == "" {
			return nil, true
		}
		queue, key, function := g.Queue, g.Key, g.Function
		name := "group " + term.Clip(key, 40) + " of queue " + term.Clip(queue, 40)
		s.m.steer("Fire "+name+" now?", "A worker makes one call of its "+count(g.Size, "call")+".", "fired "+name,
			func(ctx context.Context) error {
				_, err := s.m.src.FireGroup(ctx, queue, key, function)
				return err
			})
		return nil, true
	}
	return nil, false
}

func (s *groupsScreen) keys() []binding {
	return slices.Concat(entering, []binding{{key: "f", what: "fire the group now", hint: "fire"}}, sorting)
}
