package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// TestBroadcast asks a worker's broadcast for events, and reads what it publishes.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn := b.Server.Dial(t)
	b.Must(conn.Send("SUBSCRIBE", b.Name+"_events"))
	b.Must(conn.Flush())
	if _, err := conn.Receive(); err != nil {
		t.Fatal(err)
	}
	air := events.NewBroadcast("me")
	l := events.Listeners{Air: air}
	if l.Any() {
		t.Error("events are wanted although nobody watches")
	}
	l.Emit(events.Event{Kind: event.TaskDone, Queue: b.Name})
	air.Watch(redisstore.NewStore(b.rdb.loops, "", b.Name), time.Minute)
	air.Watch(redisstore.NewStore(b.rdb.loops, "", b.Name), time.Millisecond) // does not shorten it
	if !l.Any() {
		t.Error("no events are wanted although somebody watches")
	}
	long := strings.Repeat("é", events.MaxErrorText)
	for range events.MaxBroadcast + 10 {
		l.Emit(events.Event{Kind: event.WorkerPaused, At: time.UnixMilli(7), Err: (*nilError)(nil)})
	}
	l.Emit(events.Event{
		Kind: event.TaskRetried, Queue: b.Name, At: time.UnixMilli(5), Duration: time.Second, Wait: time.Minute,
		Reason: "why", Err: errors.New(long), Message: &wire.Message{Path: "a.B", Meta: wire.Meta{ID: "x", Retried: 2}},
	})
	l.Emit(events.Event{Kind: event.TaskDone, Queue: "another", At: time.UnixMilli(6)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		air.Run(ctx, loop.NewJournal(b.log.logger()))
		close(ended)
	}()
	read := func() (got catalog.Broadcast) {
		reply, err := redis.ByteSlices(conn.Receive())
		b.Must(err)
		b.Must(json.Unmarshal(reply[2], &got))
		return got
	}
	got := read()
	if got.Version != catalog.Version || got.Worker != "me" || got.Missed != 11 || got.Before != 11 ||
		len(got.Events) != events.MaxBroadcast {
		t.Fatalf("%d events of %s, %d missed, %d before", len(got.Events), got.Worker, got.Missed, got.Before)
	}
	since := got.Since
	want := catalog.Event{
		Kind: "task retried", At: 5, ID: "x", Function: "a.B", Attempt: 3, Took: 1_000_000, Wait: 60_000, Reason: "why",
		Error: long[:events.MaxErrorText],
	}
	if e := got.Events[events.MaxBroadcast-1]; e != want {
		t.Errorf("found %+v, expected %+v", e, want)
	}
	if e := got.Events[0]; e.Kind != "worker paused" || e.Error == "" || e.Attempt != 0 {
		t.Errorf("found %+v, expected a worker that was paused, with an error", e)
	}
	l.Emit(events.Event{Kind: event.TaskDone, Queue: b.Name, At: time.UnixMilli(8)})
	if got = read(); len(got.Events) != 1 || got.Missed != 0 || got.Events[0].At != 8 ||
		got.Before != events.MaxBroadcast+11 || got.Since != since {
		t.Errorf("then %+v", got)
	}
	air.Mu.Lock()
	air.Queues[b.Name].Until = time.Time{}
	air.Mu.Unlock()
	b.Until("nobody watches any more", func() bool { return !l.Any() })
	cancel()
	await(b, "the end", ended)
}
