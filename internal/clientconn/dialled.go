package clientconn

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Dialled is a Wire that is no connection of a pool.
type Dialled struct{ redis.Conn }

// Do implements Wire.
func (d *Dialled) Do(ctx context.Context, limit time.Duration, cmds []Command) ([]any, error) {
	if ctx.Done() != nil && limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	for _, cmd := range cmds {
		if err := d.Send(cmd.Name, cmd.Args...); err != nil {
			return nil, err
		}
	}
	if err := d.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, len(cmds))
	for i := range cmds {
		var err error
		if ctx.Done() != nil {
			replies[i], err = redis.ReceiveContext(d.Conn, ctx)
		} else {
			replies[i], err = redis.ReceiveWithTimeout(d.Conn, limit)
		}
		var answer redis.Error
		switch {
		case errors.As(err, &answer):
			replies[i] = answer
		case err != nil:
			return nil, err
		}
	}
	return replies, nil
}

// Release closes the connection.
func (d *Dialled) Release() { d.Close() }

// Discard closes the connection.
func (d *Dialled) Discard() { d.Close() }
