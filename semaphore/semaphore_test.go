package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/semaphore"
)

func TestMain(m *testing.M) {
	if url := os.Getenv("SEMAPHORE_HOLDER"); url != "" {
		holdForEver(url, os.Getenv("SEMAPHORE_NAME"))
	}
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

var bg = context.Background()

// bench has a queue and a name for a semaphore of its own.
type bench struct {
	*redistest.Bench
	rdb *delayed.Store
	log *redistest.Log
}

func newBench(t *testing.T) *bench {
	t.Helper()
	server := redistest.Shared(t)
	b := &bench{Bench: redistest.NewBench(t, server), log: new(redistest.Log)}
	b.Log = b.log
	b.rdb = b.dial(server.URL())
	return b
}

func (b *bench) dial(url string) *delayed.Store {
	b.T.Helper()
	rdb, err := delayed.Dial(url)
	b.Must(err)
	b.T.Cleanup(func() { rdb.Close() })
	return rdb
}

// sem returns the semaphore of the test with some places, for holders with a handle.
func (b *bench) sem(rdb *delayed.Store, places int, lease time.Duration) *semaphore.Semaphore {
	b.T.Helper()
	s, err := semaphore.New(rdb, semaphore.Config{
		Name: b.Name, Places: places, Lease: lease, Again: 10 * time.Millisecond,
	})
	b.Must(err)
	return s
}

// take takes a place until the test ends.
func (b *bench) take(s *semaphore.Semaphore) *semaphore.Place {
	b.T.Helper()
	p, err := s.TryAcquire(bg)
	b.Must(err)
	b.T.Cleanup(func() { p.Release() }) //nolint:errcheck // Redis may be away
	return p
}

// acquire waits for a place.
func (b *bench) acquire(s *semaphore.Semaphore) *semaphore.Place {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(bg, redistest.Patience)
	defer cancel()
	p, err := s.Acquire(ctx)
	b.Must(err)
	return p
}

func (b *bench) busy(s *semaphore.Semaphore) {
	b.T.Helper()
	if _, err := s.TryAcquire(bg); !errors.Is(err, semaphore.ErrBusy) {
		b.T.Errorf("expected ErrBusy, found %v", err)
	}
}

// work runs a worker until the test ends.
func (b *bench) work(fns ...any) {
	b.T.Helper()
	w, err := delayed.NewWorker(b.dial(b.Server.URL()), delayed.WorkerConfig{
		Queues: delayed.Strict{b.Name}, Concurrency: 5, Grace: 5 * time.Second, CancelGrace: time.Second,
		Logger: b.log.Logger(), Backoff: func(int) time.Duration { return time.Millisecond },
	})
	b.Must(err)
	b.Must(w.Register(fns...))
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	b.T.Cleanup(func() {
		cancel()
		if err := redistest.Await(b.Bench, "the worker's end", done); err != nil {
			b.T.Error(err)
		}
	})
}

// TestMiddleware has two workers with ten executors run tasks for which there are three places.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const tasks, places = 40, 3
	var now, most, ended atomic.Int64
	full := make(chan struct{})
	q := delayed.NewQueue(b.Name, b.rdb)
	for range 2 {
		s := b.sem(b.rdb, places, 0)
		b.work(delayed.Func(func(context.Context) {
			n := now.Add(1)
			if n == places && most.Load() < places {
				defer close(full)
			}
			most.Store(max(most.Load(), n))
			if n < places {
				select {
				case <-full: // all places were taken at once
				case <-time.After(redistest.Patience):
				}
			}
			now.Add(-1)
			ended.Add(1)
		}, delayed.Name("limited"), delayed.Middleware(s.Middleware)))
	}
	for range tasks {
		_, err := q.DelayMany(bg, delayed.NewGoTask("limited"))
		b.Must(err)
	}
	b.Until("all have run", func() bool { return ended.Load() == tasks })
	b.Until("all have ended", func() bool { return b.Size("") == 0 && b.Size("_scheduled") == 0 })
	if most.Load() != places {
		t.Errorf("%d ran at once, expected %d", most.Load(), places)
	}
	day := "_stats:" + time.UnixMilli(redistest.Time(t, b.Conn)).UTC().Format("20060102")
	var counted map[string]int
	b.Until("all are counted", func() bool {
		var err error
		counted, err = redis.IntMap(b.Do("HGETALL", b.Name+day), nil)
		b.Must(err)
		return counted["processed"] == tasks
	})
	if counted["failed"] != 0 {
		t.Errorf("counted %v, expected no failure", counted)
	}
	// A task that is counted has left the middleware, which gave back its place.
	if holders, err := b.sem(b.rdb, 1, 0).Holders(bg); err != nil || len(holders) > 0 {
		t.Errorf("places are left: %v, %v", holders, err)
	}
}

