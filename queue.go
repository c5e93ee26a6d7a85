package delayed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

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

// NewQueue returns the queue with the given name. It panics if the name is malformed; OpenQueue returns an error
// instead.
func NewQueue(name string, rdb *Redis) *Queue {
	q, err := OpenQueue(rdb, QueueConfig{Name: name})
	if err != nil {
		panic(err)
	}
	return q
}

// OpenQueue is NewQueue with settings, and returns errors instead of panicking. It does not connect.
func OpenQueue(rdb *Redis, cfg QueueConfig) (*Queue, error) {
	if err := rdb.check(); err != nil {
		return nil, fmt.Errorf("delayed: OpenQueue: %w", err)
	}
	if err := rdb.checkQueue(cfg.Name); err != nil {
		return nil, err
	}
	if cfg.Legacy && rdb.prefix != "" {
		return nil, fmt.Errorf("delayed: a legacy queue cannot have the key prefix %q: legacy workers do not know it",
			rdb.prefix)
	}
	if cfg.WaitReplicas < 0 {
		return nil, fmt.Errorf("delayed: QueueConfig.WaitReplicas is %d: expected the number of replicas that must "+
			"have a task, from 0", cfg.WaitReplicas)
	}
	s := redisstore.NewStore(rdb.calls, rdb.prefix, cfg.Name)
	if listenerOf(s.Src) == nil { // the server of delayedtest has no replicas
		s.Wait = cfg.WaitReplicas
	}
	q := &Queue{
		store: s, coalescer: rdb.coalescers.Of(s), signals: rdb.signals, name: cfg.Name, legacy: cfg.Legacy,
		inject: cfg.Inject, around: cfg.Around,
		settled: new(atomic.Int64), listener: listenerOf(s.Src),
		registry: rdb.registry, announced: new(atomic.Int64),
	}
	if cfg.Check {
		q.signatures = rdb.signatures.Get(rdb.prefix+cfg.Name, func() *redisstore.Signatures {
			return redisstore.NewSignatures(s)
		})
	}
	return q, nil
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

// Ref returns a reference to the task with the given id. It does not ask Redis whether there is one.
func (q *Queue) Ref(id string) *Ref {
	must(q.checkMade())
	return &Ref{queue: q, id: id}
}

// With returns a queue that enqueues all tasks with the given options, in addition to those of q. It is cheap and
// leaves q as it is.
//
//	q.With(delayed.In(time.Hour), delayed.MaxRetry(5)).Delay(mail.Welcome, userID, "en")
func (q *Queue) With(opts ...Option) *Queue {
	must(q.checkMade())
	c := *q
	c.options.given = c.options.given || len(opts) > 0
	for i, o := range opts {
		if o == nil {
			c.optErr = fmt.Errorf("%w: option %d is nil: leave it out", ErrArguments, i+1)
			return &c
		}
		o.forQueueWith(&c.options)
	}
	if c.options.err != nil {
		c.optErr = c.options.err
	}
	if id := c.options.id; id != nil && (*id == "" || len(*id) > wire.MaxTaskID || !utf8.ValidString(*id)) {
		c.optErr = fmt.Errorf("%w: TaskID of %d bytes, expected 1 to %d in UTF-8", ErrArguments, len(*id),
			wire.MaxTaskID)
	}
	if c.optErr == nil && len(c.options.headers) > 0 {
		c.optErr = checkHeaders(c.options.headers, "Header")
	}
	if c.options.front && c.options.later {
		c.optErr = fmt.Errorf("%w: Front with In, At or Debounce: a scheduled task joins the end of its queue when "+
			"it is due", ErrArguments)
	}
	if c.options.timed && c.options.debounce {
		c.optErr = fmt.Errorf("%w: Debounce with In or At: Debounce says when the task runs: leave one of them out",
			ErrArguments)
	}
	return &c
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
	if err := q.check(ctx); err != nil {
		return nil, err
	}
	if q.optErr != nil {
		return nil, q.optErr
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

// DelayMany enqueues tasks in order, 1,000 or 1 MiB at a time; each such batch is accepted as a whole or not at all. If
// one of the tasks is faulty, none is enqueued. Each error is a *BatchError, which says how many of the first tasks are
// enqueued; the Refs are those of these tasks.
//
// A batch is at most 500 tasks with In, At or Group, where each group after the first counts as four tasks more, and at
// most 100 tasks with Unique, UniqueKey, Debounce, TaskID or Front. TaskID with more than one task is an error, and so
// is Front with more than one batch. If another task holds the lock or has the id of one of the tasks, none of its
// batch is enqueued, and the error names the task and wraps a *DuplicateError. With OnConflict(Skip) the Ref of such a
// task is that of the other one, which may be an earlier task of the same call.
//
//	refs, err := q.DelayMany(ctx, delayed.Call(mail.Welcome, 1, "en"), delayed.Call(mail.Welcome, 2, "de"))
func (q *Queue) DelayMany(ctx context.Context, tasks ...*Task) ([]*Ref, error) {
	if err := q.check(ctx); err != nil {
		return nil, &BatchError{Err: err}
	}
	if q.optErr != nil {
		return nil, &BatchError{Err: q.optErr}
	}
	if q.options.id != nil && len(tasks) > 1 {
		return nil, &BatchError{Err: fmt.Errorf("%w: TaskID with %d tasks: an id names one task", ErrArguments,
			len(tasks))}
	}
	if err := q.compareAll(ctx, tasks); err != nil {
		return nil, &BatchError{Err: err}
	}
	if q.around != nil {
		return q.manyWithin(ctx, tasks)
	}
	return q.delayMany(ctx, tasks)
}

// delayMany is DelayMany within QueueConfig.Around.
func (q *Queue) delayMany(ctx context.Context, tasks []*Task) ([]*Ref, error) {
	with, err := q.injected(ctx)
	if err != nil {
		return nil, &BatchError{Err: err}
	}
	d := newDraft()
	refs, slab := make([]*Ref, len(tasks)), make([]Ref, len(tasks))
	now := q.stamp(time.Now())
	python := false
	var holds []*redisstore.Hold // nil: no task holds an id or a lock
	for i, t := range tasks {
		if err := t.check(); err != nil {
			return nil, &BatchError{Err: fmt.Errorf("task %d: %w", i+1, err)}
		}
		t = t.forQueue(q)
		h, err := t.holdOf(&q.options)
		if err != nil {
			return nil, &BatchError{Err: fmt.Errorf("task %d: %w", i+1, err)}
		}
		if h != nil {
			if holds == nil {
				holds = make([]*redisstore.Hold, len(tasks))
			}
			holds[i] = h
		}
		ref := &slab[i]
		ref.queue, refs[i] = q, ref
		start := len(d.message)
		b, err := t.appendMessage(d.message, with, now, ref, h)
		if err != nil {
			return nil, &BatchError{Err: fmt.Errorf("task %d: %w", i+1, err)}
		}
		python = python || t.msg.Python()
		d.message = b
		d.envelopes = append(d.envelopes, redisstore.Envelope{ID: ref.id, Message: b[start:]})
	}
	if python {
		if err := q.settleForm(ctx); err != nil {
			return nil, &BatchError{Err: err}
		}
	}
	most, enlist := redisstore.MaxBatchTasks, holds != nil || q.options.front
	switch {
	case enlist:
		most = redisstore.MaxEnlisted
	case q.options.later:
		most = redisstore.MaxFiled
	}
	sent := 0
	if q.options.group != nil && !q.options.later {
		if sent, err = q.gather(ctx, d.envelopes); err != nil {
			return refs[:sent], &BatchError{Sent: sent, Err: err}
		}
	}
	for sent < len(d.envelopes) {
		n, size := 0, 0
		for _, e := range d.envelopes[sent:] {
			size += len(e.Message)
			if n == most || n > 0 && size > redisstore.MaxCallBytes {
				break
			}
			n++
		}
		if q.options.front && n < len(refs) {
			return nil, &BatchError{Err: fmt.Errorf("%w: Front with %d tasks: %d go to the front together",
				ErrArguments, len(refs), n)}
		}
		var err error
		if enlist {
			err = q.enlist(ctx, d.envelopes, holds, refs, sent, n)
		} else {
			err = q.send(ctx, d.envelopes[sent:sent+n])
		}
		if err != nil {
			return refs[:sent], &BatchError{Sent: sent, Err: err}
		}
		sent += n
	}
	d.free()
	q.accepted(ctx, time.Now())
	return refs, nil
}

// Enqueue enqueues a task made by Call, NewGoTask or NewPyTask. Errors are those of Delay.
func (q *Queue) Enqueue(ctx context.Context, t *Task) (*Ref, error) {
	if err := q.check(ctx); err != nil {
		return nil, err
	}
	if q.optErr != nil {
		return nil, q.optErr
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	return q.enqueue(ctx, t, newDraft())
}

// enqueue enqueues one task; d provides the memory for its message.
func (q *Queue) enqueue(ctx context.Context, t *Task, d *draft) (*Ref, error) {
	if err := q.compare(ctx, t); err != nil {
		return nil, err
	}
	if q.around != nil {
		return q.oneWithin(ctx, t, d)
	}
	return q.enqueueOne(ctx, t, d)
}

// enqueueOne is enqueue within QueueConfig.Around.
func (q *Queue) enqueueOne(ctx context.Context, t *Task, d *draft) (*Ref, error) {
	t = t.forQueue(q)
	now := time.Now()
	ref := &Ref{queue: q}
	with, err := q.injected(ctx)
	if err != nil {
		return nil, err
	}
	h, err := t.holdOf(&q.options)
	if err != nil {
		return nil, err
	}
	if d.message, err = t.appendMessage(d.message, with, q.stamp(now), ref, h); err != nil {
		return nil, err
	}
	if t.msg.Python() {
		if err := q.settleForm(ctx); err != nil {
			return nil, err
		}
	}
	switch o := &q.options; {
	case o.group != nil && !o.later:
		var m group.Member
		if m, err = group.NewMember(d.message); err == nil {
			err = q.coalescer.Gather(ctx, &m, now)
		}
	case h != nil || o.front:
		var other string
		other, err = q.coalescer.Enlist(ctx, o.place(), redisstore.Listing{
			Envelope: redisstore.Envelope{ID: ref.id, Message: d.message},
			Hold:     h,
		}, now)
		if other != "" {
			ref.referTo(other)
		}
	case o.later:
		err = q.coalescer.Schedule(ctx, redisstore.Envelope{ID: ref.id, Message: d.message}, o.due, o.relative, now)
	default:
		err = q.coalescer.Enqueue(ctx, d.message, now)
	}
	if err != nil {
		return nil, duplicate(err) // d may be in use
	}
	d.free()
	q.accepted(ctx, now)
	return ref, nil
}

// draft is reusable memory for messages.
type draft struct {
	payload, message []byte
	envelopes        []redisstore.Envelope // parts of message
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
	clear(d.envelopes)
	d.payload, d.message, d.envelopes = d.payload[:0], d.message[:0], d.envelopes[:0]
	drafts.Put(d)
}

// send enqueues one batch.
func (q *Queue) send(ctx context.Context, batch []redisstore.Envelope) error {
	if o := &q.options; o.later {
		return duplicate(q.store.Schedule(ctx, batch, o.due, o.relative))
	}
	return q.store.Enqueue(ctx, batch)
}

// form returns the form of the queue's Python tasks.
func (q *Queue) form() string {
	if q.legacy {
		return redisstore.PlainForm
	}
	return redisstore.ExtendedForm
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
	form, err := q.store.SettleMode(ctx, q.form())
	if err == nil && form != q.form() {
		var none bool
		if none, err = q.store.HoldsNone(ctx); none {
			form, err = q.store.Reform(ctx, form, q.form())
		}
	}
	if err != nil {
		return err
	}
	if form != q.form() {
		return fmt.Errorf("delayed: queue %q may hold %s Python tasks, but was opened for %s ones: open it with "+
			"QueueConfig{Legacy: %t}, or wait "+
			"until it holds no task, archived ones and periodic entries included", q.name, form, q.form(),
			form == redisstore.PlainForm)
	}
	q.settled.Store(now)
	return nil
}

var errNoQueue = errors.New("delayed: the *Queue is nil or zero: make it with NewQueue or OpenQueue")

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
