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

// problemsScreen lists what is wrong, the worst first, and says of what is selected what to do.
type problemsScreen struct {
	list[inspect.Problem]

	m  *model
	at time.Time // of the diagnosis
}

func newProblemsScreen(m *model) *problemsScreen {
	type problem = inspect.Problem
	s := &problemsScreen{m: m}
	s.id = func(p *problem) string {
		return string(p.Kind) + " " + p.Queue + " " + p.Worker + " " + p.Function + " " + p.Entry
	}
	s.text = func(p *problem) string { return string(p.Kind) + " " + p.Queue + " " + p.Text }
	s.empty = "Nothing is wrong."
	s.sort = -1
	s.columns = []column[problem]{
		{term.Column{Name: "LEVEL"}, level, nil},
		{number("FOR"), func(p *problem) term.Cell {
			if p.Since.IsZero() {
				return lapse(0)
			}
			return lapse(s.at.Sub(p.Since))
		}, nil},
		{term.Column{Name: "ABOUT", Flex: true}, func(p *problem) term.Cell {
			return term.C(about(p), term.Bold)
		}, nil},
		{term.Column{Name: "PROBLEM", Flex: true}, func(p *problem) term.Cell { return term.C(p.Text) }, nil},
	}
	return s
}

// level says how bad a problem is.
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
		c.say(cells...)
	}
}

func (s *problemsScreen) path() []string { return []string{theTabs[0], "Problems"} }

func (s *problemsScreen) filter() string { return s.list.filter }

func (s *problemsScreen) setFilter(text string) (tea.Cmd, error) {
	s.list.filter = text
	s.arrange()
	return nil, nil
}

func (s *problemsScreen) fetch(src source) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) { return src.diagnose(ctx) }
}

func (s *problemsScreen) take(data any) {
	d, _ := data.(inspect.Diagnosis)
	s.at = d.At
	s.set(d.Problems)
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
	s.list.draw(c, left+len(details)+1, s.enter)
	c.fill(left + len(details) + 1)
	c.rule()
	for _, line := range details {
		c.say(line)
	}
}

// problemTasks are the states of the tasks that problems are about, unless these are pending.
var problemTasks = map[inspect.ProblemKind]state.Task{
	inspect.ProblemParked: state.Parked, inspect.ProblemArchive: state.Archived, inspect.ProblemFailing: state.Retry,
	inspect.ProblemWaiting: state.Active,
}

// enter goes to tasks of the queue.
func (s *problemsScreen) enter() tea.Cmd {
	p := s.current()
	if p == nil || p.Queue == "" {
		return nil
	}
	t := newTasksScreen(s.m, p.Queue)
	t.query.State = cmp.Or(problemTasks[p.Kind], state.Pending)
	return s.m.open(t)
}

func (s *problemsScreen) key(key string) (tea.Cmd, bool) {
	if s.moveKey(key) {
		return nil, true
	}
	if key == "enter" {
		return s.enter(), true
	}
	return nil, false
}

func (s *problemsScreen) keys() []binding { return entering }
