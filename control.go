package delayed

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Pause makes all workers, those that start later too, run no further tasks of the queue until Resume. They give back
// tasks that they have claimed and not started; running handlers go on. Workers hear of it at once, and no task is
// claimed once Pause has returned. Tasks can be enqueued meanwhile, and scheduled ones become pending. Redis remembers
// the pause. Legacy workers ignore it.
//
// Pausing again changes nothing. It also works when the memory of Redis is full. Errors are those of asking Redis.
func (q *Queue) Pause(ctx context.Context) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	_, err := q.store.SetControl(ctx, redisstore.ControlPaused, redisstore.ValueNow)
	return err
}

// Resume ends a Pause. Workers hear of it at once.
func (q *Queue) Resume(ctx context.Context) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	_, err := q.store.SetControl(ctx, redisstore.ControlPaused, "")
	return err
}

// Paused says whether the queue is paused.
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
	if err := q.check(ctx); err != nil {
		return err
	}
	_, err := q.store.SetControl(ctx, redisstore.ControlRestart, redisstore.ValueNow)
	return err
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
	_, err := q.store.SetControl(ctx, redisstore.ControlWeight, value)
	return err
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
	_, err = c.queue.store.SetControl(ctx, redisstore.ControlWorker+c.id, order)
	return err
}

var errNoControl = errors.New("delayed: the *WorkerControl is nil or zero: make it with Queue.Worker")
