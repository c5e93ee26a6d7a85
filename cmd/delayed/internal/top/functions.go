package top

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// functionsScreen lists functions that have run lately.
type functionsScreen struct {
	list[functionFlow]

	m      *model
	queue  string // only those of it; "": of all queues
	known  int    // queues that were read so far
	queues int
}

// functionsData is what a functionsScreen reads.
type functionsData struct {
	functions     []functionFlow
	known, queues int
}

func newFunctionsScreen(m *model, queue string) *functionsScreen {
	type fn = functionFlow
	s := &functionsScreen{m: m, queue: queue}
	s.id = func(f *fn) string { return f.queue + "/" + f.path }
	s.text = func(f *fn) string { return f.queue + " " + functionName(f.path) }
	s.empty = "Nothing has run, or only tasks of Python workers, which tell of no times."
	s.columns = []column[fn]{
		{
			term.Column{Name: "FUNCTION", Flex: true},
			func(f *fn) term.Cell { return term.C(functionName(f.path), term.Bold) },
			smallest(func(f *fn) string { return functionName(f.path) }),
		},
		{
			term.Column{Name: "QUEUE", Flex: true, Drop: 4},
			func(f *fn) term.Cell { return term.C(f.queue) },
			smallest(func(f *fn) string { return f.queue }),
		},
		{
			number("RUN/S"), func(f *fn) term.Cell { return rate(&f.flow, true) },
			largest(func(f *fn) float64 { return f.perSecond }),
		},
		{term.Column{Name: "RUNS", Drop: 3}, func(f *fn) term.Cell {
			return term.C(m.look.spark(f.runs[:], m.sparkWidth()), term.Green)
		}, nil},
		{
			number("RUN P50"), func(f *fn) term.Cell { return lapse(f.run50) },
			largest(func(f *fn) time.Duration { return f.run50 }),
		},
		{
			number("P95"), func(f *fn) term.Cell { return lapse(f.run95) },
			largest(func(f *fn) time.Duration { return f.run95 }),
		},
		{
			spare("P99", 9), func(f *fn) term.Cell { return lapse(f.run99) },
			largest(func(f *fn) time.Duration { return f.run99 }),
		},
		{
			spare("WAIT P95", 6), func(f *fn) term.Cell { return lapse(f.wait95) },
			largest(func(f *fn) time.Duration { return f.wait95 }),
		},
		{
			spare("FAILED", 2), func(f *fn) term.Cell { return amount(int64(f.failures), term.Red) },
			largest(func(f *fn) uint64 { return f.failures }),
		},
		{
			number("FAIL%"), func(f *fn) term.Cell { return failing(&f.flow) },
			largest(func(f *fn) float64 { return f.failPercent }),
		},
		{term.Column{Name: "FAILURES", Drop: 8}, func(f *fn) term.Cell {
			return term.C(m.look.spark(f.failed[:], m.sparkWidth()), term.Red)
		}, nil},
	}
	s.sort = 2
	return s
}

// functionName is what is shown of a function's path.
func functionName(path string) string {
	if path == "" {
		return "(all others)" // a queue has room for the metrics of 64
	}
	return inspect.ShortName(path)
}

func (s *functionsScreen) path() []string {
	if s.queue != "" {
		return []string{s.queue, theTabs[2]}
	}
	return []string{theTabs[2]}
}

func (s *functionsScreen) filter() string { return s.list.filter }

func (s *functionsScreen) setFilter(text string) (tea.Cmd, error) {
	s.list.filter = text
	s.arrange()
	return nil, nil
}

func (s *functionsScreen) fetch(src source) func(context.Context) (any, error) {
	queue, back := s.queue, s.m.span
	return func(ctx context.Context) (any, error) {
		names := []string{queue}
		if queue == "" {
			var err error
			if names, err = src.Names(ctx); err != nil {
				return nil, err
			}
		}
		flows, err := src.flows(ctx, back, names)
		d := functionsData{known: len(flows), queues: len(names)}
		for _, name := range names {
			d.functions = append(d.functions, flows[name].functions...)
		}
		return d, err
	}
}

func (s *functionsScreen) take(data any) {
	d, _ := data.(functionsData)
	s.known, s.queues = d.known, d.queues
	s.set(d.functions)
}

func (s *functionsScreen) draw(c *canvas, left int) {
	var sum flow
	for i := range s.items {
		sum.total += s.items[i].total
		sum.failures += s.items[i].failures
		sum.perSecond += s.items[i].perSecond
	}
	cells := []term.Cell{
		term.C(" " + count(len(s.items), "function")), term.C(" that ran in the last "+
			spanOf[s.m.span].name+"  ", term.Dim), amount(int64(sum.total)), term.C(" runs, ", term.Dim),
		rate(&sum, true), term.C("/s  ", term.Dim), amount(int64(sum.failures), term.Red), term.C(" failed", term.Dim),
	}
	if s.known < s.queues {
		cells = append(cells, term.C("  reading: "+term.Number(s.known)+" of "+count(s.queues, "queue"), term.Yellow))
	}
	c.say(cells...)
	s.list.draw(c, left, s.enter)
}

// enter goes to the tasks of the selected function.
func (s *functionsScreen) enter() tea.Cmd {
	f := s.current()
	if f == nil || f.path == "" {
		return nil
	}
	t := newTasksScreen(s.m, f.queue)
	t.written, t.query.Filter = "func:"+f.path, inspect.Filter{Function: f.path}
	if f.failures > 0 {
		t.query.State = state.Retry
	}
	return s.m.open(t)
}

func (s *functionsScreen) key(key string) (tea.Cmd, bool) {
	if s.moveKey(key) || s.sortKey(key) {
		return nil, true
	}
	if key == "enter" {
		return s.enter(), true
	}
	return nil, false
}

func (s *functionsScreen) keys() []binding {
	return slices.Concat(entering, []binding{
		{key: "t", what: "rates and bars of the last two minutes, or of the last hour", hint: "2m/1h"},
	}, sorting)
}
