package exec

import (
	"fmt"
	"math"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// TimeLimit returns how long the handler of a claim may run, counted from its start; 0 is no limit. ran is how long it
// has run so far. The limit of the call wins over that of the function, and that over the worker's; a deadline may
// shorten it. timeLimit reads nothing that changes while the handler runs.
func (r *Runner) TimeLimit(c *lane.Claim, ran time.Duration) time.Duration {
	d := r.Timeout
	if own := c.Fn.Policy.Timeout; own != 0 {
		d = own
	}
	x := c.Msg.Meta.Extra
	if x != nil && x.Timeout != 0 {
		d = wire.Milliseconds(x.Timeout)
	}
	if x != nil && x.Deadline != 0 {
		// if Sub overflows, the deadline is far away as well
		left := max(time.UnixMilli(x.Deadline).Sub(c.Lane.Now()), 1-ran)
		if end := ran + min(left, math.MaxInt64-ran); d == 0 || end < d {
			d = end
		}
	}
	if d > wire.Milliseconds(wire.Unlimited)/2 {
		return 0 // such a limit is none
	}
	return d
}

// archiveIfLate archives a task if it is too late to start it, and reports whether it is.
func (r *Runner) archiveIfLate(c *lane.Claim) bool {
	x := c.Msg.Meta.Extra
	if x.Expiry == 0 && x.Deadline == 0 && x.RetryUntil == 0 {
		return false
	}
	now := c.Lane.Now()
	var at int64
	var why string
	switch ms := now.UnixMilli(); {
	case x.Expiry != 0 && ms >= x.Expiry:
		at, why = x.Expiry, "its TTL ended"
	case x.Deadline != 0 && ms >= x.Deadline:
		at, why = x.Deadline, "its deadline was"
	case x.RetryUntil != 0 && x.FirstFailed != 0 && ms >= x.RetryUntil:
		at, why = x.RetryUntil, "its RetryUntil was"
	default:
		return false
	}
	m := &c.Msg.Meta
	id := m.ID
	if id == "" {
		id = wire.NewTaskID()
	}
	text := fmt.Sprintf("it did not start in time: %s at %s", why,
		time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z"))
	info := wire.Info{
		Reason: state.ReasonExpired, Function: c.Msg.Path, Error: text, Attempts: m.Retried, Deaths: m.Deaths,
		At: now, Worker: r.Worker,
	}
	if x.FirstFailed != 0 {
		info.FirstFailed = time.UnixMilli(x.FirstFailed)
	}
	r.Events.EmitFor(c, events.Event{Kind: event.TaskExpired})
	r.Events.EmitFor(c, events.Event{Kind: event.TaskArchived, Reason: info.Reason})
	c.Lane.Ends.Add(lane.Ending{
		Claim: c, Outcome: lifecycle.OutcomeExpire, Wait: lifecycle.ArchivedLife, ID: id, Message: c.Raw,
		Info: info.Encode(),
	})
	r.Log.With("queue", c.Lane.Store.Name).With("function", c.Msg.Path).With("id", id).Warn("task archived: " + text)
	return true
}
