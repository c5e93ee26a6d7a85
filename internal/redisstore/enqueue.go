package redisstore

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// MaxBatchTasks bounds the tasks that one script enqueues, so that it never blocks Redis for long.
	MaxBatchTasks = 1000
	// MaxFiled bounds those that one script files until they are due, or gathers: each takes Redis several times as
	// long.
	MaxFiled = 500
	// MaxCallBytes bounds the messages that one call takes, moves or reads, unless the first of them alone is larger. A
	// megabyte keeps Redis busy for 2 to 5 ms, whatever the messages' number.
	MaxCallBytes = 1 << 20
)

// Envelope is a message with the id under which Redis files it unless it is pending.
type Envelope struct {
	ID      string
	Message []byte
	Hold    *Hold // nil: the task holds neither id nor lock; for Enlist only
}

// scriptArgs are the arguments of one call of a script, as redigo takes them.
type scriptArgs struct{ list []any }

var argsPool = sync.Pool{New: func() any { return new(scriptArgs) }}

// newArgs returns arguments that begin with head.
func newArgs(head []any) *scriptArgs {
	a := argsPool.Get().(*scriptArgs) //nolint:errcheck // it holds nothing else
	a.list = append(a.list[:0], head...)
	return a
}

// free makes the memory of the arguments available again. After an error it leaves them alone: the call may still use
// them.
func (a *scriptArgs) free(err error) {
	if err == nil {
		clear(a.list)
		argsPool.Put(a)
	}
}

// enqueueHead returns the arguments of the script enqueue that come before the messages.
func (s *Store) enqueueHead() []any {
	return []any{Scripts["enqueue"].Sha, 2, s.keys.list, s.keys.noti}
}

// Enqueue makes up to MaxBatchTasks messages pending, all or none.
func (s *Store) Enqueue(ctx context.Context, batch []Envelope) error {
	args := newArgs(s.enqueueHead())
	for i := range batch {
		args.list = append(args.list, batch[i].Message)
	}
	_, err := s.accept(ctx, byEnqueue, args, len(batch))
	return err
}

// enqueuer is a connection for one call of a script that enqueues.
type enqueuer struct {
	conn    redis.Conn
	bounded *BoundedSource // its place is to be released; nil: none
	wait    int            // replicas that must have the tasks
}

// open waits for a connection. Nothing is sent yet.
func (s *Store) open(ctx context.Context) (e enqueuer, err error) {
	e.wait = s.Wait
	if bounded, ok := s.Src.(*BoundedSource); ok {
		if err := bounded.acquire(ctx); err != nil {
			return e, err
		}
		e.bounded = bounded
	}
	if e.conn, err = Connect(ctx, s.Src, s.keys.list); err != nil {
		e.releasePlace()
		return e, ConnError(err)
	}
	return e, nil
}

// send makes a call for n tasks and gives the connection back. It returns the answers to the tasks, if the script has
// some. within is how long to wait for replicas.
func (e enqueuer) send(
	ctx context.Context, k kind, args []any, n int, within time.Duration,
) (answers []any, err error) {
	defer e.close()
	var reply any
	if e.wait > 0 {
		reply, err = kinds[k].script.sendWaiting(ctx, e.conn, within, e.wait, args)
	} else {
		reply, err = kinds[k].script.send(ctx, e.conn, CallTimeout, args)
	}
	if err != nil || kinds[k].answers == nil {
		return nil, err
	}
	return kinds[k].answers(reply, n)
}

func (e enqueuer) close() {
	e.conn.Close()
	e.releasePlace()
}

func (e enqueuer) releasePlace() {
	if e.bounded != nil {
		e.bounded.release()
	}
}

// scheduleHead returns the arguments of the script schedule that come before the tasks.
func (s *Store) scheduleHead() []any {
	return Scripts["schedule"].evalshaArgs([]string{s.keys.scheduled, s.keys.tasks, s.keys.wake}, nil)
}

// dueArg returns when a task is due, in ms, as scripts take it.
func dueArg(due int64, relative bool) string {
	if relative {
		return "+" + strconv.FormatInt(due, 10)
	}
	return strconv.FormatInt(due, 10)
}

// Schedule files up to MaxFiled messages until they are due, all or none. due is in ms, from now if relative, else
// since 1970.
func (s *Store) Schedule(ctx context.Context, batch []Envelope, due int64, relative bool) error {
	args := newArgs(s.scheduleHead())
	at := any(dueArg(due, relative))
	for i := range batch {
		args.list = append(args.list, at, batch[i].ID, batch[i].Message)
	}
	_, err := s.accept(ctx, bySchedule, args, len(batch))
	if taken, ok := err.(*TakenError); ok { //nolint:errorlint // bare, from scheduleAnswers
		return &TakenError{ID: batch[taken.place].ID}
	}
	return err
}

// accept makes a call for n tasks, and returns the answers to them, if the script has some.
func (s *Store) accept(ctx context.Context, k kind, args *scriptArgs, n int) ([]any, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx, k)
	}
	conn, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	answers, err := conn.send(ctx, k, args.list, n, waitOf(ctx))
	args.free(err)
	return answers, err
}
