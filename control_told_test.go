package delayed_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
)

// signals subscribes to what is published on the queue.
func (b *bench) signals() <-chan string {
	s := redisstore.NewSignals(b.src)
	c, end := s.Subscribe(b.store.Keys.Signals())
	b.T.Cleanup(func() { end(); s.Close() })
	return c
}

// TestControlIsPublished listens while the control hash changes.
func TestControlIsPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.signals()
	expectSignal(b, c, "")
	if err := b.q.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectSignal(b, c, "control")
	if was, _ := redis.Int(b.Do("HLEN", b.Name+"_control"), nil); was != 2 {
		t.Errorf("%d fields, expected 2", was)
	}
}

// TestParkingIsPublished parks a task: workers that know its function hear of it.
func TestParkingIsPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.signals()
	expectSignal(b, c, "")
	b.Do("HSET", b.Name+"_processing:w", "1-1", "message")
	task := redisstore.Shelved{Token: "1-1", ID: "x", Wait: time.Hour, Info: []byte{0x80}, Path: "mail.Welcome"}
	if _, _, err := b.store.Shelve(t.Context(), "w", []uint64{1}, redisstore.ShelfParked, 0, nil,
		[]redisstore.Shelved{task}); err != nil {
		t.Fatal(err)
	}
	expectSignal(b, c, redisstore.SignalParked+" mail.Welcome")
}
