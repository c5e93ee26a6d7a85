package delayed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/redistest"
)

// patience bounds every wait of a test. Nothing is measured with it: it only ends tests that hang.
const patience = 20 * time.Second

// bench is a queue on a real server with what tests need around it.
type bench struct {
	t      testing.TB
	server *redistest.Server
	rdb    *Redis
	name   string
	q      *Queue
	conn   redis.Conn
	log    *logText
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOn(t, redistest.Shared(t))
}

func newBenchOn(t testing.TB, server *redistest.Server) *bench {
	t.Helper()
	rdb, err := Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &bench{t: t, server: server, rdb: rdb, name: redistest.Name(t), conn: server.Dial(t), log: &logText{}}
	b.q = NewQueue(b.name, rdb)
	return b
}

// config is that of a quick worker.
func (b *bench) config() WorkerConfig {
	return WorkerConfig{
		Queues: Strict{b.name}, Concurrency: 4, HeartbeatLife: 2 * time.Second, SweepInterval: 100 * time.Millisecond,
		Grace: 5 * time.Second, CancelGrace: time.Second, Logger: b.log.logger(),
		Backoff: func(int) time.Duration { return time.Millisecond },
	}
}

// started is a worker that runs.
type started struct {
	*Worker
	b    *bench
	stop func() error // stops it and returns what Run returned; may be called more than once
}

// mustStop stops the worker and fails the test if it does not stop cleanly.
func (s *started) mustStop() {
	s.b.t.Helper()
	if err := s.stop(); err != nil {
		s.b.t.Fatal(err)
	}
}

// work starts a worker and waits until Redis knows it. It is stopped at the end of the test, and the queue is checked.
func (b *bench) work(cfg WorkerConfig, fns ...any) *started {
	b.t.Helper()
	return b.workWith(b.rdb, cfg, fns...)
}

func (b *bench) workWith(rdb *Redis, cfg WorkerConfig, fns ...any) *started {
	b.t.Helper()
	w, err := NewWorker(rdb, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(fns) > 0 {
		if err := w.Register(fns...); err != nil {
			b.t.Fatal(err)
		}
	}
	return b.start(w)
}

func (b *bench) start(w *Worker) *started {
	b.t.Helper()
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
	b.t.Cleanup(func() {
		if err := s.stop(); err != nil && !b.t.Failed() {
			b.t.Errorf("Run: %v\n%s", err, b.log)
		}
	})
	b.until("the worker is connected", func() bool { return w.Status().Connected })
	return s
}

// check holds the queue's keys against the invariants.
func (b *bench) check(allow redistest.Invariants) {
	b.t.Helper()
	redistest.CheckInvariants(b.t, b.conn, b.name, allow)
}

// until waits for a condition on something that goes on elsewhere.
func (b *bench) until(what string, cond func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited in vain until %s\nqueue: %s\nlog:\n%s", what,
				redistest.Diff(redistest.Dump(b.t, b.conn, b.name), nil), b.log)
		}
		<-time.After(time.Millisecond) // between two looks
	}
}

// idle waits until nothing is pending or claimed.
func (b *bench) idle() {
	b.t.Helper()
	b.until("the queue is idle", func() bool {
		// In one step: between two a task could move from what was not read yet to what has been read.
		n, err := redis.Int(b.conn.Do(
			"EVAL", `return #redis.call('KEYS', KEYS[1] .. '_processing:*') + redis.call('LLEN', KEYS[1])
			+ redis.call('LLEN', KEYS[1] .. '_suspects')`, 1, b.name))
		if err != nil {
			b.t.Fatal(err)
		}
		return n == 0
	})
}

func (b *bench) do(cmd string, args ...any) any {
	b.t.Helper()
	reply, err := b.conn.Do(cmd, args...)
	if err != nil {
		b.t.Fatalf("%s: %v", cmd, err)
	}
	return reply
}

// size returns the number of elements of one of the queue's keys.
func (b *bench) size(suffix string) int {
	b.t.Helper()
	kind, _ := redis.String(b.do("TYPE", b.name+suffix), nil)
	cmd := map[string]string{"list": "LLEN", "hash": "HLEN", "zset": "ZCARD", "set": "SCARD"}[kind]
	if cmd == "" {
		return 0
	}
	n, _ := redis.Int(b.do(cmd, b.name+suffix), nil)
	return n
}

// list and hash return the value of one of the queue's keys, nil if there is none.
func (b *bench) list(suffix string) redistest.List {
	b.t.Helper()
	v, _ := redistest.Dump(b.t, b.conn, b.name)[suffix].(redistest.List)
	return v
}

func (b *bench) hash(suffix string) redistest.Hash {
	b.t.Helper()
	v, _ := redistest.Dump(b.t, b.conn, b.name)[suffix].(redistest.Hash)
	return v
}

// int returns the reply of a command that answers a number.
func (b *bench) int(cmd string, args ...any) int {
	b.t.Helper()
	n, err := redis.Int(b.conn.Do(cmd, args...))
	if err != nil {
		b.t.Fatalf("%s: %v", cmd, err)
	}
	return n
}

// counters returns those of today.
func (b *bench) counters() map[string]int {
	b.t.Helper()
	m, err := redis.IntMap(b.conn.Do("HGETALL", b.q.store.statsKey()))
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

// await receives from a channel, or fails the test.
func await[T any](b *bench, what string, c <-chan T) T {
	b.t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		b.t.Fatalf("waited in vain for %s\nqueue: %s\nlog:\n%s", what,
			redistest.Diff(redistest.Dump(b.t, b.conn, b.name), nil), b.log)
		panic("unreachable")
	}
}

func (b *bench) delay(fn any, args ...any) *Ref {
	b.t.Helper()
	ref, err := b.q.Delay(fn, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return ref
}

func (b *bench) delayWith(q *Queue, fn any, args ...any) *Ref {
	b.t.Helper()
	ref, err := q.Delay(fn, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return ref
}

// fn gives a function literal a name that no other test uses.
func (b *bench) fn(name string, f any, opts ...FuncOption) *Function {
	return Func(f, append([]FuncOption{Name(b.name + "." + name)}, opts...)...)
}

// logText collects what is logged.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logText) logger() logrus.FieldLogger {
	logger := logrus.New()
	logger.SetOutput(l)
	logger.SetLevel(logrus.DebugLevel)
	logger.SetFormatter(&logrus.TextFormatter{
		DisableColors: true, TimestampFormat: "15:04:05.000",
		FullTimestamp: true,
	})
	return logger
}

func errorText(err error) string { return fmt.Sprint(err) }
