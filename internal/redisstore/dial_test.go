package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestPoolIsClosedAtItsFirstUse closes pools while they are used for the first time. The race detector sees if they
// are not made for that.
func TestPoolIsClosedAtItsFirstUse(t *testing.T) {
	t.Parallel()
	for range 50 {
		calls, _, _, err := DialSources(redistest.Shared(t).URL())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if conn, err := calls.Conn(bg, "q"); err == nil {
				conn.Close()
			} else if err.Error() != closedPool {
				t.Error(err)
			}
		})
		calls.Close()
		wg.Wait()
	}
}

// TestPoolIsClosedWhileAContextEnds has a pool panic as redigo does then, and for another reason.
func TestPoolIsClosedWhileAContextEnds(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	close(ended)
	pool := &redis.Pool{DialContext: func(context.Context) (redis.Conn, error) {
		ended <- struct{}{}
		return nil, nil
	}}
	if _, err := (PoolSource{Pool: pool}).Conn(bg, "q"); err == nil || !errors.Is(ConnError(err), ErrClosed) {
		t.Errorf("found %v, expected the error of a closed handle", err)
	}
	defer func() {
		if p := recover(); p != "other" {
			t.Errorf("another panic became %v", p)
		}
	}()
	pool = &redis.Pool{DialContext: func(context.Context) (redis.Conn, error) { panic("other") }}
	_, err := PoolSource{Pool: pool}.Conn(bg, "q")
	t.Errorf("another panic became %v", err)
}
