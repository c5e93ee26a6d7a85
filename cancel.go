package delayed

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Cancel cancels the task, wherever it is. What nil promises depends on where the task is then:
//
//   - Scheduled, retrying or parked: it is taken out at once, and its handler never starts.
//   - Pending: its handler never starts. A worker that claims it after that learns of the cancellation in the same
//     step.
//   - Claimed by a worker, which claims some tasks ahead: the worker is told, within milliseconds as a rule and after a
//     quarter of WorkerConfig.HeartbeatLife at the latest. Until then the handler may start, also after Cancel has
//     returned; from then on it does not start, and if it runs, its context ends with the cause ErrCanceled. Whatever
//     error it returns then, the task is not tried again; if it returns nil, the task has succeeded. Handlers without a
//     context run on.
//
// Nobody but the worker knows which of its claims have started, and asking Redis before each start would cost every
// task a round trip; so who must be certain waits for the end of the task, by Ref.Wait. The lock of Unique is free
// when Cancel returns; an id that TaskID said, when the task has ended. Who waits for the task gets an error that
// wraps ErrCanceled.
//
// The error wraps ErrEnded if the task is known to have ended: it is archived, or completed and kept. Of most tasks
// that have ended nothing is known; then, and for an id that never was one, Cancel returns nil, and what it notes is
// forgotten after seven days. Cancelling again changes nothing. Other errors are those of asking Redis; a Redis whose
// memory is full cancels as well.
//
// A call that a Group gathers is left out of the one call that its group becomes. That has the id of its first, and is
// cancelled by it, with all that it was made of; the others are part of it then. Legacy workers run what was cancelled
// while it was pending; so do workers that do not know the task's id, as keakon's Python workers. The error wraps
// ErrNoID if the task has none.
func (r *Ref) Cancel(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	s := r.queue.store
	for {
		found, err := s.Look(ctx, r.id, true)
		if err != nil {
			return err
		}
		s.RedisTime(found.Now) // sets the day whose counter is raised
		message := found.Message
		if !message.Exists() && r.loose {
			return r.gone()
		}
		// Keep a record of the cancellation for callers that wait for the task.
		var keep time.Duration
		var info []byte
		if msg, err := wire.Parse(message.Bytes, wire.WorkerLimits); message.Bytes != nil && err == nil &&
			msg.Meta.Extra.Keeps() {
			i := engine.CanceledInfo(&msg, s.Now())
			info, keep = i.Encode(), wire.Milliseconds(max(msg.Meta.Extra.KeepResult, msg.Meta.Extra.Retention))
		}
		switch became, err := s.Cancel(ctx, r.id, message.Exists(), keep, info); {
		case err != nil:
			return err
		case became == redisstore.CancelTooLate:
			return fmt.Errorf("%w: task %s cannot be cancelled", ErrEnded, r)
		case became != redisstore.CancelAgain:
			return nil
		}
	}
}
