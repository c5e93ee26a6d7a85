package delayed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// maxBatchTasks and maxBatchBytes bound what one script enqueues, so that it never blocks Redis for long.
	maxBatchTasks = 1000
	maxBatchBytes = 8 << 20
)

// envelope is a message with the id it is filed under where it is not pending.
type envelope struct {
	id      string
	message []byte
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

// free takes arguments back that the call has no use for any more. After an error nobody knows that.
func (a *scriptArgs) free(err error) {
	if err == nil {
		clear(a.list)
		argsPool.Put(a)
	}
}

// enqueueHead is what the arguments of the script enqueue begin with. The messages follow.
func (s *store) enqueueHead() []any {
	return []any{scriptEnqueue.sha, scriptEnqueue.keys, s.keys.list, s.keys.noti}
}

// enqueue makes up to maxBatchTasks messages pending, all or none.
func (s *store) enqueue(ctx context.Context, batch []envelope) error {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	conn, err := s.open(ctx)
	if err != nil {
		return err
	}
	args := newArgs(s.enqueueHead())
	for i := range batch {
		args.list = append(args.list, batch[i].message)
	}
	err = conn.enqueue(ctx, args.list, waitOf(ctx))
	args.free(err)
	return err
}

// enqueuer is a connection for one call of the script enqueue.
type enqueuer struct {
	conn    redis.Conn
	bounded *boundedSource // nil unless a place of it is taken
	wait    int            // replicas that must have it
}

// open waits for a connection. Nothing is sent yet.
func (s *store) open(ctx context.Context) (e enqueuer, err error) {
	e.wait = s.wait
	if bounded, ok := s.src.(*boundedSource); ok {
		if err := bounded.enter(ctx); err != nil {
			return e, err
		}
		e.bounded = bounded
	}
	if e.conn, err = connect(ctx, s.src, s.keys.list); err != nil {
		e.leave()
		return e, connError(err)
	}
	return e, nil
}

// enqueue sends the script with its arguments and gives the connection back. within is how long replicas are waited
// for, if any.
func (e enqueuer) enqueue(ctx context.Context, args []any, within time.Duration) error {
	defer e.close()
	if e.wait > 0 {
		_, err := scriptEnqueue.sendWaiting(ctx, e.conn, within, e.wait, args)
		return err
	}
	_, err := scriptEnqueue.send(ctx, e.conn, callTimeout, args)
	return err
}

func (e enqueuer) close() {
	e.conn.Close()
	e.leave()
}

func (e enqueuer) leave() {
	if e.bounded != nil {
		e.bounded.leave()
	}
}

// schedule files up to maxBatchTasks messages until they are due, all or none. due is in ms, from now if relative, else
// since 1970.
func (s *store) schedule(ctx context.Context, batch []envelope, due int64, relative bool) error {
	args := make([]any, 0, 2+2*len(batch))
	how := "at"
	if relative {
		how = "in"
	}
	args = append(args, how, due)
	for i := range batch {
		args = append(args, batch[i].id, batch[i].message)
	}
	reply, err := s.accept(ctx, scriptSchedule, []string{s.keys.scheduled, s.keys.tasks, s.keys.wake}, args...)
	answer, err := ints(reply, err, 2)
	if err != nil {
		return err
	}
	if answer[0] == 0 {
		if i := answer[1]; i >= 0 && i < int64(len(batch)) {
			return &takenError{batch[i].id}
		}
		return fmt.Errorf("%w: position %d of %d", errReply, answer[1], len(batch))
	}
	return nil
}
