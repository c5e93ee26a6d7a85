package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// functionsScreen lists functions that have run lately.
type functionsScreen struct {
	list[functionFlow]

	queue  string // only those of it; "": of all queues
	known  int    // queues that were read so far
	queues int
}

// spanKey switches between the spans. The model handles it.
var spanKey = binding{key: "t", what: "rates and bars of the last two minutes, or of the last hour", hint: "2m/1h"}

func newFunctionsScreen(m *model, queue string) *functionsScreen {
	type fn = functionFlow
	s := &functionsScreen{queue: queue}
	s.m, s.where, s.head, s.open, s.actKeys = m, tabOfQueue(2, queue), s.sums, s.openTasks, []binding{spanKey}
	s.id = func(f *fn) string { return f.queue + "/" + f.path }
	s.text = func(f *fn) string { return f.queue + " " + functionName(f) }
	s.empty = "Nothing has run, or only tasks of Python workers, which publish no times."
	s.columns = []column[fn]{
		texts(term.Column{Name: "FUNCTION", Flex: true}, functionName, term.Bold),
		texts(term.Column{Name: "QUEUE", Flex: true, Drop: 4}, func(f *fn) string { return f.queue }),
		{
			term.Num("RUN/S"), func(f *fn) term.Cell { return rate(&f.flow, true) },
			largest(func(f *fn) float64 { return f.perSecond }),
		},
		cells(term.Column{Name: "RUNS", Drop: 3}, func(f *fn) term.Cell { return m.spark(&f.runs, term.Green) }),
		lapses(term.Num("RUN P50"), func(f *fn) time.Duration { return f.run50 }),
		lapses(term.Num("P95"), func(f *fn) time.Duration { return f.run95 }),
		lapses(term.Spare("P99", 9), func(f *fn) time.Duration { return f.run99 }),
		lapses(term.Spare("WAIT P95", 6), func(f *fn) time.Duration { return f.wait95 }),
		amounts(term.Spare("FAILED", 2), func(f *fn) uint64 { return f.failures }, term.Red),
		{
			term.Num("FAIL%"), func(f *fn) term.Cell { return failing(&f.flow) },
			largest(func(f *fn) float64 { return f.failPercent }),
		},
		cells(term.Column{Name: "FAILURES", Drop: 8}, func(f *fn) term.Cell { return m.spark(&f.failed, term.Red) }),
	}
	s.sort = 2
	return s
}

// functionName is how a function is shown.
func functionName(f *functionFlow) string {
	if f.path == "" {
		return "(all others)" // a queue has room for the metrics of 64
	}
	return inspect.ShortName(f.path)
}

func (s *functionsScreen) fetch() func(context.Context) (func(), error) {
	names, back := one(s.queue), s.m.span
	return func(ctx context.Context) (func(), error) {
		var err error
		if names == nil {
			if names, err = s.m.src.Names(ctx); err != nil {
				return nil, err
			}
		}
		flows, err := s.m.src.flows(ctx, back, names)
		var functions []functionFlow
		for _, name := range names {
			functions = append(functions, flows[name].functions...)
		}
		return func() {
			s.known, s.queues = len(flows), len(names)
			s.set(functions)
		}, err
	}
}

func (s *functionsScreen) sums() []term.Cell {
	var sum flow
	for i := range s.items {
		sum.total += s.items[i].total
		sum.failures += s.items[i].failures
		sum.perSecond += s.items[i].perSecond
	}
	cells := []term.Cell{
		term.C(" " + term.Count(len(s.items), "function")),
		term.C(" that ran in the last "+spanOf[s.m.span].name+"  ", term.Dim), term.Amount(sum.total),
		term.C(" runs, ", term.Dim), rate(&sum, true), term.C("/s  ", term.Dim),
		term.Amount(sum.failures, term.Red), term.C(" failed", term.Dim),
	}
	if s.known < s.queues {
		cells = append(cells,
			term.C("  reading: "+term.Number(s.known)+" of "+term.Count(s.queues, "queue"), term.Yellow))
	}
	return cells
}

// openTasks lists the tasks of a function.
func (s *functionsScreen) openTasks(f *functionFlow) tea.Cmd {
	if f.path == "" {
		return nil
	}
	t := newTasksScreen(s.m, f.queue)
	t.onlyFunction(f.path)
	if f.failures > 0 {
		t.query.State = state.Retry
	}
	return s.m.open(t)
}
