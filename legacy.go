package delayed

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// WithLegacy returns a handle that shares r's connections, and whose queues legacy workers share: those of keakon's
// Python package delayed and of the older Go library go-delayed. Use it in all programs that have such a queue, for
// NewQueue, OpenQueue, NewScheduler and NewWorker. Legacy workers know no key prefix, so a handle with a prefix opens
// no queue then.
//
// Tasks without options, and all Python tasks, are sent as plain messages. A Python task with other options than In,
// At, MaxRetry and Front is refused, and so is one with a map whose keys are not strings. A worker claims only as many
// tasks as have a notification, so that legacy workers find a task whenever they wake.
//
// With the first Python task, Redis records whether the queue is a plain one, whose Python tasks are plain messages.
// From then on, a program that opened the queue in the other way gets an error for Python tasks, until the queue holds
// no task at all and no periodic entry. For Go tasks nothing checks that programs agree.
//
// Structs among the arguments of Go functions travel by position. Do not change their fields: two fields that change
// places swap their values.
func (r *Store) WithLegacy() *Store {
	must(r.check())
	c := *r
	c.legacy = true
	return &c
}

// legacyArgs are the arguments of a task with structs by position.
type legacyArgs struct {
	payload []byte
	py      *wire.PyCall
}

// forQueue returns t with its arguments in the form of the queue.
func (t *Task) forQueue(q *Queue) *Task {
	if t.legacy == nil || !q.legacy {
		return t
	}
	c := *t
	c.msg.Payload, c.msg.Py, c.legacy = t.legacy.payload, t.legacy.py, nil
	return &c
}

// checkLegacy returns an error if the message of a Python task on a legacy queue cannot carry what is asked for.
func (t *Task) checkLegacy(o *callOptions, more *wire.Extra, h *redisstore.Hold) error {
	var lacks string
	switch {
	case o.id != nil:
		lacks = "carries no id, so TaskID cannot hold"
	case more != nil || h != nil:
		lacks = "has no options but In, At, MaxRetry and Front"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: a Python task of a legacy queue %s; open the queue on a handle without WithLegacy if "+
		"no worker of keakon's package serves it", ErrArguments, t.msg.Path, lacks)
}

// settleLife is how long a producer relies on the form that Redis has confirmed: once the queue is empty, another
// program may settle the other form.
const settleLife = time.Second

var clockStart = time.Now()

// clock is a monotonic time, never 0.
func clock() int64 { return int64(time.Since(clockStart)) + 1 }

// settleForm makes sure that the queue's Python tasks have the form that q was opened for.
func (q *Queue) settleForm(ctx context.Context) error {
	now := clock()
	if at := q.settled.Load(); at > 0 && now-at < int64(settleLife) {
		return nil
	}
	want := redisstore.ExtendedForm
	if q.legacy {
		want = redisstore.PlainForm
	}
	form, err := q.store.SettleMode(ctx, want)
	if err == nil && form != want {
		var none bool
		if none, err = q.store.HoldsNone(ctx); none {
			form, err = q.store.Reform(ctx, form, want)
		}
	}
	switch {
	case err != nil:
		return err
	case form != want:
		handle := "of WithLegacy"
		if q.legacy {
			handle = "without WithLegacy"
		}
		return fmt.Errorf("delayed: queue %q may hold %s Python tasks, but was opened for %s ones: open it on a "+
			"handle %s, or wait until it holds no task, archived ones and periodic entries included",
			q.name, form, want, handle)
	}
	q.settled.Store(now)
	return nil
}
