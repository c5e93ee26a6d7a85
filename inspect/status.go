package inspect

import (
	"encoding/json"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/state"
)

// Running is a task whose handler has run for more than a second, as its worker last said.
type Running struct {
	Queue    string
	ID       string    // "" if the task has none
	Function string    // path
	Started  time.Time // by the clock of the worker's host
}

// workerStates maps the texts of states to them.
var workerStates = func() map[string]state.Worker {
	m := map[string]state.Worker{}
	for s := state.New; s <= state.Stopped; s++ {
		m[s.String()] = s
	}
	return m
}()

// readStatus reads what a worker has published of what it does; nil: nothing that can be read.
func readStatus(text []byte) *catalog.Status {
	var status catalog.Status
	if len(text) == 0 || json.Unmarshal(text, &status) != nil || status.Version != catalog.Version {
		return nil // a later version wrote it, or another program
	}
	return &status
}

// note adds what a worker says of itself on a queue.
func (w *Worker) note(queue string, s *catalog.Status) {
	w.Started, w.Version, w.Concurrency, w.Order = time.UnixMilli(s.Started), s.Library, s.Concurrency, s.Queues
	w.State, w.Program, w.Memory = workerStates[s.State], s.Program, max(s.Memory, 0)
	for _, r := range s.Running {
		w.Running = append(w.Running, Running{queue, r.ID, r.Function, time.UnixMilli(r.Started)})
	}
	w.MoreRunning += s.More
}
