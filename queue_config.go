package delayed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/wire"
)

// QueueConfig says how a queue is opened. All programs that enqueue tasks on one queue should open it in the same way;
// see Legacy.
type QueueConfig struct {
	// Name of the queue: up to 128 printable bytes, without spaces. In a Redis Cluster it may carry a {tag}.
	Name string
	// Legacy says that legacy workers share the queue. Set it in every program that enqueues tasks there,
	// SchedulerConfig.Legacy included, and set WorkerConfig.Legacy in its workers. Tasks without options, and all
	// Python tasks, are then sent as plain messages. A Python task with other options than In, At, MaxRetry and Front
	// is refused, so is one with a map whose keys are not strings, and so is a handle with a key prefix.
	//
	// With the first Python task, Redis records whether the queue is a plain one, whose Python tasks are plain
	// messages. From then on, a program that opened the queue in the other way gets an error for Python tasks, until
	// the queue holds no task at all and no periodic entry. For Go tasks nothing checks that programs agree.
	//
	// On a legacy queue, structs among the arguments of Go functions travel by position. Do not change their fields:
	// two fields that change places swap their values. Defaults to false.
	Legacy bool
	// Inject returns headers for a task from the context that it is enqueued with, such as a trace context; see Header.
	// DelayContext, DelayMany and Enqueue call it in the goroutine of their caller, DelayMany once for all tasks.
	// Headers that Header sets take precedence. Python tasks of a legacy queue cannot carry headers and go without.
	// Defaults to none.
	Inject func(ctx context.Context) map[string]string
	// Around surrounds each call of Delay, DelayContext, DelayMany and Enqueue on the queue, for a span or a
	// measurement for example: it must call enqueue once, with ctx or a context made of it, before it returns. enqueue
	// calls Inject with that context, sends the tasks to Redis, and returns what the caller gets. Around runs in the
	// goroutine of the caller, so several may run at a time. The tasks have no ids yet. Tasks that fail before, because
	// of their arguments for example, do not come to it, nor do those of periodic entries. Defaults to none.
	Around func(ctx context.Context, tasks []*Task, enqueue func(context.Context) ([]*Ref, error))
	// WaitReplicas is the number of replicas that must confirm a task before the call that enqueues it succeeds: what a
	// master has accepted and not yet sent to a replica is lost in a fail-over. If fewer confirm it within 4 s, or four
	// fifths of the time that the call has if that is less, the call fails with ErrUnknown: the task is enqueued, and
	// may be lost. While replicas are missing, calls on one queue also wait for those before them, for as long as their
	// contexts allow. Replicas confirm what they have in memory. Defaults to 0: the master's word is enough.
	WaitReplicas int
	// Check compares each call with the functions that workers of the queue have published, before it is enqueued: the
	// path, and the number, types and ranges of the arguments. A call that no worker takes fails at once, and nothing
	// is enqueued. The error wraps ErrFunction and names the function that was probably meant, or is an *ArgumentError.
	// While versions of a function run beside each other, as during a deploy, a call must fit one of them.
	//
	// It is for programs that do not link the functions (NewGoTask, NewPyTask), and also finds that no worker has
	// registered a function of Delay, or only another version of it. So new workers must start before the programs that
	// call what is new. Enqueued without a comparison are calls while no worker of the function's language runs, or
	// while one publishes nothing or, because its list would be longer than 64 KiB, only a part; and arguments of
	// Python functions without annotations. Tasks of periodic entries, of RunAgain and of package inspect are not
	// compared.
	//
	// What workers have published is read once in ten seconds for all queues of the handle that have the same name, and
	// again before a call is refused; other calls cost no round trip. The list may be ten seconds old, and a function
	// that a running worker has registered later is found within a second. If it cannot be read, calls fail. Defaults
	// to false.
	Check bool
}

// compare returns an error if no worker of the queue would take the call, as QueueConfig.Check says.
func (q *Queue) compare(ctx context.Context, t *Task) error {
	if q.signatures == nil {
		return nil
	}
	c := *t // which goes to the heap; t need not
	args, kwargs, err := c.Args()
	if err != nil {
		return err
	}
	_, _, list := wire.ArrayHeader(c.msg.Payload)
	// Without the number of arguments, only the function tells whether a list is one argument or all of them.
	counted := c.msg.Python() || c.msg.Meta.HasN || c.function() != nil || !list
	return q.signatures.Check(ctx, func(p catalog.Published) error {
		if err := p.Check(c.msg.Path, args, kwargs, counted); err != nil {
			return misfit(c.msg.Path, err)
		}
		return nil
	})
}

