package delayed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// Queue is the producer's end of a queue: it makes calls of functions into tasks in Redis. It is safe for concurrent
// use and holds no connection. Opening one is cheap; those of one handle that have the same name share round trips.
type Queue struct {
	store     *redisstore.Store
	coalescer *redisstore.Coalescer
	signals   *redisstore.Signals
	name      string
	legacy    bool
	inject    func(context.Context) map[string]string
	around    func(context.Context, []*Task, func(context.Context) ([]*Ref, error))
	options   callOptions
	optErr    error
	// settled is when Redis last confirmed the form of Python tasks, by clock; shared with the copies that With makes
	settled  *atomic.Int64
	listener seam.Listener // in tests; nil for nobody
	registry *redisstore.Registry
	// announced is when the queue was last made known to inspectors, in s; shared with the copies that With makes
	announced *atomic.Int64
	// signatures are what calls are compared with; nil: calls are not compared
	signatures *redisstore.Signatures
}

// Delay enqueues a call of fn with args, which a worker runs as soon as one is free. It returns once Redis has the
// task.
//
// fn is a function of a package, a method expression or what Func returned. The arguments must be assignable to its
// parameters, or be integers that fit. A leading context.Context is left out, because the worker provides it, and so is
// the receiver of a method expression, which the worker has: q.Delay((*Mailer).Send, 42). Errors wrap ErrFunction,
// ErrArguments, ErrDuplicate, ErrFull, ErrUnknown, or are those of dialling Redis.
//
// Delay gives up when connecting to Redis fails or takes longer than 5 s, or than the dial_timeout of the URL: nothing
// was enqueued then. It also gives up when Redis does not answer within 5 s after the task was sent: then the error
// wraps ErrUnknown. Before that it may wait for a free connection of the handle, without limit. DelayContext bounds all
// of this as you like. The same limits apply to each request of all other methods, even if their context allows more;
// Ref.Wait and Await go on until their context ends.
//
// Goroutines that call it at the same time share round trips, so that many are faster than one; for one goroutine with
// many tasks there is DelayMany. Tasks of one goroutine keep their order.
func (q *Queue) Delay(fn any, args ...any) (*Ref, error) {
	return q.DelayContext(context.Background(), fn, args...)
}

// DelayContext is Delay with a context that bounds the wait for Redis. The context is not passed on to the function. If
// it ends before the task is sent, nothing was enqueued and the error wraps the context's; if it ends while Redis is
// asked, the error wraps ErrUnknown as well, and tasks of others that went with it are not affected.
func (q *Queue) DelayContext(ctx context.Context, fn any, args ...any) (*Ref, error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	f, err := functionOf(fn)
	if err != nil {
		return nil, err
	}
	d := newDraft()
	form := wire.ByName
	if q.legacy {
		form = wire.ByPosition
	}
	payload, _, err := f.AppendPayload(form, d.payload[:0], args, noArgument)
	if err != nil {
		return nil, public(err)
	}
	if payload != nil {
		d.payload = payload
	}
	own := defaultsOf(f)
	t := Task{
		msg: wire.Message{Kind: wire.GoPlain, Path: f.Path(), Payload: payload}, maxRetry: f.Policy.MaxRetry,
		extras: own.extras, locks: own.locks, fn: f,
	}
	return q.enqueue(ctx, &t, d)
}

// Enqueue enqueues a task made by Call, NewGoTask or NewPyTask. Errors are those of Delay.
func (q *Queue) Enqueue(ctx context.Context, t *Task) (*Ref, error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	return q.enqueue(ctx, t, newDraft())
}

// DelayMany enqueues tasks in order, 1,000 or 1 MiB at a time; each such batch is accepted as a whole or not at all. If
// one of the tasks is faulty, none is enqueued. Each error is a *BatchError, which says how many of the first tasks are
// enqueued; the Refs are those of these tasks.
//
// A batch is at most 500 tasks with In, At or Group, where each group after the first counts as four tasks more, and at
// most 100 tasks with Unique, UniqueKey, Debounce, TaskID or Front. TaskID with more than one task is an error, and so
// is Front with more than one batch. If another task holds the lock or has the id of one of the tasks, none of its
// batch is enqueued, and the error names the task and wraps a *DuplicateError. With OnConflict(ConflictSkip) the Ref of
// such a task is that of the other one, which may be an earlier task of the same call.
//
//	refs, err := q.DelayMany(ctx, delayed.Call(mail.Welcome, 1, "en"), delayed.Call(mail.Welcome, 2, "de"))
func (q *Queue) DelayMany(ctx context.Context, tasks ...*Task) ([]*Ref, error) {
	if err := q.ready(ctx); err != nil {
		return nil, batchError(nil, err)
	}
	if q.options.id != nil && len(tasks) > 1 {
		return nil, batchError(nil, fmt.Errorf("%w: TaskID with %d tasks: an id names one task", ErrArguments,
			len(tasks)))
	}
	for i, t := range tasks {
		err := t.check()
		if err == nil {
			err = q.compare(ctx, t)
		}
		if err != nil {
			return nil, batchError(nil, ofTask(i, err))
		}
	}
	if q.around == nil {
		return q.sendMany(ctx, tasks)
	}
	kept := slices.Clone(tasks) // the caller's own may change when Around keeps them
	refs, err := q.within(ctx, kept, func(ctx context.Context) ([]*Ref, error) { return q.sendMany(ctx, kept) })
	return refs, batchError(refs, err)
}

