package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// leaves says whether a task that has succeeded leaves something behind, so that it is not only acknowledged.
func (c *Claim) leaves() bool {
	return c.msg.Meta.Extra.Keeps() || c.held() || c.reporter.Load() != nil || c.canceled.Load()
}

// completion is the ending of a task that has succeeded and leaves something behind. value is what its function
// returned, began when it was called.
func (w *Worker) completion(c *Claim, value any, began, now time.Time) ending {
	info := wire.Info{
		Reason: "completed", Function: c.msg.Path, Attempts: c.msg.Meta.Retried + 1, Deaths: c.msg.Meta.Deaths,
		Began: began, At: now, Worker: w.id,
	}
	if c.msg.Meta.Extra.Keeps() {
		var err error
		if info.Result, err = c.fn.EncodeResult(value); err != nil {
			// The function has done its work. Running it again would not make its result fit.
			info.Error = err.Error()
			w.log.With("queue", c.lane.store.Name).With("function", c.msg.Path).With("id",
				c.msg.Meta.ID).WithError(err).
				Error("task is done, but its result cannot be kept")
		}
	}
	return w.leave(c, &info)
}

// leave is the ending of a task that is over and leaves something behind: info, if something is to be kept.
func (w *Worker) leave(c *Claim, info *wire.Info) ending {
	e := ending{claim: c, outcome: outcomeComplete, id: c.msg.Meta.ID}
	x := c.msg.Meta.Extra
	if !x.Keeps() || e.id == "" {
		return e
	}
	if at := c.msg.Meta.EnqueuedAt; at > 0 {
		info.Enqueued = time.UnixMilli(at)
	}
	info.Progress = c.reported()
	if x.Retention > 0 {
		info.Message = c.raw
	}
	e.wait, e.info = wire.Milliseconds(max(x.KeepResult, x.Retention)), info.Encode()
	return e
}

// completedOf turns endings into what the store takes.
func completedOf(group []ending) []redisstore.Completed {
	tasks := make([]redisstore.Completed, len(group))
	for i := range group {
		e := &group[i]
		t := redisstore.Completed{Token: e.claim.token, ID: e.id, Keep: e.wait, Value: e.info}
		if x := e.claim.msg.Meta.Extra; x != nil {
			t.Lock, t.Awaited = e.claim.held(), x.Keeps()
		}
		tasks[i] = t
	}
	return tasks
}
