package top

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// queueRow is a queue with what it has done lately.
type queueRow struct {
	inspect.Queue

	flow  queueFlow
	known bool             // flow was read
	worst *inspect.Problem // nil: none
}

// queuesScreen lists all queues.
type queuesScreen struct {
	list[queueRow]

	found inspect.Diagnosis
}

// wideScreen is how many columns a terminal has that shows whole sparklines.
const wideScreen = 100

func newQueuesScreen(m *model) *queuesScreen {
	s := &queuesScreen{}
	s.m, s.where = m, []string{theTabs[0]}
	s.open = func(q *queueRow) tea.Cmd {
		t := newTasksScreen(m, q.Name)
		t.query.State = firstState(&q.Queue)
		return m.open(t)
	}
	s.actKeys = []binding{
		{key: "!", what: "what is wrong, and what to do", hint: "problems"},
		{key: "p", what: "pause or resume the queue", hint: "pause"},
		{key: "w", what: "its workers", hint: "workers"},
		{key: "f", what: "its functions", hint: "functions"},
		{key: "e", what: "its events", hint: "events"},
		spanKey,
	}
	s.id = func(q *queueRow) string { return q.Name }
	s.text = s.id
	s.empty = "No queues: nobody has enqueued a task here, and no worker has started. Is it the right Redis?"
	s.columns = []column[queueRow]{
		{term.Column{Name: "QUEUE", Flex: true}, nameOf, smallest(s.id)},
		amounts(term.Num("PENDING"), func(q *queueRow) int { return q.Pending }),
		amounts(term.Spare("ACTIVE", 4), func(q *queueRow) int { return q.Active }, term.Green),
		amounts(term.Spare("SCHEDULED", 8), func(q *queueRow) int { return q.Scheduled }),
		amounts(term.Num("RETRY"), func(q *queueRow) int { return q.Retry }, term.Yellow),
		amounts(term.Rare("PARKED", 6), func(q *queueRow) int { return q.Parked }, term.Yellow),
		amounts(term.Num("ARCHIVED"), func(q *queueRow) int { return q.Archived }, term.Red),
		lapses(term.Num("LATENCY"), func(q *queueRow) time.Duration { return q.Latency }),
		amounts(term.Spare("WORKERS", 7), func(q *queueRow) int { return q.Workers }),
		{
			term.Num("RUN/S"), func(q *queueRow) term.Cell { return rate(&q.flow.flow, q.known) },
			largest(func(q *queueRow) float64 { return q.flow.perSecond }),
		},
		cells(term.Column{Name: "RUNS", Drop: 1}, s.runs),
		{
			term.Spare("FAIL%", 3), func(q *queueRow) term.Cell { return failing(&q.flow.flow) },
			largest(func(q *queueRow) float64 { return q.flow.failPercent }),
		},
		cells(term.Column{Name: "FAILURES", Drop: 9}, func(q *queueRow) term.Cell {
			return m.spark(&q.flow.failed, term.Red)
		}),
		cells(term.Column{Name: "STATE", Optional: true}, func(q *queueRow) term.Cell {
			if m.width < wideScreen {
				return term.C("") // the sparkline has it
			}
			return unusual(q)
		}),
	}
	return s
}

// spark draws what has run as a sparkline, half as wide on a narrow terminal.
func (m *model) spark(values *[bars]uint64, style term.Style) term.Cell {
	columns := bars
	if m.width < wideScreen {
		columns /= 2
	}
	return term.C(term.Spark(values[:], columns, m.look.heights()), style)
}

// runs is the sparkline of a queue's runs. A narrow terminal has no room for its state elsewhere.
func (s *queuesScreen) runs(q *queueRow) term.Cell {
	if unusual := unusual(q); unusual.Text != "" && s.m.width < wideScreen {
		return unusual
	}
	return s.m.spark(&q.flow.runs, term.Green)
}

// nameOf is the name of a queue, in the colour of what is unusual about it.
func nameOf(q *queueRow) term.Cell {
	if u := unusual(q); u.Style != term.Plain && u.Style != term.Dim {
		return term.C(q.Name, term.Bold+";"+u.Style)
	}
	return term.C(q.Name, term.Bold)
}

// unusual is what is unusual about a queue.
func unusual(q *queueRow) term.Cell {
	switch {
	case q.worst != nil && q.worst.Severity == inspect.SeverityError:
		return term.C(string(q.worst.Kind), term.Red)
	case !q.Paused.IsZero():
		return term.C("paused", term.Yellow)
	case q.Legacy:
		return term.C("legacy", term.Dim)
	}
	return term.C("")
}