// misfit turns the error about a call that no worker takes into an exported one.
func misfit(path string, err error) error {
	var wrong *catalog.MisfitError
	if errors.As(err, &wrong) {
		want := wrong.Want
		if wrong.Index >= 0 {
			want += ", as in " + wrong.Function
		}
		return &ArgumentError{Func: path, Index: wrong.Index, Want: wire.OneLine(want), Got: wire.OneLine(wrong.Got)}
	}
	return fmt.Errorf("%w: %s: %s", ErrFunction, path, wire.OneLine(err.Error()))
}

// compareAll is compare for several tasks.
func (q *Queue) compareAll(ctx context.Context, tasks []*Task) error {
	if q.signatures == nil {
		return nil
	}
	for i, t := range tasks {
		err := t.check()
		if err == nil {
			err = q.compare(ctx, t)
		}
		if err != nil {
			return fmt.Errorf("task %d: %w", i+1, err)
		}
	}
	return nil
}

// injected returns q with the headers that its Inject finds in ctx. Those of Header take precedence.
func (q *Queue) injected(ctx context.Context) (*Queue, error) {
	if q.inject == nil {
		return q, nil
	}
	found := q.inject(ctx)
	if len(found) == 0 {
		return q, nil
	}
	c := *q
	c.options.injected = make(map[string]string, len(found)+len(q.options.headers))
	maps.Copy(c.options.injected, found) // Inject may use its map again
	maps.Copy(c.options.injected, q.options.headers)
	if err := checkHeaders(c.options.injected, "QueueConfig.Inject"); err != nil {
		return nil, err
	}
	return &c, nil
}

var (
	errNotEnqueued = errors.New("delayed: QueueConfig.Around did not enqueue: expected that it calls the function " +
		"that it is given once")
	errEnqueuedTwice = errors.New("delayed: QueueConfig.Around enqueues a second time: expected one call of the " +
		"function that it is given")
)

// within calls enqueue within QueueConfig.Around.
func (q *Queue) within(
	ctx context.Context, tasks []*Task, enqueue func(context.Context) ([]*Ref, error),
) (refs []*Ref, err error) {
	err = errNotEnqueued
	called := false
	q.around(ctx, tasks, func(ctx context.Context) ([]*Ref, error) {
		if called {
			return nil, errEnqueuedTwice
		}
		called = true
		if err = checkContext(ctx); err == nil {
			refs, err = enqueue(ctx)
		}
		return slices.Clone(refs), err
	})
	return refs, err
}

// oneWithin is enqueue with QueueConfig.Around. The task that Around gets has memory of its own, because d is used
// again.
func (q *Queue) oneWithin(ctx context.Context, t *Task, d *draft) (*Ref, error) {
	c := *t
	c.msg.Payload = bytes.Clone(t.msg.Payload)
	d.free()
	refs, err := q.within(ctx, []*Task{&c}, func(ctx context.Context) ([]*Ref, error) {
		ref, err := q.enqueueOne(ctx, &c, newDraft())
		if err != nil {
			return nil, err
		}
		return []*Ref{ref}, nil
	})
	if err != nil {
		return nil, err
	}
	return refs[0], nil
}

// manyWithin is delayMany with QueueConfig.Around.
func (q *Queue) manyWithin(ctx context.Context, tasks []*Task) ([]*Ref, error) {
	tasks = slices.Clone(tasks) // the caller's own may change when Around keeps them
	for _, t := range tasks {
		if err := t.check(); err != nil {
			return q.delayMany(ctx, tasks) // says which of them
		}
	}
	refs, err := q.within(ctx, tasks, func(ctx context.Context) ([]*Ref, error) { return q.delayMany(ctx, tasks) })
	var batch *BatchError
	if err != nil && !errors.As(err, &batch) {
		err = &BatchError{Err: err}
	}
	return refs, err
}
