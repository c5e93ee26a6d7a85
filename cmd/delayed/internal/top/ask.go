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

// askArguments looks for the function of a task; askEdited goes on.
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
	if task.Python { // its arguments are not checked
		m.askEdited(v, s, nil, nil)
		return nil
	}
	here := m.here()
	return m.beside(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		defer cancel()
		var fn *inspect.Function
		functions, err := m.src.Functions(ctx, s.queue)
		if err == nil {
			fn, err = call.Published(functions, s.task)
		}
		return then(func() tea.Cmd {
			if here() {
				m.askEdited(v, s, fn, err)
			}
			return nil
		})
	})
}

// askEdited lets one write other arguments of a task, whose function was published as fn.
func (m *model) askEdited(v verb, s selection, fn *inspect.Function, err error) {
	text := ""
	if err == nil {
		text, err = call.Write(s.task, fn)
	}
	if err == nil && len(text) > mostPrompt {
		err = fmt.Errorf("its arguments take more than %d characters; delayed edit has no such bound", mostPrompt)
	}
	if err != nil {
		m.fail("cannot edit", err)
		return
	}
	m.prompt = &prompt{
		label: "arguments:", text: text, after: 1, note: `a JSON array, such as [42,"en"]`, // the cursor is before ]
		enter: func(text string) (tea.Cmd, error) {
			edited, err := call.Edited(s.task, fn, text)
			if err != nil {
				return nil, err
			}
			s.call = "Its arguments will be " + text
			m.confirm(v, s, inspect.Edit(edited), "")
			return nil, nil
		},
	}
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
	m.notify(term.C("looking for task " + term.Clip(id, 60) + "…"))
	here := m.here()
	return m.beside(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience) // it may have to search all tasks
		defer cancel()
		tasks, err := m.src.Find(ctx, id)
		return then(func() tea.Cmd { return m.found(id, tasks, err, here()) })
	})
}

// found opens a task that was found, unless one has gone elsewhere meanwhile.
func (m *model) found(id string, tasks []inspect.Task, err error, here bool) tea.Cmd {
	if err == nil && len(tasks) == 0 {
		err = inspect.ErrNotFound
	}
	if err != nil {
		m.fail("task "+term.Clip(id, 60), err)
		return nil
	}
	if !here {
		return nil
	}
	cmd := m.open(newTaskScreen(m, &tasks[0]))
	if n := len(tasks); n > 1 {
		m.notify(term.C("another task with this id is in queue "+term.Clip(tasks[1].Queue, 60), term.Yellow))
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

// answer handles a key while a question is asked: anything but yes and what follows it means no.
func (m *model) answer(key string) tea.Cmd {
	d := m.dialog
	switch key {
	case "y", "Y":
		m.dialog = nil
		return d.yes()
	case "n", "N", "esc", "q", "enter":
		m.dialog = nil
		m.notify(term.C("nothing was done"))
	}
	return nil
}

// drawDialog writes the question.
func (m *model) drawDialog(c *canvas) {
	d := m.dialog
	c.rule()
	c.write(term.C(" "+d.question, term.Bold))
	c.write(term.C(" "+d.detail, term.Dim))
	press := func(key string) func() tea.Cmd { return func() tea.Cmd { return m.answer(key) } }
	c.links(link{term.C(" "), nil}, link{term.C("[y] yes", boldGreen), press("y")}, link{term.C("   "), nil},
		link{term.C("[n] no", boldRed), press("n")})
}
