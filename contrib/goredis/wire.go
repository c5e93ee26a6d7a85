package goredis

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/godelayed/delayed/internal/clientconn"
)

// wire is a connection of the client's pool.
type wire struct {
	conn *goredis.Conn
	// busy counts the calls under way, one at most, and the one that discards the connection when they are over.
	busy    atomic.Int32
	discard atomic.Bool
}

// noRetry is a command that go-redis never sends a second time. It reads the bytes of the reply only, so that go-redis
// does not act on errors either.
type noRetry struct{ *goredis.RawCmd }

// NoRetry implements redis.Cmder.
func (noRetry) NoRetry() bool { return true }

// failing is an argument that cannot be sent.
type failing struct{ err error }

// MarshalBinary implements encoding.BinaryMarshaler.
func (f failing) MarshalBinary() ([]byte, error) { return nil, f.err }

// Do implements clientconn.Wire.
func (w *wire) Do(ctx context.Context, limit time.Duration, cmds []clientconn.Command) ([]any, error) {
	if ctx.Done() == nil && limit >= replyTimeout {
		return w.exchange(ctx, cmds) // the connection's own time-out ends it
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	type result struct {
		replies []any
		err     error
	}
	done := make(chan result, 1)
	w.busy.Add(1)
	go func() {
		replies, err := w.exchange(context.WithoutCancel(ctx), cmds)
		done <- result{replies, err}
		w.leave() //nolint:contextcheck // the call may be over
	}()
	select {
	case r := <-done:
		return r.replies, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *wire) exchange(ctx context.Context, cmds []clientconn.Command) ([]any, error) {
	sent := make([]goredis.Cmder, len(cmds))
	for i, cmd := range cmds {
		sent[i] = noRetry{goredis.NewRawCmd(ctx, append([]any{cmd.Name}, cmd.Args...)...)}
	}
	var err error
	if len(sent) == 1 {
		err = w.conn.Process(ctx, sent[0])
	} else {
		_, err = w.conn.Pipelined(ctx, func(p goredis.Pipeliner) error { return p.BatchProcess(ctx, sent...) })
	}
	if err != nil {
		return nil, err
	}
	replies := make([]any, len(sent))
	for i, cmd := range sent {
		//nolint:errcheck // sent has no others
		if replies[i], err = clientconn.Parse(cmd.(noRetry).Val()); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// Release implements clientconn.Wire.
func (w *wire) Release() { w.conn.Close() }

// errDiscarded is the error of an argument that makes go-redis take a connection out of its pool.
var errDiscarded = errors.New("delayed: the connection is not used any more")

// Discard implements clientconn.Wire. While a reply is to come, go-redis leaves no way to close the connection: it is
// closed after that.
func (w *wire) Discard() {
	w.busy.Add(1)
	w.discard.Store(true)
	w.leave()
}

// leave ends a call. The last one discards the connection, if that is wanted.
func (w *wire) leave() {
	if w.busy.Add(-1) > 0 || !w.discard.CompareAndSwap(true, false) {
		return
	}
	// go-redis closes a connection after an error that is none of Redis, such as that of an argument.
	ctx := context.Background()
	w.conn.Process(ctx, noRetry{goredis.NewRawCmd(ctx, "PING", failing{errDiscarded})}) //nolint:errcheck // see above
	w.conn.Close()
}
