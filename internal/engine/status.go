package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
)

const (
	// toldRun is after which time a running task is told of.
	toldRun = time.Second
	// maxTold bounds the running tasks that a worker tells of, for each queue. The longest ones come first.
	maxTold = 100
)

// statusAt returns a function that describes the worker and what it runs of a lane's tasks, as JSON. What is the same
// for all lanes is found out once. The text only changes when there is something to tell, so a worker that is idle or
// runs short tasks writes it once, and again when its memory has changed. Times are those of this process's clock.
func (w *Worker) statusAt(now time.Time) func(*lane) []byte {
	all := catalog.Status{
		Version: catalog.Version, Started: w.started.UnixMilli(), Library: w.cfg.Build.Library,
		Program: w.cfg.Build.String(), Concurrency: w.cfg.Concurrency,
		Queues: w.plan.String(), State: w.Status().Phase.String(), Memory: w.memory.tell(memoryUsed(), now),
	}
	return func(l *lane) []byte { return w.statusOf(l, now, all) }
}

// statusOf adds to what holds for all lanes what the worker runs of a lane's tasks.
func (w *Worker) statusOf(l *lane, now time.Time, s catalog.Status) []byte {
	for i := range w.exec.slots {
		if c := w.exec.slots[i].Load(); c != nil && c.lane == l && now.Sub(c.started) >= toldRun {
			s.Running = append(s.Running, catalog.Running{
				Token: c.token, ID: c.msg.Meta.ID, Function: c.msg.Path, Started: c.started.UnixMilli(),
			})
		}
	}
	slices.SortFunc(s.Running, func(a, b catalog.Running) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.Token, b.Token))
	})
	if s.More = max(len(s.Running)-maxTold, 0); s.More > 0 {
		s.Running = s.Running[:maxTold]
	}
	text, _ := json.Marshal(s) //nolint:errchkjson // it has no value that cannot be written
	return text
}