// rate is how many tasks have run in a second.
func rate(f *flow, known bool) term.Cell {
	switch n := f.perSecond; {
	case !known:
		return term.C("…", term.Dim)
	case n == 0:
		return term.C("0", term.Dim)
	case n < 0.05:
		return term.C("<0.1")
	case n < 10:
		return term.C(strconv.FormatFloat(n, 'f', 1, 64))
	default:
		return term.C(term.Number(int64(n + 0.5)))
	}
}

// failing is how many of the runs have failed, in percent.
func failing(f *flow) term.Cell {
	switch {
	case f.failures == 0:
		return term.C("-", term.Dim)
	case f.failPercent < 10:
		return term.C(strconv.FormatFloat(f.failPercent, 'f', 1, 64), term.Red)
	default:
		return term.C(strconv.Itoa(int(f.failPercent+0.5)), term.Red)
	}
}

// fetch reads all queues, and the metrics of those that are in view.
func (s *queuesScreen) fetch() func(context.Context) (func(), error) {
	var shown []string
	for _, q := range s.visible() {
		shown = append(shown, q.Name)
	}
	room, back := s.m.height, s.m.span
	return func(ctx context.Context) (func(), error) {
		queues, err := s.m.src.Queues(ctx)
		if err != nil {
			return nil, err
		}
		for i := 0; len(shown) == 0 && i < min(len(queues), room); i++ { // the first time
			shown = append(shown, queues[i].Name)
		}
		for i := range queues {
			if queues[i].Err != nil {
				shown = slices.DeleteFunc(shown, func(name string) bool { return name == queues[i].Name })
			}
		}
		flows, err := s.m.src.flows(ctx, back, shown)
		if err != nil {
			return nil, err
		}
		found, err := s.m.src.diagnose(ctx)
		if err != nil {
			return nil, err
		}
		worst := map[string]*inspect.Problem{}
		for i := range slices.Backward(found.Problems) {
			worst[found.Problems[i].Queue] = &found.Problems[i]
		}
		rows := make([]queueRow, len(queues))
		for i := range queues {
			f, known := flows[queues[i].Name]
			rows[i] = queueRow{queues[i], f, known, worst[queues[i].Name]}
		}
		return func() {
			s.found = found
			s.set(rows)
		}, nil
	}
}

// draw writes the sums of all queues, the list, and where there is room more about the selected one.
func (s *queuesScreen) draw(c *canvas, left int) {
	s.drawSums(c)
	s.drawProblems(c)
	panel := 0
	if c.height >= tallScreen {
		panel = panelLines
	}
	s.columns[len(s.columns)-4].Name = "RUNS, " + spanOf[s.m.span].name
	s.drawRows(c, left+panel)
	if q := s.current(); panel > 0 && q != nil {
		c.fill(left + panel)
		s.drawPanel(c, q)
	}
}

// drawSums writes what all queues hold together.
func (s *queuesScreen) drawSums(c *canvas) {
	var sum inspect.Queue
	paused := 0
	var perSecond float64
	for i := range s.items {
		q := &s.items[i]
		sum.Pending += q.Pending
		sum.Active += q.Active
		sum.Retry += q.Retry
		sum.Archived += q.Archived
		sum.Latency = max(sum.Latency, q.Latency)
		perSecond += q.flow.perSecond
		if !q.Paused.IsZero() {
			paused++
		}
	}
	cells := []term.Cell{term.C(" " + term.Count(len(s.items), "queue"))}
	if paused > 0 {
		cells = append(cells, term.C(fmt.Sprintf(", %d paused", paused), term.Yellow))
	}
	add := func(n int, what string, style term.Style) {
		cells = append(cells, term.C("  "), term.Amount(n, style), term.C(" "+what, term.Dim))
	}
	add(sum.Pending, "pending", term.Bold)
	add(sum.Active, "active", term.Green)
	add(sum.Retry, "retry", term.Yellow)
	add(sum.Archived, "archived", term.Red)
	cells = append(cells, term.C("  oldest ", term.Dim), lapse(sum.Latency), term.C("  "),
		rate(&flow{perSecond: perSecond}, true), term.C("/s", term.Dim))
	c.write(cells...)
}

func (s *queuesScreen) key(key string) (tea.Cmd, bool) {
	if q := s.current(); q != nil {
		switch key {
		case "p":
			s.m.pauseQueue(q.Name, q.Paused.IsZero())
			return nil, true
		case "w":
			return s.m.open(newWorkersScreen(s.m, q.Name)), true
		case "f":
			return s.m.open(newFunctionsScreen(s.m, q.Name)), true
		case "e":
			return s.m.open(newEventsScreen(s.m, q.Name)), true
		case "!":
			return s.m.open(newProblemsScreen(s.m)), true
		}
	}
	return s.list.key(key)
}

