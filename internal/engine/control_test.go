package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// deaf makes a worker get no signals.
func deaf(w *Worker) { w.cfg.Signals = redisstore.NewSignals(refusingSource{}) }

// refusingSource has no connections.
type refusingSource struct{}

func (refusingSource) Conn(context.Context, string) (redis.Conn, error) {
	return nil, errors.New("no connections here")
}
func (refusingSource) Slot(string) int { return 0 }
func (refusingSource) Close() error    { return nil }

// TestPausedWorkerIsIdle counts the requests of a worker whose only queue is paused and has tasks.
func TestPausedWorkerIsIdle(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	f := b.fn("f", func() {})
	cfg := b.config()
	cfg.HeartbeatLife, cfg.NoSweeper = 15*time.Second, true
	w := b.work(cfg, f)
	b.Must(b.q.Pause(t.Context()))
	b.Until("the worker knows", w.lanes[0].QueuePaused)
	b.delay(f)
	b.delay(f)
	before, start := b.Server.CommandStats(t), time.Now()
	<-time.After(2 * time.Second) // the test checks that nothing happens
	diff := b.Server.CommandStats(t).Since(before)
	// Some requests were under way; the others come at fixed times.
	if n, most := diff["evalsha"]+diff["blpop"], 15+5*int64(time.Since(start)/time.Second); n > most {
		t.Errorf("%d calls, expected at most %d: %v", n, most, diff)
	}
	b.Must(b.q.Resume(t.Context()))
	b.Idle()
}

// TestRestart stops the current workers of the queue after their tasks, but none that starts later.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started, release := make(chan int, 2), make(chan struct{})
	var done atomic.Int64
	f := b.fn("f", func(n int) { started <- n; <-release; done.Add(1) })
	cfg := b.config()
	cfg.Concurrency = 1
	run := func(hears bool) (*Worker, chan error) {
		w, err := NewWorker(b.rdb, cfg)
		b.Must(err)
		b.Must(w.Register([]*Function{f}, nil))
		if !hears {
			deaf(w)
		}
		result := make(chan error, 1)
		go func() { result <- w.Run(t.Context()) }()
		b.Until("it is connected",
			func() bool { return w.Status().Connected && w.lanes[0].Control.Version.Load() >= 0 })
		return w, result
	}
	b.Must(b.q.Restart(t.Context())) // before all of them
	one, oneOver := run(true)
	two, twoOver := run(false)
	b.delay(f, 1)
	await(b, "the task", started)
	b.Must(b.q.Restart(t.Context()))
	b.Until("both stop", func() bool {
		return one.Status().StopReason == "restart" && two.Status().StopReason == "restart"
	})
	three, threeOver := run(true)
	close(release)
	for _, over := range []chan error{oneOver, twoOver} {
		if err := await(b, "the end of Run", over); err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	if done.Load() != 1 {
		t.Error("the running task was not finished")
	}
	b.delay(f, 2)
	await(b, "a task on the new worker", started)
	if reason := three.Status().StopReason; reason != "" {
		t.Errorf("the new worker stops: %s", reason)
	}
	b.Must(b.q.Worker(three.ID()).Stop(t.Context()))
	if err := await(b, "the end of Run", threeOver); err != nil || three.Status().StopReason != "order" {
		t.Errorf("Run: %v, reason %q", err, three.Status().StopReason)
	}
	if fields := b.Hash("_control"); fields["worker:"+three.ID()] != "" {
		t.Errorf("the order outlives the worker: %v", fields)
	}
}

// TestRestartBeforeTheFirstLook: an order to restart counts from the registration of a worker on, even if the worker
// reads it later.
func TestRestartBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Must(b.q.Restart(t.Context())) // not for this worker
	w, err := NewWorker(b.rdb, b.config())
	b.Must(err)
	lc := &w.lanes[0].Control
	lc.Reading.Lock()
	s := b.start(w)
	then := redistest.Time(t, b.Conn)
	b.Until("it is later", func() bool { return redistest.Time(t, b.Conn) > then })
	b.Must(b.q.Restart(t.Context()))
	lc.Reading.Unlock()
	b.Until("it stops", func() bool { return w.Status().StopReason == "restart" })
	s.mustStop()
}

// The weight of a queue is that of the control hash, or the configured one where there is none.
func TestWeightOfTheControlHash(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cfg := b.config()
	cfg.Queues = Weighted{b.Name: 1, b.Name + ".light": 999}
	w := b.work(cfg)
	b.Must(b.q.SetWeight(t.Context(), 500))
	b.Until("the worker knows the weight", func() bool { return w.lanes[0].Control.Weight.Load() == 500 })
	b.Do("HDEL", b.Name+"_control", redisstore.ControlWeight)
	b.Must(w.ReadControl(t.Context(), w.lanes[0]))
	b.Until("the worker knows that there is none", func() bool { return w.lanes[0].Control.Weight.Load() == 0 })
}
