//go:build unix

package delayed_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// plainSource is a source that a program has written: a pool that knows nothing of fail-overs.
type plainSource struct{ pool *redis.Pool }

func (s plainSource) Conn(ctx context.Context, _ string) (redis.Conn, error) {
	return s.pool.GetContext(ctx)
}
func (s plainSource) Slot(string) int { return 0 }
func (s plainSource) Close() error    { return s.pool.Close() }

// handles are the ways in which a program may reach the server behind an address.
var handles = map[string]func(url string) (*delayed.Redis, error){
	"Dial":       delayed.Dial,
	"FromPool":   func(url string) (*delayed.Redis, error) { return delayed.FromPool(poolOf(url)), nil },
	"FromSource": func(url string) (*delayed.Redis, error) { return delayed.FromSource(plainSource{poolOf(url)}), nil },
}

func poolOf(url string) *redis.Pool {
	return &redis.Pool{
		MaxIdle: 30,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, url, redis.DialReadTimeout(20*time.Second))
		},
	}
}

// traffic is a program that uses delayed in every way, through one handle for each.
type traffic struct {
	b        *bench
	q        *delayed.Queue
	stop     context.CancelFunc
	wg       sync.WaitGroup
	next     atomic.Int64
	accepted sync.Map // the numbers of tasks that Redis has accepted
	ran      sync.Map // how often each has run
	refused  atomic.Int64
	worker   *started
	// What has gone well lately.
	enqueued, done, awaited, read, ticked atomic.Int64
}

