package delayed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
)

// sizedSource is a source for one producer, such as the parameter pool_size of a URL makes.
type sizedSource struct {
	delayed.Source
	asked chan struct{}
	hold  chan struct{}
}

func (sizedSource) PoolSize() int { return 1 }

func (s sizedSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	s.asked <- struct{}{}
	select {
	case <-s.hold:
		return s.Source.Conn(ctx, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestSourceBoundsItsProducers(t *testing.T) {
	b := newBench(t)
	src := sizedSource{Source: b.src, asked: make(chan struct{}, 2), hold: make(chan struct{})}
	rdb := delayed.FromSource(src)
	first := make(chan error, 1)
	go func() {
		_, err := delayed.NewQueue(b.Name, rdb).DelayContext(t.Context(), plainForTest, 1)
		first <- err
	}()
	await(b, "a producer to take the place", src.asked)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := delayed.NewQueue(b.Name+".other", rdb).DelayMany(ctx, delayed.Call(plainForTest, 1),
		delayed.Call(plainForTest, 2))
	if err == nil || !strings.Contains(err.Error(), "waiting for a connection to Redis") {
		t.Errorf("a second producer: %v", err)
	}
	close(src.hold)
	if err := await(b, "the first producer to end", first); err != nil {
		t.Error(err)
	}
}
