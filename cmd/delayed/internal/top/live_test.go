package top

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// redisBench is a queue on a real Redis, with the source that reads it.
type redisBench struct {
	*redistest.Bench

	rdb *delayed.Store
	src *live
	q   *delayed.Queue
}

func newRedisBench(t *testing.T) *redisBench {
	t.Helper()
	server := redistest.Shared(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &redisBench{Bench: redistest.NewBench(t, server)}
	b.rdb = rdb.WithPrefix(b.Name + ":")
	ins, err := inspect.New(b.rdb, inspect.Config{})
	b.Must(err)
	b.src, b.q = newLive(ins), delayed.NewQueue("mail", b.rdb)
	b.Name += ":mail"
	return b
}

// work runs a worker until stop is called.
func (b *redisBench) work(t *testing.T) (stop func()) {
	t.Helper()
	log := new(redistest.Log)
	b.Log = log
	w, err := delayed.NewWorker(b.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"mail"}, Concurrency: 2, HeartbeatLife: 12 * time.Second, Grace: redistest.Patience,
		Logger: log.Logger(),
	})
	b.Must(err)
	b.Must(w.Register(good, bad))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	ended := false
	stop = func() {
		if cancel(); !ended {
			ended = true
			b.Must(redistest.Await(b.Bench, "the worker's end", done))
		}
	}
	t.Cleanup(stop)
	return stop
}

func good(context.Context, int) error { return nil }

func bad(context.Context) error { return errors.New("mailbox full") }

// size is how many tasks the queue holds in a state.
func (b *redisBench) size(in state.Task) int {
	q, err := b.src.Queue(b.T.Context(), "mail")
	b.Must(err)
	return q.Size(in)
}

// TestFlows runs tasks and reads what the worker has told of them.
func TestFlows(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	b.work(t)
	for i := range 5 {
		_, err := b.q.Delay(good, i)
		b.Must(err)
	}
	_, err := b.q.With(delayed.MaxRetry(0)).Delay(bad)
	b.Must(err)
	b.Until("all have run", func() bool { return b.size(state.Archived) == 1 && b.size(state.Pending) == 0 })
	for _, s := range []span{minutes, hour} {
		var f queueFlow
		b.Until("the worker has told of all with its heartbeats", func() bool {
			for _, k := range b.src.known { // they would be read again in some seconds
				k.read = time.Time{}
			}
			flows, err := b.src.flows(t.Context(), s, []string{"mail"})
			b.Must(err)
			f = flows["mail"]
			return f.total == 6
		})
		sum := uint64(0)
		for i := range f.runs {
			sum += f.runs[i] + 100*f.failed[i]
		}
		if sum != 106 || f.failures != 1 || f.archived != 1 || len(f.functions) != 2 || f.perSecond <= 0 {
			t.Errorf("in the last %s: %+v", spanOf[s].name, f)
		}
		for _, fn := range f.functions {
			name := inspect.ShortName(fn.path)
			if name == "top.good" && fn.total != 5 || name == "top.bad" && fn.failures != 1 {
				t.Errorf("in the last %s: %s has run %d times", spanOf[s].name, name, fn.total)
			}
		}
	}
}

// TestFlowsAreReadInTurn counts what is asked for many queues.
func TestFlowsAreReadInTurn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t) // its commands are counted
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &redisBench{Bench: redistest.NewBench(t, server)}
	ins, err := inspect.New(rdb, inspect.Config{})
	b.Must(err)
	b.src = newLive(ins)
	var names []string
	for i := range 3 * mostReads {
		names = append(names, fmt.Sprint("q", i))
		_, err := delayed.NewQueue(names[i], rdb).Delay(good, i)
		b.Must(err)
	}
	for turn := 1; turn <= 5; turn++ {
		before := server.CommandStats(t)
		flows, err := b.src.flows(t.Context(), minutes, names)
		b.Must(err)
		if want := min(turn, 3) * mostReads; len(flows) != want {
			t.Errorf("after %d refreshes the flows of %d queues are known, expected %d", turn, len(flows), want)
		}
		// Two minutes and some seconds are in four hashes at most.
		if n := server.CommandStats(t).Since(before)["hgetall"]; n > 4*mostReads+2 {
			t.Errorf("refresh %d reads %d hashes", turn, n)
		}
	}
}

// is reports whether the only worker is in a state.
func (b *redisBench) is(in state.Worker) bool {
	workers, err := b.src.Workers(b.T.Context())
	b.Must(err)
	return len(workers) == 1 && workers[0].State == in
}

// TestSteer pauses and resumes a queue, and gives a worker orders.
func TestSteer(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	stop := b.work(t)
	ctx := t.Context()
	var workers []inspect.Worker
	b.Until("the worker is known", func() bool {
		var err error
		workers, err = b.src.Workers(ctx)
		b.Must(err)
		return len(workers) == 1 && workers[0].Alive()
	})
	b.Must(b.src.Pause(ctx, "mail"))
	b.Until("the queue is paused", func() bool {
		q, err := b.src.Queue(ctx, "mail")
		b.Must(err)
		return !q.Paused.IsZero()
	})
	b.Must(b.src.Resume(ctx, "mail"))
	b.Until("the queue is resumed", func() bool {
		q, err := b.src.Queue(ctx, "mail")
		b.Must(err)
		return q.Paused.IsZero()
	})
	b.Must(b.src.OrderWorker(ctx, workers[0].ID, inspect.OrderPause))
	b.Until("the worker is paused", func() bool { return b.is(state.Paused) })
	b.Must(b.src.OrderWorker(ctx, workers[0].ID, inspect.OrderStop))
	b.Until("the worker has stopped", func() bool {
		left, err := b.src.Workers(ctx)
		b.Must(err)
		return len(left) == 0
	})
	stop()
	if err := b.src.Pause(ctx, "nobody-knows-it"); !errors.Is(err, inspect.ErrNotFound) {
		t.Errorf("a queue that does not exist is paused: %v", err)
	}
	if err := b.src.OrderWorker(ctx, "", inspect.OrderStop); !errors.Is(err, inspect.ErrNotFound) {
		t.Errorf("a dead worker is told something: %v", err)
	}
}
