package delayed

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Cancel cancels the task in any state before its end. If it returns nil, what follows depends on where the task is at
// that moment:
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
// Only the worker knows which of its claims have started: asking Redis before each start would cost every task a round
// trip. To be certain that the task has ended, call Ref.Wait. When Cancel returns, the lock of Unique is free; an id of
// TaskID is free when the task has ended. Ref.Wait for a cancelled task returns an error that wraps ErrCanceled, unless
// the handler has succeeded all the same; it needs KeepResult or Retention.
//
// If Redis still knows that the task has ended, because it is archived, or completed and kept, the error wraps
// ErrEnded. Redis keeps nothing of most ended tasks; for these, and for an id that no task ever had, Cancel returns
// nil, and Redis forgets the cancellation after seven days. Cancelling again changes nothing. Other errors are those of
// asking Redis. Cancel also works when the memory of Redis is full.
//
// A cancelled call that a Group still gathers is left out of the combined call. The combined call has the id of the
// first call: once it is made, cancelling that id cancels all gathered calls, and the ids of the other calls cancel
// nothing. Legacy workers, and other workers that do not know the task's id, run a task that was cancelled while it was
// pending. The error wraps ErrNoID if the task has no id.
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
		var lock string
		if msg, err := wire.Parse(message.Bytes, wire.WorkerLimits); message.Bytes != nil && err == nil &&
			msg.Meta.Extra != nil {
			x := msg.Meta.Extra
			lock = x.Lock
			if x.Keeps() {
				i := engine.CanceledInfo(&msg, s.Now())
				if x.Retention > 0 {
					i.Message = message.Bytes
				}
				info, keep = i.Encode(), wire.Milliseconds(max(x.KeepResult, x.Retention))
			}
		}
		switch became, err := s.Cancel(ctx, r.id, lock, message.Exists(), keep, info); {
		case err != nil:
			return err
		case became == redisstore.CancelTooLate:
			return fmt.Errorf("%w: task %s cannot be cancelled", ErrEnded, r)
		case became != redisstore.CancelAgain:
			return nil
		}
	}
}
