package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/wire"
)

// endSuccess is the ending of a task that has succeeded and leaves something behind. value is what its function
// returned, began when it was called.
func (r *runner) endSuccess(c *Claim, value any, began, now time.Time) ending {
	info := wire.Info{
		Reason: "completed", Function: c.msg.Path, Attempts: c.msg.Meta.Retried + 1, Deaths: c.msg.Meta.Deaths,
		Began: began, At: now, Worker: r.worker,
	}
	if c.msg.Meta.Extra.Keeps() {
		var err error
		if info.Result, err = c.fn.EncodeResult(value); err != nil {
			// The function has done its work. Running it again would not make its result fit.
			info.Error = err.Error()
			r.logOf(c).WithError(err).
				Error("task is done, but its result cannot be kept")
		}
	}
	return endComplete(c, &info)
}

// endComplete is the ending of a task that is over and leaves something behind: info, if something is to be kept.
func endComplete(c *Claim, info *wire.Info) ending {
	e := ending{claim: c, outcome: lifecycle.OutcomeComplete, id: c.msg.Meta.ID}
	x := c.msg.Meta.Extra
	if !x.Keeps() || e.id == "" {
		return e
	}
	if at := c.msg.Meta.EnqueuedAt; at > 0 {
		info.Enqueued = time.UnixMilli(at)
	}
	info.Progress = c.lastReport()
	if x.Retention > 0 {
		info.Message = c.raw
	}
	e.wait, e.info = wire.Milliseconds(max(x.KeepResult, x.Retention)), info.Encode()
	return e
}
