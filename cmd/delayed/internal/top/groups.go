package top

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// groupsScreen lists the groups of calls that wait for more calls.
type groupsScreen struct{ list[inspect.Group] }

func newGroupsScreen(m *model) *groupsScreen {
	type group = inspect.Group
	s := &groupsScreen{}
	s.m, s.where, s.head, s.open, s.act = m, []string{theTabs[5]}, s.sums, s.openGroup, s.fire
	s.actKeys = []binding{{key: "f", what: "fire the group now", hint: "fire"}}
	s.id = func(g *group) string { return g.Queue + "/" + g.Function + "/" + g.Key + "/" + g.Due.String() }
	s.text = func(g *group) string { return g.Queue + " " + g.Key + " " + inspect.ShortName(g.Function) }
	s.empty = "No groups: no calls wait to run as one."
	s.columns = []column[group]{
		texts(term.Column{Name: "GROUP", Flex: true}, func(g *group) string { return g.Key }, term.Bold),
		texts(term.Column{Name: "QUEUE", Flex: true, Drop: 2}, func(g *group) string { return g.Queue }),
		texts(term.Column{Name: "FUNCTION", Flex: true, Drop: 1}, func(g *group) string {
			return inspect.ShortName(g.Function)
		}),
		amounts(term.Num("CALLS"), func(g *group) int { return g.Size }),
		{
			term.Column{Name: "DUE"},
			func(g *group) term.Cell { return term.C(term.Ago(g.Due, m.current().at)) },
			smallest(func(g *group) int64 { return g.Due.UnixMilli() }),
		},
	}
	s.sort = len(s.columns) - 1
	return s
}

func (s *groupsScreen) fetch() func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) { return s.showsSome(s.m.src.Groups(ctx)) }
}

func (s *groupsScreen) sums() []term.Cell {
	calls := 0
	for i := range s.items {
		calls += s.items[i].Size
	}
	return []term.Cell{
		term.C(" " + term.Count(len(s.items), "group")), term.C("  "), term.Amount(calls),
		term.C(" "+term.Plural(calls, "call"), term.Dim), s.missing(),
		term.C("  wait for more calls; of each queue the first 100 groups", term.Dim),
	}
}

// openGroup lists the gathered calls of the group's function: a filter does not know groups.
func (s *groupsScreen) openGroup(g *inspect.Group) tea.Cmd {
	t := newTasksScreen(s.m, g.Queue)
	t.query.State = state.Aggregating
	t.onlyFunction(g.Function)
	return s.m.open(t)
}

func (s *groupsScreen) fire(key string, g *inspect.Group) bool {
	if key != "f" || g.Function == "" {
		return key == "f"
	}
	queue, group, function := g.Queue, g.Key, g.Function
	name := "group " + term.Clip(group, 40) + " of queue " + term.Clip(queue, 40)
	s.m.steer("Fire "+name+" now?", "A worker makes one call of its "+term.Count(g.Size, "call")+".", "fired "+name,
		func(ctx context.Context) error {
			_, err := s.m.src.FireGroup(ctx, queue, group, function)
			return err
		})
	return true
}
