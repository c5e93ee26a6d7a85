package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// patience bounds every wait of a test. It measures nothing: it only ends tests that hang.
var patience = redistest.Patience

// Due times that are in the past, or in the future, whenever these tests run.
const (
	past  = 1_000
	later = int64(4_000_000_000_001)
	round = int64(4_000_000_000_000) // which some servers write as 4e+12
)

var bg = context.Background()

// bench is a queue on a real server with what tests need around it.
type bench struct {
	*redistest.Bench
	rdb   *delayed.Store
	q     *delayed.Queue
	src   delayed.Source    // connections of the test's own
	store *redisstore.Store // of the queue, over src
	log   *redistest.Log
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOn(t, redistest.Shared(t))
}

func newBenchOn(t testing.TB, server *redistest.Server) *bench {
	t.Helper()
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	_, src, _, err := redisstore.DialSources(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	b := &bench{Bench: redistest.NewBench(t, server), rdb: rdb, src: src, log: new(redistest.Log)}
	b.Log, b.store = b.log, redisstore.NewStore(src, "", b.Name)
	b.q = delayed.NewQueue(b.Name, rdb)
	return b
}

// config returns the configuration of a quick worker.
func (b *bench) config() delayed.WorkerConfig {
	return delayed.WorkerConfig{
		Queues: delayed.Strict{b.Name}, Concurrency: 4, HeartbeatLife: 10 * time.Second,
		SweepInterval: 100 * time.Millisecond, Grace: patience, CancelGrace: time.Second,
		Logger:  b.log.Logger(),
		Backoff: func(int) time.Duration { return time.Millisecond },
	}
}

// started is a running worker.
type started struct {
	*delayed.Worker
	b    *bench
	stop func() error // stops it and returns what Run returned; may be called more than once
}

// mustStop stops the worker and fails the test if it does not stop cleanly.
func (s *started) mustStop() {
	s.b.T.Helper()
	if err := s.stop(); err != nil {
		s.b.T.Fatal(err)
	}
}

// work starts a worker and waits until Redis knows it. At the end of the test it stops the worker and checks the queue.
func (b *bench) work(cfg delayed.WorkerConfig, fns ...any) *started {
	b.T.Helper()
	return b.workWith(b.rdb, cfg, fns...)
}

func (b *bench) workWith(rdb *delayed.Store, cfg delayed.WorkerConfig, fns ...any) *started {
	b.T.Helper()
	w, err := delayed.NewWorker(rdb, cfg)
	if err != nil {
		b.T.Fatal(err)
	}
	if len(fns) > 0 {
		if err := w.Register(fns...); err != nil {
			b.T.Fatal(err)
		}
	}
	return b.start(w)
}

func (b *bench) start(w *delayed.Worker) *started {
	b.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	var once sync.Once
	var err error
	s := &started{Worker: w, b: b, stop: func() error {
		once.Do(func() {
			cancel()
			select {
			case err = <-result:
			case <-time.After(patience):
				err = errors.New("the worker did not stop")
			}
		})
		return err
	}}
	b.T.Cleanup(func() {
		if err := s.stop(); err != nil && !b.T.Failed() {
			b.T.Errorf("Run: %v\n%s", err, b.log)
		}
	})
	b.Until("the worker is connected", func() bool { return w.Status().Connected })
	return s
}

// counters returns the counters of today.
func (b *bench) counters() map[string]int {
	b.T.Helper()
	m, err := redis.IntMap(b.Conn.Do("HGETALL", b.store.StatsKey()))
	if err != nil {
		b.T.Fatal(err)
	}
	return m
}

// await receives from a channel, or fails the test.
func await[T any](b *bench, what string, c <-chan T) T {
	b.T.Helper()
	return redistest.Await(b.Bench, what, c)
}

func (b *bench) delay(fn any, args ...any) *delayed.Ref {
	b.T.Helper()
	ref, err := b.q.Delay(fn, args...)
	if err != nil {
		b.T.Fatal(err)
	}
	return ref
}

func (b *bench) delayWith(q *delayed.Queue, fn any, args ...any) *delayed.Ref {
	b.T.Helper()
	ref, err := q.Delay(fn, args...)
	if err != nil {
		b.T.Fatal(err)
	}
	return ref
}

// fn gives a function literal a name that no other test uses.
func (b *bench) fn(name string, f any, opts ...delayed.FuncOption) *delayed.Function {
	return delayed.Func(f, append([]delayed.FuncOption{delayed.Name(b.Name + "." + name)}, opts...)...)
}

func errorText(err error) string { return fmt.Sprint(err) }

// offline returns a queue without a server.
func offline(t testing.TB) *delayed.Queue {
	t.Helper()
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return delayed.NewQueue("offline", rdb)
}

// messageOf returns the message of a call.
func messageOf(t testing.TB, q *delayed.Queue, task *delayed.Task) []byte {
	t.Helper()
	message, _, _, err := delayed.Message(q, task, 1_700_000_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// parsed reads a message back.
func parsed(t testing.TB, message []byte) wire.Message {
	t.Helper()
	m, err := wire.Parse(message, wire.Default)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// childMain lets this binary run isolated tasks, where the system has that.
var childMain = func() {}

func TestMain(m *testing.M) {
	childMain()
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

// sharing returns a handle whose queues legacy workers share, if they do.
func sharing(rdb *delayed.Store, legacy bool) *delayed.Store {
	if legacy {
		return rdb.WithLegacy()
	}
	return rdb
}
