package top

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

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
