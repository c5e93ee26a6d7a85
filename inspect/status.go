package inspect

import (
	"context"
	"encoding/json"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/redisstore"
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

// statusOf reads what a worker has published of what it does; nil: nothing that can be read.
func statusOf(ctx context.Context, s *redisstore.Store, worker string) (*catalog.Status, error) {
	text, err := s.StatusOf(ctx, worker)
	if err != nil || len(text) > catalog.MostBytes {
		return nil, err
	}
	var status catalog.Status
	if json.Unmarshal(text, &status) != nil || status.Version != catalog.Version {
		return nil, nil //nolint:nilnil,nilerr // a later version wrote it, or another program
	}
	return &status, nil
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
