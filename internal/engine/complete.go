package engine

import (
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// succeed ends the claim of a successful task that leaves something behind. value is what its function returned, began
// when it was called.
func (d *decider) succeed(c *Claim, value any, began, now time.Time) {
	info := wire.Info{
		Reason: state.ReasonCompleted, Function: c.msg.Path, Attempts: c.msg.Meta.Retried + 1,
		Deaths: c.msg.Meta.Deaths, Began: began, At: now, Worker: d.worker,
	}
	var err error
	if c.msg.Meta.Extra.Keeps() {
		if info.Result, err = encodeResult(c, value); err != nil {
			// Do not retry: the function has succeeded, and its next result would not fit either.
			info.Error = err.Error()
		}
	}
	c.lane.ends.add(endComplete(c, &info))
	if err != nil { // last, because a logger may end this goroutine
		d.logOf(c).WithError(err).
			Error("task succeeded, but its result cannot be kept")
	}
}

// encodeResult encodes what a function returned. A child process has done that already.
func encodeResult(c *Claim, value any) ([]byte, error) {
	kept, ok := value.(keptResult)
	switch {
	case !ok:
		return c.fn.EncodeResult(value)
	case kept.err != "":
		return nil, errors.New(kept.err)
	}
	return kept.encoded, nil
}

// endComplete returns the ending of a task that is over. The ending frees the lock, and keeps info if the call asks for
// that.
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