// startTraffic starts producers, a worker, a scheduler, programs that wait for results, read, and listen to events.
func startTraffic(b *bench, dial func() *delayed.Redis) *traffic {
	t := &traffic{b: b}
	work := delayed.Func(func(n int64) int64 {
		count, _ := t.ran.LoadOrStore(n, new(atomic.Int64))
		count.(*atomic.Int64).Add(1) //nolint:errcheck // it is one
		t.done.Add(1)
		return n
	}, delayed.Name("failover.work"))
	tick := delayed.Func(func() { t.ticked.Add(1) }, delayed.Name("failover.tick"))
	t.worker = b.workWith(dial(), b.config(), work, tick)
	scheduler, err := delayed.NewScheduler(dial(), delayed.SchedulerConfig{
		Queue: b.Name, Entries: []delayed.Entry{{Name: "tick", Spec: "@every 1s", Task: delayed.Call(tick)}},
		Owner: "failover", Logger: b.log.Logger(),
	})
	b.Must(err)
	t.q = delayed.NewQueue(b.Name, dial())
	var ctx context.Context
	ctx, t.stop = context.WithCancel(b.T.Context())
	t.wg.Go(func() {
		if err := scheduler.Run(ctx); err != nil {
			b.T.Errorf("Scheduler.Run: %v", err)
		}
	})
	loop := func(once func() error) {
		t.wg.Go(func() {
			for ctx.Err() == nil {
				if err := once(); err != nil {
					t.refused.Add(1)
				}
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	for range 4 {
		loop(func() error {
			n := t.next.Add(1)
			_, err := t.q.DelayContext(ctx, work, n)
			if err == nil {
				t.accepted.Store(n, true)
				t.enqueued.Add(1)
			}
			return err
		})
	}
	waits, reads := delayed.NewQueue(b.Name, dial()), delayed.NewQueue(b.Name, dial())
	loop(func() error {
		ref, err := t.q.With(delayed.KeepResult(time.Minute)).DelayContext(ctx, work, t.next.Add(1))
		if err != nil {
			return err
		}
		_, err = delayed.Await[int64](ctx, waits.Ref(ref.ID()))
		if err == nil {
			t.awaited.Add(1)
		}
		return err
	})
	loop(func() error {
		_, err := reads.Len(ctx)
		if err == nil {
			t.read.Add(1)
		}
		return err
	})
	return t
}

// goesOn waits until everything has gone well again, and returns how long each thing took.
func (t *traffic) goesOn() string {
	t.b.T.Helper()
	start, report := time.Now(), ""
	left := map[string]func() bool{"connected": func() bool { return t.worker.Status().Connected }}
	for what, count := range map[string]*atomic.Int64{
		"enqueue": &t.enqueued, "run": &t.done, "await": &t.awaited, "read": &t.read, "tick": &t.ticked,
	} {
		before := count.Load()
		left[what] = func() bool { return count.Load() > before+1 } // the first may have begun before
	}
	t.b.Until("everything goes on", func() bool {
		for what, well := range left {
			if well() {
				report += fmt.Sprintf(" %s %v", what, time.Since(start).Round(time.Millisecond))
				delete(left, what)
			}
		}
		return len(left) == 0
	})
	return report
}

// end stops the producers and the scheduler, expects that every accepted task has run, and stops the worker.
func (t *traffic) end() {
	t.b.T.Helper()
	t.stop()
	t.wg.Wait()
	t.b.Until("all accepted tasks have run", func() bool {
		left := 0
		t.accepted.Range(func(n, _ any) bool {
			if _, ran := t.ran.Load(n); !ran {
				left++
			}
			return true
		})
		return left == 0
	})
	t.b.Idle()
	t.worker.mustStop()
}

// TestFailOverBehindOneAddress makes the replica behind an address the master, and the master its replica, while old
// connections stay open.
func TestFailOverBehindOneAddress(t *testing.T) {
	t.Parallel()
	for name, dial := range handles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := redistest.StartPair(t)
			b := newBenchOn(t, pair.Master())
			traffic := startTraffic(b, func() *delayed.Redis { return b.dial(dial, pair.URL()) })
			for i := range *failOvers {
				traffic.goesOn()
				pair.Settled(t)
				pair.FailOver(t, i%2 == 0)
				b.Conn = pair.Master().Dial(t)
				t.Logf("fail-over %d:%s", i+1, traffic.goesOn())
			}
			traffic.end()
			t.Logf("%d tasks, %d errors of producers and readers", traffic.next.Load(), traffic.refused.Load())
			b.Check(redistest.Invariants{Idle: true})
		})
	}
}

var (
	failOvers = flag.Int("failovers", 3, "fail-overs behind one address")
	halfOpen  = flag.Bool("half-open", false, "drop the packets of each connection in turn")
)

// dial returns a handle that is closed at the end of the test.
func (b *bench) dial(dial func(string) (*delayed.Redis, error), url string) *delayed.Redis {
	b.T.Helper()
	rdb, err := dial(url)
	b.Must(err)
	b.T.Cleanup(func() { rdb.Close() })
	return rdb
}

// TestSubscriptionOnADemotedMaster: nothing is published on a replica, and no error says so. A program that does
// nothing but wait still hears of the end of a task.
func TestSubscriptionOnADemotedMaster(t *testing.T) {
	t.Parallel()
	for name, dial := range handles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := redistest.StartPair(t)
			b := newBenchOn(t, pair.Master())
			waits := b.dial(dial, pair.URL())
			delayed.Signals(waits).Again = time.Hour // it only listens
			q := delayed.NewQueue(b.Name, b.dial(delayed.Dial, pair.URL()))
			f := b.fn("f", func() int { return 7 })
			ref, err := q.With(delayed.KeepResult(time.Minute)).Delay(f)
			b.Must(err)
			answer := make(chan error, 1)
			go func() {
				_, err := delayed.Await[int](t.Context(), delayed.NewQueue(b.Name, waits).Ref(ref.ID()))
				answer <- err
			}()
			subscribed := func(s *redistest.Server) bool {
				channels, err := redis.Strings(s.Do(t, "PUBSUB", "CHANNELS", b.Name+"_ended:*"), nil)
				return err == nil && len(channels) == 1
			}
			b.Until("it listens", func() bool { return subscribed(pair.Master()) })
			pair.FailOver(t, false)
			b.Conn = pair.Master().Dial(t)
			b.Until("it listens to the new master", func() bool { return subscribed(pair.Master()) })
			b.workWith(b.dial(delayed.Dial, pair.URL()), b.config(), f)
			b.Must(await(b, "the end of the task", answer))
		})
	}
}

// TestHalfOpenConnections drops the packets of some connections, of whatever use, and then of all. With -half-open, it
// does so to each of them in turn.
func TestHalfOpenConnections(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	proxy := faultnet.NewProxy(t, b.Server.Addr())
	traffic := startTraffic(b, func() *delayed.Redis { return b.dial(delayed.Dial, proxy.URL()) })
	strand := func(which string, is func(n int) bool) (of int) {
		traffic.goesOn()
		of = proxy.Strand(is)
		t.Logf("%s of %d connections:%s", which, of, traffic.goesOn())
		return of
	}
	if *halfOpen {
		for n, of := 0, 1; n < of; n++ {
			of = strand(fmt.Sprint("number ", n), func(i int) bool { return i == n })
		}
	}
	strand("every second", func(n int) bool { return n%2 == 0 })
	red := make(chan bool, 1)
	go func() {
		for traffic.worker.Status().Connected && t.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		red <- true
	}()
	strand("all", func(int) bool { return true })
	await(b, "the worker's health to be red meanwhile", red)
	traffic.end()
	b.Check(redistest.Invariants{Idle: true})
}