// enqueue enqueues one task; d provides the memory for its message.
func (q *Queue) enqueue(ctx context.Context, t *Task, d *draft) (*Ref, error) {
	if err := q.compare(ctx, t); err != nil {
		return nil, err
	}
	if q.around == nil {
		return q.sendOne(ctx, t, d)
	}
	own := *t // Around may keep it, while d is used again
	own.msg.Payload = bytes.Clone(t.msg.Payload)
	d.free()
	refs, err := q.within(ctx, []*Task{&own}, func(ctx context.Context) ([]*Ref, error) {
		ref, err := q.sendOne(ctx, &own, newDraft())
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

// ready returns an error if q cannot enqueue anything.
func (q *Queue) ready(ctx context.Context) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	return q.optErr
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
	// Without the number of arguments, only the function shows whether a list is one argument or all of them.
	counted := c.msg.Python() || c.msg.Meta.HasN || c.function() != nil || !list
	return q.signatures.Check(ctx, func(p catalog.Published) error {
		if err := p.Check(c.msg.Path, args, kwargs, counted); err != nil {
			return misfit(c.msg.Path, err)
		}
		return nil
	})
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

// sendOne sends a task with the headers that Inject finds.
func (q *Queue) sendOne(ctx context.Context, t *Task, d *draft) (*Ref, error) {
	q, err := q.injected(ctx)
	if err != nil {
		return nil, err
	}
	ref, now := new(Ref), time.Now()
	if err := d.add(q, t, ref, q.stamp(now)); err != nil {
		return nil, err
	}
	if _, err := q.send(ctx, d, []*Ref{ref}, now); err != nil {
		return nil, duplicate(err)
	}
	return ref, nil
}

// sendMany is sendOne for tasks of DelayMany. Errors are *BatchError.
func (q *Queue) sendMany(ctx context.Context, tasks []*Task) ([]*Ref, error) {
	q, err := q.injected(ctx)
	if err != nil {
		return nil, batchError(nil, err)
	}
	d, now := newDraft(), time.Now()
	refs, slab := make([]*Ref, len(tasks)), make([]Ref, len(tasks))
	for i, t := range tasks {
		refs[i] = &slab[i]
		if err := d.add(q, t, refs[i], q.stamp(now)); err != nil {
			return nil, batchError(nil, ofTask(i, err))
		}
	}
	sent, err := q.send(ctx, d, refs, now)
	if err == nil {
		return refs, nil
	}
	if refused := (*redisstore.EnlistError)(nil); errors.As(err, &refused) {
		err = ofTask(sent+refused.Index, duplicate(err))
	}
	return refs[:sent], batchError(refs[:sent], duplicate(err))
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

// draft is the messages of a call of Delay or DelayMany, in memory that is used again.
type draft struct {
	payload, message []byte
	tasks            []redisstore.Envelope // parts of message
	members          []group.Member        // the tasks, if they join groups at once
	held             bool                  // one of them holds an id or a lock
	python           bool                  // one of them is a Python task
}

var drafts = sync.Pool{New: func() any { return new(draft) }}

func newDraft() *draft {
	return drafts.Get().(*draft) //nolint:errcheck // it holds nothing else
}

// free makes d available again when nothing refers to it any more, unless it has grown large.
func (d *draft) free() {
	const most = 256 << 10
	if cap(d.message) > most || cap(d.payload) > most {
		return
	}
	clear(d.tasks)
	clear(d.members)
	*d = draft{payload: d.payload[:0], message: d.message[:0], tasks: d.tasks[:0], members: d.members[:0]}
	drafts.Put(d)
}

// add writes the message of a task for a queue at a time, in ms since 1970, and gives ref its id.
func (d *draft) add(q *Queue, t *Task, ref *Ref, nowMs int64) error {
	ref.queue = q
	t = t.forQueue(q)
	hold, err := t.holdOf(&q.options)
	if err != nil {
		return err
	}
	start := len(d.message)
	if d.message, err = t.appendMessage(d.message, q, nowMs, ref, hold); err != nil {
		return err
	}
	message := d.message[start:]
	d.tasks = append(d.tasks, redisstore.Envelope{ID: ref.id, Message: message, Hold: hold})
	d.held = d.held || hold != nil
	d.python = d.python || t.msg.Python()
	if q.options.group != nil && !q.options.later {
		var m group.Member
		m, err = group.NewMember(message)
		d.members = append(d.members, m)
	}
	return err
}

// send has Redis take the tasks of d, whose Refs are refs: into their groups, among those that hold ids or locks, until
// they are due, or at the end of the queue. It returns how many of the first ones are enqueued. Where an existing task
// is kept instead, it changes the Ref to that one.
func (q *Queue) send(ctx context.Context, d *draft, refs []*Ref, now time.Time) (sent int, err error) {
	if d.python {
		if err := q.settleForm(ctx); err != nil {
			return 0, err
		}
	}
	o := &q.options
	for sent < len(d.tasks) {
		batch, n := d.tasks[sent:], 0
		switch {
		case len(d.members) > 0:
			n, err = q.coalescer.Gather(ctx, d.members[sent:], now)
		case d.held || o.front:
			batch = fitting(batch, redisstore.MaxEnlisted)
			if n = len(batch); o.front && n < len(d.tasks) {
				return 0, fmt.Errorf("%w: Front with %d tasks: %d go to the front together", ErrArguments,
					len(d.tasks), n)
			}
			var others []string
			others, err = q.coalescer.Enlist(ctx, o.place(), batch, now)
			for i, other := range others {
				if other != "" {
					refs[sent+i].referTo(other)
				}
			}
		case o.later:
			batch = fitting(batch, redisstore.MaxFiled)
			n, err = len(batch), q.coalescer.Schedule(ctx, batch, o.due, o.relative, now)
		default:
			batch = fitting(batch, redisstore.MaxBatchTasks)
			n, err = len(batch), q.coalescer.Enqueue(ctx, batch, now)
		}
		if err != nil {
			return sent, err // d may be in use
		}
		sent += n
	}
	d.free()
	if q.listener != nil {
		q.listener.Enqueued(q.store.String())
	}
	q.announce(ctx, now)
	return sent, nil
}

// fitting returns the first tasks that one script may take: at most n, and MaxCallBytes unless it is one.
func fitting(tasks []redisstore.Envelope, n int) []redisstore.Envelope {
	size := 0
	for i := range tasks {
		size += len(tasks[i].Message)
		if i == n || i > 0 && size > redisstore.MaxCallBytes {
			return tasks[:i]
		}
	}
	return tasks
}

// announce lets inspectors know the queue, at most once in redisstore.AnnounceEvery. One of concurrent callers does it.
// now is the present time; it need not be exact.
func (q *Queue) announce(ctx context.Context, now time.Time) {
	last := q.announced.Load()
	if now.Unix()-last < int64(redisstore.AnnounceEvery/time.Second) || !q.announced.CompareAndSwap(last, now.Unix()) {
		return
	}
	// What the caller wanted is done: that nobody can look for the queue yet is no error of that.
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	again := q.registry.Announce(ctx, q.name, q.legacy)
	q.announced.Store(now.Add(again - redisstore.AnnounceEvery).Unix())
}

// Name returns the queue's name.
func (q *Queue) Name() string {
	must(q.checkMade())
	return q.name
}

// String returns "queue", the key prefix of the handle and the name, for logs: "queue mail", or "queue app:mail" with
// the prefix "app:".
func (q *Queue) String() string {
	if q.checkMade() != nil {
		return "no queue"
	}
	return wire.OneLine("queue " + q.store.String())
}

// GoString is String.
func (q *Queue) GoString() string { return q.String() }

// Len returns the number of pending tasks: those that are enqueued and not claimed by a worker. Scheduled, retrying and
// parked tasks do not count.
func (q *Queue) Len(ctx context.Context) (int, error) {
	if err := q.check(ctx); err != nil {
		return 0, err
	}
	return q.store.Length(ctx)
}

// checkMade returns an error if q was not made by a constructor.
func (q *Queue) checkMade() error {
	if q == nil || q.store == nil {
		return errNoQueue
	}
	return nil
}

// check returns an error if Redis cannot be asked: q was not made by a constructor, or there is no context.
func (q *Queue) check(ctx context.Context) error {
	if err := q.checkMade(); err != nil {
		return err
	}
	return checkContext(ctx)
}

// stamp returns the time for messages that are made now, in ms since 1970.
func (q *Queue) stamp(now time.Time) int64 {
	if q.listener != nil {
		now = q.listener.Now()
	}
	return now.UnixMilli()
}
