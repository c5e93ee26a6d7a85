package delayed_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// publicBench is a queue on a real server with what tests of the public API need around it.
type publicBench struct {
	*redistest.Bench
	rdb *delayed.Redis
	q   *delayed.Queue
	log *publicLog
}

func newPublicBench(t testing.TB) *publicBench {
	t.Helper()
	server := redistest.Shared(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &publicBench{Bench: redistest.NewBench(t, server), rdb: rdb, log: &publicLog{}}
	b.Log = b.log
	b.q = delayed.NewQueue(b.Name, rdb)
	return b
}

// config is that of a quick worker.
func (b *publicBench) config() delayed.WorkerConfig {
	logger := logrus.New()
	logger.SetOutput(b.log)
	logger.SetLevel(logrus.DebugLevel)
	return delayed.WorkerConfig{
		Queues: delayed.Strict{b.Name}, Concurrency: 4, HeartbeatLife: 2 * time.Second,
		SweepInterval: 100 * time.Millisecond, Grace: 5 * time.Second, CancelGrace: time.Second, Logger: logger,
		Backoff: func(int) time.Duration { return time.Millisecond },
	}
}

// work starts a worker, waits until Redis knows it, and returns it and what stops it; it is also stopped at the end of
// the test.
func (b *publicBench) work(rdb *delayed.Redis, cfg delayed.WorkerConfig, fns ...any) (*delayed.Worker, func() error) {
	b.T.Helper()
	w, err := delayed.NewWorker(rdb, cfg)
	b.Must(err)
	b.Must(w.Register(fns...))
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return redistest.Await(b.Bench, "the end of Run", result)
	})
	b.T.Cleanup(func() {
		if err := stop(); err != nil && !b.T.Failed() {
			b.T.Errorf("Run: %v\n%s", err, b.log)
		}
	})
	b.Until("the worker is connected", func() bool { return w.Status().Connected })
	return w, stop
}

func (b *publicBench) delay(q *delayed.Queue, fn any, args ...any) *delayed.Ref {
	b.T.Helper()
	ref, err := q.Delay(fn, args...)
	b.Must(err)
	return ref
}

// fn gives a function literal a name that no other test uses.
func (b *publicBench) fn(name string, f any, opts ...delayed.FuncOption) *delayed.Function {
	return delayed.Func(f, append([]delayed.FuncOption{delayed.Name(b.Name + "." + name)}, opts...)...)
}

// publicLog collects what is logged.
type publicLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *publicLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *publicLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.buf.String())
}
