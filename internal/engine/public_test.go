package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// The following stands for the public package, which these tests cannot import: the same names, with only as much
// behind them as the tests need.

// Source makes connections.
type Source = redisstore.Source

// Function is a function that tasks can name.
type Function = function.Function

// Redis is a handle on Redis.
type Redis struct {
	calls, loops redisstore.Source // of producers, and of workers
	signals      *redisstore.Signals
}

func FromSource(src redisstore.Source) *Redis {
	return &Redis{calls: src, loops: src, signals: redisstore.NewSignals(src)}
}

func (r *Redis) Close() error {
	r.signals.Close()
	return errors.Join(r.calls.Close(), r.loops.Close())
}

// WorkerConfig configures a worker. Where it differs from Config, its fields mean the same as in the public package.
type WorkerConfig struct {
	Config
	Queues   interface{ plan() fetch.Order }
	Prefetch int // 0: as many as the handlers' durations allow; negative: none
	Logger   logrus.FieldLogger
}

// NewWorker returns a worker without middleware that does not check the settings of Redis.
func NewWorker(rdb *Redis, cfg WorkerConfig) (*Worker, error) {
	e := cfg.Config
	e.Source, e.Where, e.Signals, e.Log = rdb.loops, "test", rdb.signals, loop.NewJournal(cfg.Logger)
	e.Queues = cfg.Queues.plan()
	switch {
	case cfg.Prefetch == 0 && cfg.Rest == 0:
		e.Prefetch = -1
	default:
		e.Prefetch = max(cfg.Prefetch, 0)
	}
	e.Grace = max(e.Grace, 0)
	if e.MaxStuck == 0 {
		e.MaxStuck = max(1, e.Concurrency/10)
	}
	e.Settings = func(context.Context, []redisstore.Server) ([]string, error, error) { return nil, nil, nil }
	e.Program = program{}
	return New(e), nil
}

// program has no middleware.
type program struct{}

func (program) Prepare() error { return nil }

func (program) Call(ctx context.Context, c *lane.Claim) (any, error) {
	return c.Function().Call(ctx, c.Message())
}

func (program) Wrapped(*lane.Claim) bool { return false }

func (program) Misfit(err error) (path string, ok bool) {
	wrong := &function.ArgumentError{}
	ok = errors.As(err, &wrong)
	return wrong.Func, ok
}

// Strict serves queues by priority.
type Strict []string

func (s Strict) plan() fetch.Order { return fetch.Order{Names: s} }

// Weighted serves queues at random, in proportion to their weights.
type Weighted map[string]int

func (w Weighted) plan() fetch.Order {
	p := fetch.Order{Names: slices.Sorted(maps.Keys(w))}
	for _, name := range p.Names {
		p.Weights = append(p.Weights, w[name])
		p.Total += w[name]
	}
	p.Configured = slices.Clone(p.Weights)
	return p
}

// FuncOption says how workers treat the tasks of a function.
type FuncOption func(*function.Policy)

func MaxRetry(n int) FuncOption { return func(p *function.Policy) { p.MaxRetry = &n } }

func Timeout(d time.Duration) FuncOption { return func(p *function.Policy) { p.Timeout = d } }

// fn gives a function literal a name that no other test uses.
func (b *bench) fn(name string, f any, opts ...FuncOption) *Function {
	b.T.Helper()
	return newFunction(b.T, b.Name+"."+name, f, opts...)
}

