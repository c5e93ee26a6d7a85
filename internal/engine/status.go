package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/state"
)

const (
	// shownRun is how long a task must have run before the status lists it.
	shownRun = time.Second
	// maxShown bounds the running tasks that the status lists, for each queue. The longest ones come first.
	maxShown = 100
)

// status describes what a worker does.
type status struct {
	all    catalog.Status // what does not change
	worker phaser
	exec   *executors
	memory publishedMemory
}

// phaser is a worker that knows its phase.
type phaser interface{ Phase() state.Worker }

// ofWorker returns what holds for all lanes. It only changes when there is something to publish, so a worker that is
// idle or runs short tasks writes its status once, and again when its memory has changed. Times are those of this
// process's clock.
func (s *status) ofWorker(now time.Time) catalog.Status {
	all := s.all
	all.State, all.Memory = s.worker.Phase().String(), s.memory.update(MemoryUsed(), now)
	return all
}

// ofLane adds what the worker runs of a lane's tasks, and returns the status as JSON.
func (s *status) ofLane(l *lane, now time.Time, out catalog.Status) []byte {
	for _, c := range s.exec.running() {
		if c.lane == l && now.Sub(c.started) >= shownRun {
			out.Running = append(out.Running, catalog.Running{
				Token: c.token, ID: c.msg.Meta.ID, Function: c.msg.Path, Started: c.started.UnixMilli(),
			})
		}
	}
	slices.SortFunc(out.Running, func(a, b catalog.Running) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.Token, b.Token))
	})
	if out.More = max(len(out.Running)-maxShown, 0); out.More > 0 {
		out.Running = out.Running[:maxShown]
	}
	text, _ := json.Marshal(out) //nolint:errchkjson // it has no value that cannot be written
	return text
}
