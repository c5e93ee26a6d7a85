package delayed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Pause makes all workers, those that start later too, run no further tasks of the queue until Resume. They give back
// tasks that they have claimed and not started; running handlers go on. Workers hear of it at once, and no task is
// claimed once Pause has returned. Tasks can be enqueued meanwhile, and scheduled ones become pending. Redis remembers
// the pause. Legacy workers ignore it.
//
// Pausing again changes nothing. It also works when the memory of Redis is full. Errors are those of asking Redis.
func (q *Queue) Pause(ctx context.Context) error {
	return q.setControl(ctx, redisstore.ControlPaused, redisstore.ValueNow)
}

// setControl sets a field of the queue's control hash, which workers follow.
func (q *Queue) setControl(ctx context.Context, field, value string) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	_, err := q.store.SetControl(ctx, field, value)
	return err
}

// Resume ends a Pause. Workers hear of it at once.
func (q *Queue) Resume(ctx context.Context) error {
	return q.setControl(ctx, redisstore.ControlPaused, "")
}

// Paused reports whether the queue is paused.
func (q *Queue) Paused(ctx context.Context) (bool, error) {
	if err := q.check(ctx); err != nil {
		return false, err
	}
	c, err := q.store.Control(ctx, "")
	return c.Paused, err
}

// Restart stops all workers of the queue; their supervisors start them again. Every worker that serves the queue now
// stops as if the context of Run had ended, on all its queues, with the reason "restart": it finishes its running
// tasks, and Run returns nil after a clean stop. The library starts nothing again: the process should end then, and its
// supervisor must start it again after a clean exit too, as systemd does with Restart=always. Workers started later are
// not affected. A worker that cannot be reached stops when it can.
func (q *Queue) Restart(ctx context.Context) error {
	return q.setControl(ctx, redisstore.ControlRestart, redisstore.ValueNow)
}

// SetWeight changes the weight of the queue for all workers that serve it in Weighted order: 1 to 1000, or 0 for the
// weight that each of them was configured with. Redis remembers it. Workers in Strict order ignore it.
func (q *Queue) SetWeight(ctx context.Context, weight int) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	if weight < 0 || weight > engine.MaxWeight {
		return fmt.Errorf("%w: queue %q: weight %d: expected 1 to %d, or 0 for the configured one", ErrArguments,
			q.name, weight, engine.MaxWeight)
	}
	value := ""
	if weight > 0 {
		value = strconv.Itoa(weight)
	}
	return q.setControl(ctx, redisstore.ControlWeight, value)
}

// Worker returns the control of one worker that serves the queue. The id is what Worker.ID returned there; it also
// stands in its log. It does not ask Redis whether there is such a worker.
func (q *Queue) Worker(id string) *WorkerControl {
	must(q.checkMade())
	return &WorkerControl{q, id}
}

// WorkerControl controls one worker from any process. If the worker serves several queues, a Pause that is given on one
// of them holds for all, and only Resume on that queue ends it. The methods are safe for concurrent use. They return an
// error when no such worker is alive on the queue, or when Redis cannot be asked.
type WorkerControl struct {
	queue *Queue
	id    string
}

// Pause makes the worker claim no more tasks, from none of its queues, until Resume. See Worker.Pause.
func (c *WorkerControl) Pause(ctx context.Context) error { return c.order(ctx, engine.OrderPause) }

// Resume ends a Pause.
func (c *WorkerControl) Resume(ctx context.Context) error { return c.order(ctx, "") }

// Quiet makes the worker stop claiming for good; see Worker.Quiet.
func (c *WorkerControl) Quiet(ctx context.Context) error { return c.order(ctx, engine.OrderQuiet) }

// Stop makes the worker stop as if the context of Run had ended, with the reason "order".
func (c *WorkerControl) Stop(ctx context.Context) error { return c.order(ctx, engine.OrderStop) }

func (c *WorkerControl) order(ctx context.Context, order string) error {
	if c == nil || c.queue == nil {
		return errNoControl
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	lives, err := c.queue.store.Lives(ctx, c.id)
	if err != nil {
		return err
	}
	if !lives {
		return fmt.Errorf("delayed: queue %q has no living worker %.100q: expected the id of one that serves it",
			c.queue.name, c.id)
	}
	return c.queue.setControl(ctx, redisstore.ControlWorker+c.id, order)
}

var errNoControl = errors.New("delayed: the *WorkerControl is nil or zero: make it with Queue.Worker")

// Cancel cancels the task in any state before its end. If it returns nil, what follows depends on where the task is at
// that moment:
//
//   - Scheduled, retrying or parked: it is taken out at once, and its handler never starts.
//   - Pending: its handler never starts. A worker that claims it after that learns of the cancellation in the same
//     step.
//   - Claimed by a worker, which claims some tasks ahead: the worker hears of it, within milliseconds as a rule and
//     after a quarter of WorkerConfig.HeartbeatLife at the latest. Until then the handler may start, also after Cancel
//     has returned; from then on it does not start, and if it runs, its context ends with the cause ErrCanceled.
//     Whatever error it returns then, the task is not tried again; if it returns nil, the task has succeeded. Handlers
//     without a context run on.
//
// Only the worker knows which of its claims have started: asking Redis before each start would cost every task a round
// trip. To be certain that the task has ended, call Ref.Wait. When Cancel returns, the lock of Unique is free; an id of
// TaskID is free when the task has ended. Ref.Wait for a canceled task returns an error that wraps ErrCanceled, unless
// the handler has succeeded all the same; it needs KeepResult or Retention.
//
// If Redis still knows that the task has ended, because it is archived, or completed and kept, the error wraps
// ErrEnded. Redis keeps nothing of most ended tasks; for these, and for an id that no task ever had, Cancel returns
// nil, and Redis forgets the cancellation after seven days. Canceling again changes nothing. Other errors are those of
// asking Redis. Cancel also works when the memory of Redis is full.
//
// A canceled call that a Group still gathers is left out of the combined call. The combined call has the id of the
// first call: once it is made, canceling that id cancels all gathered calls, and the ids of the other calls cancel
// nothing. Legacy workers, and other workers that do not know the task's id, run a task that was canceled while it was
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
				i := finish.CanceledInfo(&msg, s.Now())
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
			return fmt.Errorf("%w: task %s cannot be canceled", ErrEnded, r)
		case became != redisstore.CancelAgain:
			return nil
		}
	}
}
