package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// MaxBatchTasks bounds the tasks that one script enqueues, so that it never blocks Redis for long.
	MaxBatchTasks = 1000
	// MaxBatchBytes bounds their messages.
	MaxBatchBytes = 8 << 20
)

// Envelope is a message with the id under which Redis files it unless it is pending.
type Envelope struct {
	ID      string
	Message []byte
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
	return []any{ScriptEnqueue.Sha, ScriptEnqueue.keys, s.keys.list, s.keys.noti}
}

// Enqueue makes up to MaxBatchTasks messages pending, all or none.
func (s *Store) Enqueue(ctx context.Context, batch []Envelope) error {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	conn, err := s.open(ctx)
	if err != nil {
		return err
	}
	args := newArgs(s.enqueueHead())
	for i := range batch {
		args.list = append(args.list, batch[i].Message)
	}
	err = conn.enqueue(ctx, args.list, waitOf(ctx))
	args.free(err)
	return err
}

// enqueuer is a connection for one call of the script enqueue.
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

// enqueue sends the script with its arguments and gives the connection back. within is how long to wait for replicas.
func (e enqueuer) enqueue(ctx context.Context, args []any, within time.Duration) error {
	defer e.close()
	if e.wait > 0 {
		_, err := ScriptEnqueue.sendWaiting(ctx, e.conn, within, e.wait, args)
		return err
	}
	_, err := ScriptEnqueue.send(ctx, e.conn, CallTimeout, args)
	return err
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

// Schedule files up to MaxBatchTasks messages until they are due, all or none. due is in ms, from now if relative, else
// since 1970.
func (s *Store) Schedule(ctx context.Context, batch []Envelope, due int64, relative bool) error {
	args := make([]any, 0, 2+2*len(batch))
	how := "at"
	if relative {
		how = "in"
	}
	args = append(args, how, due)
	for i := range batch {
		args = append(args, batch[i].ID, batch[i].Message)
	}
	reply, err := s.accept(ctx, scriptSchedule, []string{s.keys.scheduled, s.keys.tasks, s.keys.wake}, args...)
	answer, err := ints(reply, err, 2)
	if err != nil {
		return err
	}
	if answer[0] == 0 {
		if i := answer[1]; i >= 0 && i < int64(len(batch)) {
			return &TakenError{batch[i].ID}
		}
		return fmt.Errorf("%w: position %d of %d", ErrReply, answer[1], len(batch))
	}
	return nil
}