// TestServerThatClosesIdleConnections: a call on a connection that the server has closed meanwhile is not sent there,
// so it never ends in ErrUnknown.
func TestServerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t, "--timeout", "1"))
	q := delayed.NewQueue(b.Name, b.dial(delayed.Dial, b.Server.URL()))
	f := b.fn("f", func(int) {})
	for i := range 3 {
		if _, err := q.Delay(f, i); err != nil {
			t.Fatalf("after the server has closed connections %d times: %v", i, err)
		}
		b.Until("the server has closed the idle connections", func() bool {
			list, err := redis.String(b.Server.Do(t, "CLIENT", "LIST"), nil)
			return err == nil && !strings.Contains(list, "name=delayed")
		})
	}
}

// TestHeartbeatsOnAServerThatClosesIdleConnections: heartbeats that are further apart do not fail.
func TestHeartbeatsOnAServerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t, "--timeout", "1"))
	cfg := b.config()
	cfg.HeartbeatLife, cfg.NoSweeper = 10*time.Second, true
	w := b.work(cfg)
	for range 2 {
		beat := w.Status().Beat
		b.Until("the next heartbeat", func() bool { return w.Status().Beat.After(beat) })
	}
	w.mustStop()
	if text := b.log.String(); strings.Contains(text, "heartbeat") {
		t.Error(text)
	}
	b.Conn = b.Server.Dial(t)
	b.Check(redistest.Invariants{Idle: true})
}

// TestStopIsBoundedWhileRedisIsFrozen waits longer than all other tests of the package, so they run while it does.
func TestStopIsBoundedWhileRedisIsFrozen(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t))
	entered, cancelled := make(chan struct{}), make(chan time.Time, 1)
	f := b.fn("f", func(ctx context.Context) { close(entered); <-ctx.Done(); cancelled <- time.Now() })
	cfg := b.config()
	cfg.Grace, cfg.CancelGrace = 500*time.Millisecond, 500*time.Millisecond
	names := delayed.Strict{b.Name}
	for i := range 10 {
		names = append(names, fmt.Sprintf("%s%d", b.Name, i))
	}
	cfg.Queues = names
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	type end struct {
		err error
		at  time.Time
	}
	result := make(chan end, 1)
	go func() {
		err := w.Run(ctx)
		result <- end{err, time.Now()}
	}()
	b.Until("connected", func() bool { return w.Status().Connected })
	b.delay(f)
	await(b, "the task", entered)
	b.Server.Pause(t)
	start := time.Now()
	cancel()
	t.Parallel() // which returns when the other tests that are not parallel have run
	at := <-cancelled
	t.Logf("handler told to stop after %v", at.Sub(start))
	if d := at.Sub(start); d > 7*time.Second {
		limits.Errorf(t, "the handler was told to stop after %v; Grace is %v", d, cfg.Grace)
	}
	ended := <-result
	d := ended.at.Sub(start)
	t.Logf("Run returned after %v: %v", d, ended.err)
	if d > 30*time.Second {
		limits.Errorf(t, "Run returned after %v", d)
	}
	b.Server.Resume(t)
}

func TestDelayContextIsBoundedWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	f := b.fn("f", func() {})
	src, _, _, err := redisstore.DialSources(b.Server.URL())
	b.Must(err)
	rdb := delayed.FromSource(src)
	defer rdb.Close()
	var conns []redis.Conn
	for range 4 {
		c, err := src.Conn(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do("PING"); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for _, c := range conns {
		c.Close()
	}
	// As if they had idled for so long that a PING tests them.
	pool := src.(redisstore.PoolSource).Pool //nolint:errcheck // fails the test
	check := pool.TestOnBorrowContext
	pool.TestOnBorrowContext = func(ctx context.Context, c redis.Conn, used time.Time) error {
		return check(ctx, c, used.Add(-redisstore.PingAfter))
	}
	b.Server.Pause(t)
	defer b.Server.Resume(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = delayed.NewQueue(b.Name, rdb).DelayContext(ctx, f)
	if took := time.Since(start); took > 3*time.Second {
		limits.Errorf(t, "a call bounded by 500 ms took %v: %v", took, err)
	}
}