func newFunction(t testing.TB, path string, f any, opts ...FuncOption) *Function {
	t.Helper()
	spec := function.Spec{Name: path, Named: true}
	for _, o := range opts {
		o(&spec.Policy)
	}
	made, err := function.New(f, spec)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Task is a call that is to run later.
type Task struct {
	msg wire.Message
	err error
}

func Call(fn *Function, args ...any) *Task {
	t := &Task{msg: wire.Message{Kind: wire.GoPlain, Path: fn.Path()}}
	t.msg.Payload, _, t.err = fn.AppendPayload(wire.ByName, nil, args, func(any) string { return "" })
	return t
}

// envelope returns the message of t with an id.
func (t *Task) envelope() (redisstore.Envelope, error) {
	msg := t.msg
	msg.Extend()
	msg.Meta.EnqueuedAt = time.Now().UnixMilli()
	if msg.Meta.ID == "" {
		msg.Meta.ID = wire.NewTaskID()
	}
	return redisstore.Envelope{ID: msg.Meta.ID, Message: msg.Append(nil)}, t.err
}

// Queue is the producer's end of a queue.
type Queue struct{ store *redisstore.Store }

func NewQueue(name string, rdb *Redis) *Queue {
	return &Queue{redisstore.NewStore(rdb.calls, "", name)}
}

func (q *Queue) Name() string { return q.store.Name }

func (q *Queue) Len(ctx context.Context) (int, error) { return q.store.Length(ctx) }

func (q *Queue) DelayContext(ctx context.Context, fn *Function, args ...any) (*Ref, error) {
	return q.Enqueue(ctx, Call(fn, args...))
}

func (q *Queue) Enqueue(ctx context.Context, t *Task) (*Ref, error) {
	refs, err := q.DelayMany(ctx, t)
	if err != nil {
		return nil, err
	}
	return refs[0], nil
}

func (q *Queue) DelayMany(ctx context.Context, tasks ...*Task) ([]*Ref, error) {
	var refs []*Ref
	for batch := range slices.Chunk(tasks, redisstore.MaxBatchTasks) {
		var envelopes []redisstore.Envelope
		for _, t := range batch {
			e, err := t.envelope()
			if err != nil {
				return nil, err
			}
			envelopes, refs = append(envelopes, e), append(refs, &Ref{q, e.ID})
		}
		if err := q.store.Enqueue(ctx, envelopes); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

func (q *Queue) Pause(ctx context.Context) error {
	return q.order(ctx, redisstore.ControlPaused, redisstore.ValueNow)
}

func (q *Queue) Resume(ctx context.Context) error { return q.order(ctx, redisstore.ControlPaused, "") }

func (q *Queue) SetWeight(ctx context.Context, weight int) error {
	return q.order(ctx, redisstore.ControlWeight, strconv.Itoa(weight))
}

func (q *Queue) Restart(ctx context.Context) error {
	return q.order(ctx, redisstore.ControlRestart, redisstore.ValueNow)
}

// Worker returns the control of one worker that serves the queue.
func (q *Queue) Worker(id string) *WorkerControl { return &WorkerControl{q, id} }

func (q *Queue) order(ctx context.Context, field, value string) error {
	_, err := q.store.SetControl(ctx, field, value)
	return err
}

// WorkerControl controls one worker from anywhere.
type WorkerControl struct {
	q  *Queue
	id string
}

func (c *WorkerControl) Pause(ctx context.Context) error {
	return c.q.order(ctx, redisstore.ControlWorker+c.id, OrderPause)
}

func (c *WorkerControl) Resume(ctx context.Context) error {
	return c.q.order(ctx, redisstore.ControlWorker+c.id, "")
}

func (c *WorkerControl) Stop(ctx context.Context) error {
	return c.q.order(ctx, redisstore.ControlWorker+c.id, OrderStop)
}

// Ref is a reference to a task.
type Ref struct {
	q  *Queue
	id string
}

func (r *Ref) ID() string { return r.id }

func (r *Ref) Cancel(ctx context.Context) error {
	s := r.q.store
	for {
		found, err := s.Look(ctx, r.id, true)
		if err != nil {
			return err
		}
		s.RedisTime(found.Now)
		if became, err := s.Cancel(ctx, r.id, "", found.Message.Exists(), 0, nil); err != nil ||
			became != redisstore.CancelAgain {
			return err
		}
	}
}
