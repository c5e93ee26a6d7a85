package top

import (
	"cmp"
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// problemsScreen lists what is wrong, the worst first, and shows what to do about the selected problem.
type problemsScreen struct {
	list[inspect.Problem]

	at time.Time // of the diagnosis
}

func newProblemsScreen(m *model) *problemsScreen {
	type problem = inspect.Problem
	s := &problemsScreen{}
	s.m, s.where, s.sort, s.open = m, []string{theTabs[0], "Problems"}, -1, s.openTasks
	s.id = func(p *problem) string {
		return string(p.Kind) + " " + p.Queue + " " + p.Worker + " " + p.Function + " " + p.Entry
	}
	s.text = func(p *problem) string { return string(p.Kind) + " " + p.Queue + " " + p.Text }
	s.empty = "Nothing is wrong."
	s.columns = []column[problem]{
		cells(term.Column{Name: "LEVEL"}, level),
		cells(term.Num("FOR"), func(p *problem) term.Cell {
			if p.Since.IsZero() {
				return lapse(0)
			}
			return lapse(s.at.Sub(p.Since))
		}),
		texts(term.Column{Name: "ABOUT", Flex: true}, about, term.Bold),
		texts(term.Column{Name: "PROBLEM", Flex: true}, func(p *problem) string { return p.Text }),
	}
	return s
}

// level is the severity of a problem.
func level(p *inspect.Problem) term.Cell {
	if p.Severity == inspect.SeverityError {
		return term.C(string(p.Severity), term.Red)
	}
	return term.C(string(p.Severity), term.Yellow)
}

// about is what a problem is about: Redis, or its queue.
func about(p *inspect.Problem) string {
	text := p.Queue
	if text == "" {
		text = "Redis"
	}
	if p.Others > 0 {
		text += " and " + term.Number(p.Others) + " more"
	}
	return text
}

// problemLines is how many problems the screen of queues shows at most.
const problemLines = 3

// drawProblems writes the worst problems above the list of queues.
func (s *queuesScreen) drawProblems(c *canvas) {
	all := s.found.Problems
	shown := all[:min(len(all), problemLines, c.height/8)]
	for i := range shown {
		p := &shown[i]
		c.click(0, c.width, func() tea.Cmd { return s.m.open(newProblemsScreen(s.m)) })
		cells := []term.Cell{
			term.C(" "), level(p), term.C(" "+term.Clip(about(p), 40), term.Bold), term.C(": " + p.Text),
		}
		if n := len(all) - len(shown); n > 0 && i == len(shown)-1 {
			more := "  and " + term.Number(n) + " more: !"
			used := 0
			for _, cell := range cells[:3] {
				used += term.Width(term.Clip(cell.Text, c.width))
			}
			cells[3].Text = term.Clip(cells[3].Text, max(c.width-used-term.Width(more), 1))
			cells = append(cells, term.C(more, term.Dim))
		}
		c.write(cells...)
	}
}

func (s *problemsScreen) fetch() func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) {
		d, err := s.m.src.diagnose(ctx)
		return func() {
			s.at = d.At
			s.set(d.Problems)
		}, err
	}
}

func (s *problemsScreen) draw(c *canvas, left int) {
	var details []term.Cell
	if p := s.current(); p != nil {
		for _, part := range []term.Cell{term.C(p.Text), term.C("To do: " + p.Advice), term.C(p.Command, term.Dim)} {
			for _, line := range wrap(inspect.Printable(part.Text), c.width-2) {
				details = append(details, term.C(" "+line, part.Style))
			}
		}
		details = details[:min(len(details), c.left()/2)]
	}
	s.drawRows(c, left+len(details)+1)
	c.fill(left + len(details) + 1)
	c.rule()
	for _, line := range details {
		c.write(line)
	}
}

// problemTasks are the states of the tasks that problems are about, unless these are pending.
var problemTasks = map[inspect.ProblemKind]state.Task{
	inspect.ProblemParked: state.Parked, inspect.ProblemArchive: state.Archived, inspect.ProblemFailing: state.Retry,
	inspect.ProblemWaiting: state.Active,
}

// openTasks lists tasks of the queue.
func (s *problemsScreen) openTasks(p *inspect.Problem) tea.Cmd {
	if p.Queue == "" {
		return nil
	}
	t := newTasksScreen(s.m, p.Queue)
	t.query.State = cmp.Or(problemTasks[p.Kind], state.Pending)
	return s.m.open(t)
}