// TestPlaceIsKept holds a place for longer than its lease, and gives it back.
func TestPlaceIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.sem(b.rdb, 1, time.Second), b.sem(b.rdb, 2, time.Second)
	p := b.take(one)
	before := redistest.Time(t, b.Conn)
	b.busy(one)
	b.Until("more than two leases are over", func() bool { return redistest.Time(t, b.Conn) > before+2100 })
	b.busy(one)
	second := b.take(two) // a program that gives another number
	b.busy(two)
	b.Must(second.Release())
	holders, err := one.Holders(bg)
	if host, _ := os.Hostname(); err != nil || len(holders) != 1 ||
		!strings.HasPrefix(holders[0], fmt.Sprintf("%s:%d:", host, os.Getpid())) {
		t.Errorf("holders are %q, %v", holders, err)
	}
	select {
	case <-p.Lost():
		t.Error("the place was lost")
	default:
	}
	waits := make(chan error, 1)
	go func() {
		p, err := one.Acquire(bg)
		if err == nil {
			err = p.Release()
		}
		waits <- err
	}()
	b.Must(p.Release())
	b.Must(p.Release()) // does nothing
	b.Must(redistest.Await(b.Bench, "the place", waits))
	if ttl := b.Int("PTTL", "delayed_semaphore:"+b.Name); ttl > 1000 {
		t.Errorf("the key lives for %d ms", ttl)
	}
}

// TestHolderLosesRedis cuts a holder off: it learns that its place is lost, and another one gets it.
func TestHolderLosesRedis(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	line := faultnet.NewProxy(t, b.Server.Addr())
	far := b.sem(b.dial(line.URL()), 2, time.Second)
	near := b.sem(b.rdb, 2, time.Second)
	p := b.take(far)
	b.take(near) // which keeps the key alive
	b.busy(near)
	line.BlackHole()
	redistest.Await(b.Bench, "the loss of the place", p.Lost())
	other := b.acquire(near)
	line.Heal()
	b.Must(p.Release()) // it has none any more
	b.busy(near)
	b.Must(other.Release())
}

// TestHandlerLosesItsPlace runs a handler whose place somebody else takes away.
func TestHandlerLosesItsPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sem(b.rdb, 1, time.Second)
	started, causes := make(chan struct{}, 1), make(chan error, 2)
	var runs atomic.Int64
	b.work(delayed.Func(func(ctx context.Context) error {
		if runs.Add(1) > 1 {
			causes <- nil
			return nil
		}
		started <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	}, delayed.Name("limited"), delayed.Middleware(s.Middleware)))
	_, err := delayed.NewQueue(b.Name, b.rdb).DelayMany(bg, delayed.NewGoTask("limited"))
	b.Must(err)
	redistest.Await(b.Bench, "the start", started)
	var other *semaphore.Place
	b.Until("somebody else has the place", func() bool {
		b.Do("DEL", "delayed_semaphore:"+b.Name)
		other, err = s.TryAcquire(bg)
		return err == nil
	})
	if cause := redistest.Await(b.Bench, "the end of the context", causes); !errors.Is(cause, semaphore.ErrLost) {
		t.Errorf("the cause is %v, expected ErrLost", cause)
	}
	b.Must(other.Release())
	b.Must(redistest.Await(b.Bench, "the second run", causes))
}

