package top

import (
	"context"
	"errors"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/inspect"
)

const (
	// patience bounds a refresh or an action, which may be many calls. Each call has its own bound, of seconds, so a
	// Redis that does not answer is noticed sooner, and one that is slow can still be looked at.
	patience = time.Minute
	// leisure is how many times as long as a refresh has taken the screen waits before the next one: a Redis that is
	// slow, or has much to return, is left alone for most of the time.
	leisure = 4
	// taskLeisure is leisure for the page of a task.
	taskLeisure = 30
)

// fetching is what is being read.
type fetching struct {
	seq    int    // of the latest refresh; what earlier ones bring is too late
	cancel func() // ends it
}

// fetchedMsg brings what a refresh has read.
type fetchedMsg struct {
	seq  int
	show func() // shows what was read; nil after an error
	err  error
	took time.Duration
}

// refreshMsg is due at the next refresh.
type refreshMsg struct{ seq int }

// refresh reads the data of the screen that is shown. What is being read already is given up.
func (m *model) refresh() tea.Cmd {
	if m.fetch.cancel != nil {
		m.fetch.cancel()
	}
	m.fetch.seq++
	fetch := m.current().fetch()
	if fetch == nil {
		m.fetch.cancel = nil
		if s, ok := m.current().screen.(*eventsScreen); ok {
			return s.begin()
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(m.ctx, patience)
	m.fetch.cancel = cancel
	seq, now := m.fetch.seq, m.now
	return m.beside(func() tea.Msg {
		defer cancel()
		begin := now()
		show, err := fetch(ctx)
		return fetchedMsg{seq, show, err, now().Sub(begin)}
	})
}

// costly reports whether the screen may be expensive to read: a pending task is looked for among all others.
func (m *model) costly() bool {
	_, task := m.current().screen.(*taskScreen)
	return task
}

// fetched takes in what was read, and waits for the next refresh.
func (m *model) fetched(msg fetchedMsg) tea.Cmd {
	if msg.seq != m.fetch.seq {
		return nil
	}
	p := m.current()
	wait := m.cfg.Interval
	switch {
	case msg.err == nil:
		p.at, p.err, p.failing = m.now(), nil, time.Time{}
		msg.show()
		factor := leisure
		if m.costly() {
			factor = taskLeisure
		}
		wait = max(wait, msg.took*time.Duration(factor))
	case errors.Is(msg.err, inspect.ErrNotFound):
		p.at, p.err, p.failing = m.now(), nil, time.Time{}
		p.gone()
	default:
		if p.err == nil {
			p.failing = m.now()
		}
		p.err = msg.err
		wait = max(wait, msg.took)
	}
	return m.after(wait, refreshMsg{m.fetch.seq})
}

// gate counts what runs beside the model. When it is shut, nothing begins any more, and shut waits for what runs: the
// framework does not wait for commands.
type gate struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// enter reports whether something may begin. If so, it must call leave at its end.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

func (g *gate) leave() { g.running.Done() }

// shut waits until nothing runs.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}

// beside returns a command that the program waits for.
func (m *model) beside(do func() tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if !m.work.enter() {
			return nil
		}
		defer m.work.leave()
		return do()
	}
}
