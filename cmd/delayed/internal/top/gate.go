package top

import (
	"sync"

	tea "charm.land/bubbletea/v2"
)

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