// TestKilledHolder kills a process that has the only place.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	holder := b.startHolder()
	s := b.sem(b.rdb, 1, time.Second)
	b.Until("the process has the place", func() bool {
		holders, err := s.Holders(bg)
		b.Must(err)
		return len(holders) == 1
	})
	b.busy(s)
	holder.Kill()
	b.Must(b.acquire(s).Release())
}

// TestFullRedis renews leases while Redis has no memory for new data.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := &bench{Bench: redistest.NewBench(t, server)}
	s := b.sem(b.dial(server.URL()), 1, time.Second)
	p := b.take(s)
	b.Do("CONFIG", "SET", "maxmemory", "1")
	before := redistest.Time(t, b.Conn)
	b.Until("two leases are over", func() bool { return redistest.Time(t, b.Conn) > before+2000 })
	b.busy(s)
	b.Must(p.Release())
	b.take(s)
}

func TestAcquireEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sem(b.rdb, 1, 0)
	b.take(s)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := s.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	ctx, cancel = context.WithTimeout(bg, 30*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the time: %v", err)
	}
}

// TestLateAnswer gives a holder a place by an answer that comes when the lease is over.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	line := faultnet.NewProxy(t, b.Server.Addr())
	far, near := b.sem(b.dial(line.URL()), 1, time.Second), b.sem(b.rdb, 1, time.Second)
	b.Must(b.take(far).Release()) // so that it is connected, and Redis knows the script
	line.SetLatency(1100 * time.Millisecond)
	if _, err := far.TryAcquire(bg); err == nil || !strings.Contains(err.Error(), "longer than the lease") {
		t.Errorf("a place whose lease is over: %v", err)
	}
	b.Must(b.acquire(near).Release())
}

// TestContextEndsInACall lets a context end while Redis does not answer.
func TestContextEndsInACall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	line := faultnet.NewProxy(t, b.Server.Addr())
	s := b.sem(b.dial(line.URL()), 1, 0)
	b.Must(b.take(s).Release())
	line.Hold()
	defer line.Heal()
	for range 50 { // the deadline of the connection may end before the context, or after it
		ctx, cancel := context.WithTimeout(bg, 5*time.Millisecond)
		_, err := s.Acquire(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("expected the error of the context, found %v", err)
		}
	}
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for want, cfg := range map[string]semaphore.Config{
		`Config.Name is ""`:                       {Places: 1},
		`Config.Name is "a b"`:                    {Name: "a b", Places: 1},
		"expected 1 to 128 bytes":                 {Name: strings.Repeat("x", 129), Places: 1},
		"Config.Places is 0: expected 1 to 10000": {Name: "x"},
		"Config.Places is 10001":                  {Name: "x", Places: 10_001},
		"Config.Lease is 1ms: expected at least":  {Name: "x", Places: 1, Lease: time.Millisecond},
		"Config.Again is -1ns":                    {Name: "x", Places: 1, Again: -1},
	} {
		if _, err := semaphore.New(b.rdb, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q, found %v", want, err)
		}
	}
	if _, err := semaphore.New(nil, semaphore.Config{Name: "x", Places: 1}); err == nil {
		t.Error("no handle is no error")
	}
	var none *semaphore.Semaphore
	if _, err := none.Acquire(bg); err == nil || !strings.Contains(err.Error(), "make it with New") {
		t.Errorf("a nil semaphore: %v", err)
	}
	if _, err := new(semaphore.Semaphore).Holders(bg); err == nil {
		t.Error("a zero semaphore has holders")
	}
	rdb := b.dial(b.Server.URL())
	s := b.sem(rdb, 1, 0)
	rdb.Close()
	if _, err := s.TryAcquire(bg); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("with a closed handle: %v", err)
	}
	if _, err := s.Holders(bg); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("with a closed handle: %v", err)
	}
}
