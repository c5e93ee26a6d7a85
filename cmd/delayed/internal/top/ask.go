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
