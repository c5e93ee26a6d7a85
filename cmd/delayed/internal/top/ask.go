package top

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// askWhere asks for the queue to move tasks to.
func (m *model) askWhere(v verb, s selection) {
	m.prompt = &prompt{
		label: "move " + s.text() + " to queue:", note: "Tab completes", words: m.queueNames(s.queue),
		enter: func(to string) (tea.Cmd, error) {
			if to == "" || to == s.queue {
				return nil, errors.New("expected the name of another queue")
			}
			m.confirm(v, s, inspect.MoveTo(to), " to queue "+term.Clip(to, 60))
			return nil, nil
		},
	}
}

// queueNames are the queues that are known but for one.
func (m *model) queueNames(but string) (names []string) {
	if s, ok := m.tabs[0].screen.(*queuesScreen); ok {
		for i := range s.items {
			if s.items[i].Name != but {
				names = append(names, s.items[i].Name)
			}
		}
	}
	return names
}

// askWhen asks for another due time of tasks.
func (m *model) askWhen(v verb, s selection) {
	m.prompt = &prompt{
		label: "reschedule " + s.text() + " to:", note: "15m, 2d, or 2026-01-31 15:04",
		enter: func(text string) (tea.Cmd, error) {
			now := m.now()
			at, err := call.ParseWhen(text, now, time.Local)
			if err != nil {
				return nil, err
			}
			m.confirm(v, s, inspect.Reschedule(at), " to "+term.Moment(at, now))
			return nil, nil
		},
	}
}

// publishedMsg brings the published function of a task whose arguments are to be edited.
type publishedMsg struct {
	tab, depth int // where one was when it was asked for
	verb       verb
	sel        selection
	fn         *inspect.Function // nil for Python tasks, whose arguments are not checked
	err        error
}

// askArguments looks for the function of a task; published goes on.
func (m *model) askArguments(v verb, s selection) tea.Cmd {
	switch {
	case s.task == nil:
		m.fail("cannot edit", errors.New("expected one task, not marked ones; delayed edit --all edits many"))
		return nil
	case s.task.Function == "":
		m.fail("cannot edit", errors.New("the function of the task is unknown"))
		return nil
	}
	task := *s.task // the screen's own one is replaced meanwhile
	s.task = &task
	msg := publishedMsg{tab: m.tab, depth: len(m.stack), verb: v, sel: s}
	if s.task.Python {
		return m.published(msg)
	}
	return m.beside(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		defer cancel()
		functions, err := m.src.Functions(ctx, s.queue)
		if err == nil {
			msg.fn, err = call.Published(functions, s.task)
		}
		msg.err = err
		return msg
	})
}

// published lets one write other arguments, unless one has gone elsewhere meanwhile.
func (m *model) published(msg publishedMsg) tea.Cmd {
	if m.tab != msg.tab || len(m.stack) != msg.depth || m.dialog != nil || m.prompt != nil {
		return nil
	}
	t := msg.sel.task
	text, err := "", msg.err
	if err == nil {
		text, err = call.Write(t, msg.fn)
	}
	if err == nil && len(text) > mostPrompt {
		err = fmt.Errorf("its arguments take more than %d characters; delayed edit has no such bound", mostPrompt)
	}
	if err != nil {
		m.fail("cannot edit", err)
		return nil
	}
	m.prompt = &prompt{
		label: "arguments:", text: text, after: 1, note: `a JSON array, such as [42,"en"]`, // the cursor is before ]
		enter: func(text string) (tea.Cmd, error) {
			edited, err := call.Edited(t, msg.fn, text)
			if err != nil {
				return nil, err
			}
			s := msg.sel
			s.call = "Its arguments will be " + text
			m.confirm(msg.verb, s, inspect.Edit(edited), "")
			return nil, nil
		},
	}
	return nil
}

// foundMsg brings the tasks that have an id.
type foundMsg struct {
	tab, depth int // where one was when the search began
	id         string
	tasks      []inspect.Task
	err        error
}

// askID lets one write the id of a task, and goes to its page.
func (m *model) askID() {
	m.prompt = &prompt{label: "task:", note: "its id; all queues are searched"}
	m.prompt.enter = func(id string) (tea.Cmd, error) {
		if id == "" {
			return nil, errors.New("expected the id of a task")
		}
		return m.findID(id), nil
	}
}

// findID looks for a task in all queues, and goes to its page.
func (m *model) findID(id string) tea.Cmd {
	m.say(term.C("looking for task " + term.Clip(id, 60) + "…"))
	tab, depth := m.tab, len(m.stack)
	return m.beside(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience) // it may have to look through all tasks
		defer cancel()
		tasks, err := m.src.Find(ctx, id)
		return foundMsg{tab, depth, id, tasks, err}
	})
}

// found goes to the page of a task that was found, unless one has gone elsewhere meanwhile.
func (m *model) found(msg foundMsg) tea.Cmd {
	if msg.err == nil && len(msg.tasks) == 0 {
		msg.err = inspect.ErrNotFound
	}
	if msg.err != nil {
		m.fail("task "+term.Clip(msg.id, 60), msg.err)
		return nil
	}
	if m.tab != msg.tab || len(m.stack) != msg.depth || m.dialog != nil || m.prompt != nil {
		return nil
	}
	cmd := m.open(newTaskScreen(m, &msg.tasks[0]))
	if n := len(msg.tasks); n > 1 {
		m.say(term.C("another task with this id is in queue "+term.Clip(msg.tasks[1].Queue, 60), term.Yellow))
	}
	return cmd
}

// dialog is a question that is answered by yes or no.
type dialog struct {
	question, detail string
	yes              func() tea.Cmd
}

// dialogLines is how many lines a question takes.
const dialogLines = 4

// answer answers a key while a question is asked: anything but yes and what follows it means no.
func (m *model) answer(key string) tea.Cmd {
	d := m.dialog
	switch key {
	case "y", "Y":
		m.dialog = nil
		return d.yes()
	case "n", "N", "esc", "q", "enter":
		m.dialog = nil
		m.say(term.C("nothing was done"))
	}
	return nil
}

// drawDialog writes the question.
func (m *model) drawDialog(c *canvas) {
	d := m.dialog
	c.rule()
	c.say(term.C(" "+d.question, term.Bold))
	c.say(term.C(" "+d.detail, term.Dim))
	press := func(key string) func() tea.Cmd { return func() tea.Cmd { return m.answer(key) } }
	c.links(link{term.C(" "), nil}, link{term.C("[y] yes", boldGreen), press("y")}, link{term.C("   "), nil},
		link{term.C("[n] no", boldRed), press("n")})
}
