package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

var bg = context.Background()

// patience bounds every wait of a test. It measures nothing: it only ends tests that hang.
var patience = redistest.Patience

// quietLife is the life of heartbeats that are so rare that none wakes the fetcher within a test.
const quietLife = time.Hour

// maxConcurrency is what the public configuration allows.
const maxConcurrency = 100_000

// bench is a queue on a real server with what tests need around it.
type bench struct {
	*redistest.Bench
	rdb *Redis
	q   *Queue
	log *logText
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOn(t, redistest.Shared(t))
}

func newBenchOn(t testing.TB, server *redistest.Server) *bench {
	t.Helper()
	calls, loops, _, err := redisstore.DialSources(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := &Redis{calls: calls, loops: loops, signals: redisstore.NewSignals(loops)}
	t.Cleanup(func() { rdb.Close() })
	b := &bench{Bench: redistest.NewBench(t, server), rdb: rdb, log: &logText{}}
	b.Log = b.log
	b.q = NewQueue(b.Name, rdb)
	return b
}

// config returns the configuration of a quick worker.
func (b *bench) config() WorkerConfig {
	return WorkerConfig{
		Config: Config{
			Concurrency: 4, HeartbeatLife: 5 * time.Second, SweepInterval: 100 * time.Millisecond,
			Grace: redistest.Patience, CancelGrace: time.Second, MaxRetry: 25,
			Backoff:    func(int) time.Duration { return time.Millisecond },
			StuckAfter: 30 * time.Second, ArchiveMax: 10_000, ArchiveFor: 90 * 24 * time.Hour,
		},
		Queues: Strict{b.Name}, Logger: b.log.logger(),
	}
}

// started is a running worker.
type started struct {
	*Worker
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
func (b *bench) work(cfg WorkerConfig, fns ...*Function) *started {
	b.T.Helper()
	return b.workWith(b.rdb, cfg, fns...)
}

func (b *bench) workWith(rdb *Redis, cfg WorkerConfig, fns ...*Function) *started {
	b.T.Helper()
	w, err := NewWorker(rdb, cfg)
	b.Must(err)
	b.Must(w.Register(fns, nil))
	return b.start(w)
}

func (b *bench) start(w *Worker) *started {
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

// finisherOf returns the finisher of a lane.
func finisherOf(l *lane.Lane) *finish.Finisher {
	f, _ := l.Finisher.(*finish.Finisher)
	return f
}

// doneOn returns the done claims of a lane that nobody has taken.
func doneOn(l *lane.Lane) []*lane.Claim {
	e, _ := finisherOf(l).Done.(*exec.Executors)
	return e.Done[l.Index].Claims
}

// counters returns the counters of today.
func (b *bench) counters() map[string]int {
	b.T.Helper()
	m, err := redis.IntMap(b.Conn.Do("HGETALL", b.q.store.StatsKey()))
	b.Must(err)
	return m
}

// await receives from a channel, or fails the test.
func await[T any](b *bench, what string, c <-chan T) T {
	b.T.Helper()
	return redistest.Await(b.Bench, what, c)
}

func (b *bench) delay(fn *Function, args ...any) *Ref {
	b.T.Helper()
	return b.delayWith(b.q, fn, args...)
}

func (b *bench) delayWith(q *Queue, fn *Function, args ...any) *Ref {
	b.T.Helper()
	ref, err := q.DelayContext(context.Background(), fn, args...)
	b.Must(err)
	return ref
}

// delayAt enqueues a call that is due at a time.
func (b *bench) delayAt(at time.Time, fn *Function, args ...any) {
	b.T.Helper()
	e, err := Call(fn, args...).envelope()
	b.Must(err)
	b.Must(b.q.store.Schedule(b.T.Context(), []redisstore.Envelope{e}, at.UnixMilli(), false))
}

// delayWithin enqueues a call whose handler has a limit of its own.
func (b *bench) delayWithin(limit time.Duration, fn *Function, args ...any) *Ref {
	b.T.Helper()
	task := Call(fn, args...)
	task.msg.Extend()
	task.msg.Meta.Extra = &wire.Extra{Timeout: limit.Milliseconds()}
	ref, err := b.q.Enqueue(b.T.Context(), task)
	b.Must(err)
	return ref
}

// requeue takes a claim from a worker whose heartbeat is gone, as a sweeper does, and puts the message back as renewed.
func (b *bench) requeue(worker string, c redisstore.Claimed, renewed []byte) {
	b.T.Helper()
	s := b.q.store
	action := redisstore.SweepAction{Claimed: c, Kind: "requeue", Renewed: renewed}
	n, _, alive, err := s.Sweep(context.Background(), s.ClaimsOf(worker), redisstore.SweepLimits{},
		[]redisstore.SweepAction{action})
	if n != 1 || alive || err != nil {
		b.T.Fatalf("swept %d, alive %v, %v", n, alive, err)
	}
}

// faulty returns a handle whose connections break as plan says.
func (b *bench) faulty(plan faultnet.Plan) (*Redis, *faultnet.Dialer) { return b.delayedBy(0, plan) }

// delayedBy is faulty for a plan with delays, which are that long.
func (b *bench) delayedBy(delay time.Duration, plan faultnet.Plan) (*Redis, *faultnet.Dialer) {
	d := faultnet.NewDialer(plan, delay)
	pool := &redis.Pool{
		MaxIdle: 10,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialContextFunc(d.DialContext),
				redis.DialReadTimeout(redisstore.CallTimeout))
		},
	}
	b.T.Cleanup(func() { pool.Close() })
	return FromSource(redisstore.PoolSource{Pool: pool}), d
}

// calls reports whether a request runs the given script.
func calls(sc *redisstore.Script) func([]byte) bool {
	return func(request []byte) bool { return bytes.Contains(request, []byte(sc.Sha)) }
}

func dropped(d *faultnet.Dialer) int64 {
	c := d.Counts()
	return c.DroppedRequests + c.DroppedReplies
}

// logText collects what is logged.
type logText struct{ redistest.Log }

func (l *logText) logger() logrus.FieldLogger { return l.Logger() }
