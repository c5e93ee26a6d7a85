package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// hearing returns a handle whose workers get signals, or get none because Redis does not let them subscribe.
func (b *bench) hearing(signals bool) *delayed.Redis {
	if signals {
		return b.rdb
	}
	b.Do("ACL", "SETUSER", "deaf", "on", ">deaf", "allkeys", "allchannels", "+@all", "-subscribe")
	deaf, err := delayed.Dial(strings.Replace(b.Server.URL(), "://", "://deaf:deaf@", 1))
	b.Must(err)
	b.T.Cleanup(func() { deaf.Close() })
	return deaf
}

// TestPause pauses and resumes a queue while one of its tasks runs and some are claimed ahead.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			started, release := make(chan int, 10), make(chan struct{})
			f := b.fn("f", func(n int) { started <- n; <-release })
			cfg := b.config()
			cfg.Concurrency, cfg.Prefetch = 1, 5
			if hears {
				cfg.HeartbeatLife = time.Hour // too long for the heartbeat alone
			}
			for i := range 5 {
				b.delay(f, i)
			}
			w, err := delayed.NewWorker(b.hearing(hears), cfg)
			b.Must(err)
			b.Must(w.Register(f))
			s := b.start(w)
			if n := await(b, "the first task", started); n != 0 {
				t.Errorf("task %d is first", n)
			}
			b.Until("tasks are claimed ahead", func() bool { return b.Size("") == 0 })
			b.Must(b.q.Pause(t.Context()))
			if paused, err := b.q.Paused(t.Context()); err != nil || !paused {
				t.Errorf("Paused: %v, %v", paused, err)
			}
			b.Until("they are given back", func() bool { return b.Size("") == 4 && b.Size("_processing:"+w.ID()) == 1 })
			release <- struct{}{} // the running one ends
			b.Until("it is acknowledged", func() bool { return b.Size("_processing:"+w.ID()) == 0 })
			// Tasks that are enqueued meanwhile wait, and due ones become pending.
			b.delay(f, 5)
			b.delayWith(b.q.With(delayed.In(time.Millisecond)), f, 6)
			b.Until("all are pending", func() bool { return b.Size("") == 6 && b.Size("_noti") >= 1 })
			// A worker that starts now obeys the pause too.
			other := b.work(cfg, f)
			b.delay(f, 7)
			b.Until("the others know it", func() bool { return b.Size("") == 7 })
			if len(started) > 0 {
				t.Errorf("task %d was started while the queue was paused", <-started)
			}
			b.Must(b.q.Resume(t.Context()))
			if paused, err := b.q.Paused(t.Context()); err != nil || paused {
				t.Errorf("Paused: %v, %v", paused, err)
			}
			close(release)
			for range 7 {
				await(b, "the others", started)
			}
			b.Idle()
			s.mustStop()
			other.mustStop()
			if n := b.counters()["processed"]; n != 8 {
				t.Errorf("%d processed, expected 8", n)
			}
		})
	}
}

// TestPauseOfOneQueue: the worker goes on with another queue.
func TestPauseOfOneQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := delayed.NewQueue(b.Name+".other", b.rdb)
	ran := make(chan string, 10)
	f := b.fn("f", func(s string) { ran <- s })
	cfg := b.config()
	cfg.Queues = delayed.Strict{b.Name, other.Name()}
	b.Must(b.q.Pause(t.Context()))
	b.work(cfg, f)
	b.delay(f, "paused")
	for range 20 {
		b.delayWith(other, f, "other")
		if got := await(b, "a task of the other queue", ran); got != "other" {
			t.Fatalf("found %q", got)
		}
	}
	b.Must(b.q.Resume(t.Context()))
	if got := await(b, "the task that was held back", ran); got != "paused" {
		t.Errorf("found %q", got)
	}
}

// TestWorkerOrders pauses one of two workers through Redis.
func TestWorkerOrders(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cfg := b.config()
			if hears {
				cfg.HeartbeatLife = time.Hour
			}
			w, err := delayed.NewWorker(b.hearing(hears), cfg)
			b.Must(err)
			b.start(w)
			other := b.work(b.config())
			control := b.q.Worker(w.ID())
			for _, step := range []struct {
				do   func(context.Context) error
				want state.Worker
			}{
				{control.Pause, state.Paused},
				{control.Resume, state.Running},
				{control.Pause, state.Paused},
				{control.Quiet, state.Quiet},
			} {
				b.Must(step.do(t.Context()))
				b.Until(step.want.String(), func() bool { return w.Status().State == step.want })
			}
			if where := other.Status().State; where != state.Running {
				t.Errorf("the other worker is %v", where)
			}
		})
	}
}

func TestSetWeight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Must(b.q.SetWeight(t.Context(), 500))
	if weight := b.Hash("_control")["weight"]; weight != "500" {
		t.Errorf("Redis holds the weight %q, expected 500", weight)
	}
	b.Must(b.q.SetWeight(t.Context(), 0))
	if weight, set := b.Hash("_control")["weight"]; set {
		t.Errorf("Redis holds the weight %q, expected none", weight)
	}
	for _, n := range []int{-1, 1001} {
		if err := b.q.SetWeight(t.Context(), n); !errors.Is(err, delayed.ErrArguments) ||
			!strings.Contains(err.Error(), "expected 1 to 1000, or 0") {
			t.Errorf("SetWeight(%d): %v", n, err)
		}
	}
}

// TestControlIsPublished checks the signals for changes of the control hash.
func TestControlIsPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := redisstore.NewSignals(b.src)
	defer s.Close()
	c, end := s.SubscribeQueue(b.store)
	defer end()
	if got := await(b, "the subscription", c); got != "" {
		t.Fatalf("signal %q, expected that the subscription holds", got)
	}
	if err := b.q.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the signal", c); got != "control" {
		t.Fatalf("signal %q, expected control", got)
	}
	if was, _ := redis.Int(b.Do("HLEN", b.Name+"_control"), nil); was != 2 {
		t.Errorf("%d fields, expected 2", was)
	}
}