// firstState is the state whose tasks are listed first: the first one that somebody who opens a queue may look for.
func firstState(q *inspect.Queue) state.Task {
	for _, in := range []state.Task{state.Pending, state.Retry, state.Archived, state.Parked, state.Active} {
		if q.Size(in) > 0 {
			return in
		}
	}
	return state.Pending
}

// pauseQueue pauses or resumes a queue, after somebody has agreed.
func (m *model) pauseQueue(name string, pause bool) {
	shown := term.Clip(name, 60)
	question, detail, done, do := "Resume", "Workers claim its tasks again.", "resumed", m.src.Resume
	if pause {
		question, done, do = "Pause", "paused", m.src.Pause
		detail = "No worker claims its tasks until it is resumed; what runs goes on."
	}
	m.steer(question+" queue "+shown+"?", detail, done+" queue "+shown,
		func(ctx context.Context) error { return do(ctx, name) })
}

const (
	// tallScreen is how many lines a terminal has that also shows a panel.
	tallScreen = 32
	panelLines = 10
	chartLines = 6
)

// drawPanel writes more about the selected queue: a chart of its runs, and how long tasks wait and run.
func (s *queuesScreen) drawPanel(c *canvas, q *queueRow) {
	f := &q.flow.flow
	c.rule()
	c.write(term.C(" "+term.Clip(q.Name, 40), term.Bold), term.C("  runs and failures, last "+
		spanOf[s.m.span].name+", a bar each "+term.Duration(spanOf[s.m.span].step), term.Dim))
	facts := s.facts(q)
	runs := s.chart(f.runs[:])
	failed := s.chart(f.failed[:])
	for i := range chartLines {
		cells := []term.Cell{term.C(" "), term.C(runs[i], term.Green), term.C("   "), term.C(failed[i], term.Red)}
		if i < len(facts) {
			cells = append(cells, facts[i]...)
		}
		c.write(cells...)
	}
	c.write(term.C(" "+term.Pad("runs, most "+term.Number(int64(slices.Max(f.runs[:]))), 2*bars)+"   failures, most "+
		term.Number(int64(slices.Max(f.failed[:]))), term.Dim))
}

// facts are what stands beside the charts.
func (s *queuesScreen) facts(q *queueRow) [][]term.Cell {
	f := &q.flow.flow
	field := func(name string, cells ...term.Cell) []term.Cell {
		return append([]term.Cell{term.C("   "+term.Pad(name, 10), term.Dim)}, cells...)
	}
	quantiles := func(p50, p95 term.Cell) []term.Cell {
		return []term.Cell{term.C("p50 ", term.Dim), p50, term.C("  p95 ", term.Dim), p95}
	}
	return [][]term.Cell{
		field("wait", quantiles(lapse(f.wait50), lapse(f.wait95))...),
		field("run", quantiles(lapse(f.run50), lapse(f.run95))...),
		field("runs", term.Amount(f.total), term.C("  failed ", term.Dim), term.Amount(f.failures, term.Red)),
		field("today", term.Amount(q.Today.Processed), term.C("  failed ", term.Dim),
			term.Amount(q.Today.Failed, term.Red)),
		field("groups", term.Amount(q.Groups), term.C("  completed ", term.Dim), term.Amount(q.Completed)),
		field("suspects", term.Amount(q.Suspects, term.Yellow)),
	}
}

// chart draws numbers as bars of chartLines lines, two columns wide each.
func (s *queuesScreen) chart(values []uint64) []string {
	levels := []rune(s.m.look.heights())
	steps := uint64(len(levels) * chartLines)
	top := max(slices.Max(values), 1)
	lines := make([]string, chartLines)
	for i := range lines {
		floor := uint64((chartLines - 1 - i) * len(levels)) // steps below this line
		var b strings.Builder
		for _, v := range values {
			high := (v*steps + top - 1) / top
			switch {
			case high <= floor && i == chartLines-1:
				b.WriteString(strings.Repeat(s.m.look.pick("▁", "_"), 2)) // the ground
			case high <= floor:
				b.WriteString("  ")
			default:
				b.WriteString(strings.Repeat(string(levels[min(high-floor, uint64(len(levels)))-1]), 2))
			}
		}
		lines[i] = b.String()
	}
	return lines
}
