package delayed

import (
	"maps"
	"time"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/wire"
)

// claimedTask is a task that a worker has claimed, or that its sweeper has found with a dead worker.
type claimedTask struct {
	task   Task
	claim  *engine.Claim // nil: this worker has not claimed it
	swept  string        // the queue that it was found on, if this worker has not claimed it
	result any           // of the function, once middleware has called it
}

// taskOf returns the task of a claim whose message was decoded.
func taskOf(c *engine.Claim) *Task {
	r := &claimedTask{claim: c}
	r.task.msg, r.task.claimed = *c.Message(), r
	return &r.task
}

// sweptTask returns the task of a message that the sweeper has found with a dead worker.
func sweptTask(queue string, msg *wire.Message) *Task {
	r := &claimedTask{swept: queue}
	r.task.msg, r.task.claimed = *msg, r
	return &r.task
}

// fn returns the function of the task, nil if it is unknown here or this worker has not claimed the task.
func (r *claimedTask) fn() *function.Function {
	if r.claim == nil {
		return nil
	}
	return r.claim.Function()
}

// meta returns the metadata in the message of a claimed task; nothing for tasks that are to be enqueued.
func (t *Task) meta() wire.Meta {
	if t.mustExist().claimed == nil {
		return wire.Meta{}
	}
	return t.msg.Meta
}

// ID returns the id of a claimed task: random, or what TaskID said. It is "" for a task that is to be enqueued, which
// gets its id then, and for messages that carry none: those of a legacy queue, and of other packages.
func (t *Task) ID() string { return t.meta().ID }

// IdempotencyKey returns a key for requests to other systems that must not be carried out twice. It is the task's id:
// the same however often the task is tried again, and when it runs twice because its worker was believed dead; "" if
// the task has no id.
func (t *Task) IdempotencyKey() string { return t.ID() }

// Queue returns the name of the queue of a claimed task, "" for a task that is to be enqueued.
func (t *Task) Queue() string {
	if t.mustExist().claimed == nil {
		return ""
	}
	if t.claimed.claim == nil {
		return t.claimed.swept
	}
	return t.claimed.claim.Queue()
}

// Attempt returns which attempt of a claimed task this is: 1 for the first, one more after each failure. Runs that
// ended by a worker's death or stop, by Snooze, or by an error that WorkerConfig.IsFailure does not count are left out.
// RunAgain begins at 1 again. 0 for a task that is to be enqueued.
func (t *Task) Attempt() int {
	if t.mustExist().claimed == nil {
		return 0
	}
	return t.msg.Meta.Retried + 1
}

// MaxRetry returns how often a claimed task is tried again before it is archived: at Attempt() > MaxRetry() a failure
// is final. Of a task that this worker has not claimed, such as that of a TaskInfo, it is what the message says. 0 may
// then also mean that the message says nothing.
func (t *Task) MaxRetry() int {
	if t.mustExist().claimed == nil || t.claimed.fn() == nil {
		return t.meta().MaxRetry
	}
	return t.claimed.claim.MaxRetry()
}

// Deaths returns how many workers have died that held the claimed task, whether or not they held others. Not counted
// are a worker that was stopping in good order, and one that was running another task and nothing else. A death more
// than 72 hours after the last one is counted as the first again. Toward the archive only those deaths count whose
// worker had no other task in hand: after three of them the task is archived, with the reason "deaths".
func (t *Task) Deaths() int { return t.meta().Deaths }

// EnqueuedAt returns when a claimed task was enqueued, by its producer's clock and in milliseconds; the zero time if
// that is unknown.
func (t *Task) EnqueuedAt() time.Time {
	ms := t.meta().EnqueuedAt
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Header returns the value of a header of a claimed task, "" if it has none of this key.
func (t *Task) Header(key string) string {
	x := t.meta().Extra
	if x == nil {
		return ""
	}
	return x.Headers[key]
}

// Headers returns all headers of a claimed task in a map of the caller's own, nil if there are none.
func (t *Task) Headers() map[string]string {
	x := t.meta().Extra
	if x == nil {
		return nil
	}
	return maps.Clone(x.Headers)
}
