package engine

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestLostReplyOfClaimIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(i int) { ran <- i })
	b.work(b.config(), f).mustStop() // so that Redis knows the scripts
	armed := atomic.Bool{}
	rdb, dialer := b.faulty(faultnet.Once(faultnet.DropReply,
		func(r []byte) bool { return armed.Load() && calls(redisstore.Scripts["claim"])(r) }))
	w := b.workWith(rdb, b.config(), f)
	b.Until("the first look, which finds nothing, is over", func() bool { return w.lanes[0].Newest() > 0 })
	armed.Store(true)
	b.delay(f, 1)
	if i := await(b, "the task", ran); i != 1 {
		t.Fatalf("ran %d", i)
	}
	b.Idle()
	if dropped(dialer) == 0 {
		t.Fatal("no reply was dropped")
	}
	if !strings.Contains(b.log.String(), "gave back tasks whose claim got no reply") {
		t.Errorf("log:\n%s", b.log)
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// If a notification was lost with the reply of a wait, the worker looks for its task at once. In this test no other
// worker would find it.
func TestLostReplyOfAWaitIsFollowedByALook(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(i int) { ran <- i })
	waits := make(chan bool, 1)
	rdb, dialer := b.faulty(faultnet.Once(faultnet.DropReply, func(request []byte) bool {
		wait := bytes.Contains(request, []byte("BLPOP"))
		if wait && len(waits) == 0 {
			waits <- true
		}
		return wait
	}))
	cfg := b.config()
	cfg.NoSweeper = true
	w, err := NewWorker(rdb, cfg)
	b.Must(err)
	b.Must(w.Register([]*Function{f}, nil))
	w.slotGroups[0].mover.Fetcher = nobody{}
	s := b.start(w)
	await(b, "the worker to wait", waits)
	b.delay(f, 1)
	if i := await(b, "the task", ran); i != 1 {
		t.Errorf("ran %d", i)
	}
	b.Idle()
	s.mustStop()
	if n := dropped(dialer); n != 1 {
		t.Errorf("%d replies were dropped, expected 1", n)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// If Redis has lost the heartbeat of a worker, the worker registers when a claim shows that, and not only when its next
// heartbeat is due.
func TestForgottenWorkerRegistersWhenItClaims(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(i int) { ran <- i })
	cfg := b.config()
	cfg.HeartbeatLife = 10 * time.Minute
	w := b.work(cfg, f)
	b.Do("DEL", b.Name+"_worker:"+w.ID())
	b.delay(f, 1)
	if i := await(b, "the task", ran); i != 1 {
		t.Errorf("ran %d", i)
	}
}

// TestClaimThatFailsOnItsWayIsGivenBack makes claim fail after it has stored the task: the user may not run its last
// write command.
func TestClaimThatFailsOnItsWayIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	ran := make(chan int, 10)
	f := b.fn("f", func(i int) { ran <- i })
	const tasks = 100 // more than the first claim takes, which therefore removes some notifications, not all
	for i := range tasks {
		b.delay(f, i)
	}
	b.Do("ACL", "SETUSER", "default", "-lpop")
	w := b.work(b.config(), f)
	b.Until("tasks are claimed", func() bool { return b.Size("_processing:"+w.ID()) > 0 })
	b.Do("ACL", "SETUSER", "default", "+lpop")
	times := map[int]int{}
	for range tasks {
		times[await(b, "a task", ran)]++
	}
	if len(times) != tasks {
		t.Errorf("ran %v", times)
	}
	b.Idle()
	w.mustStop()
	b.Check(redistest.Invariants{Idle: true})
}

func TestLostReplyOfAckIsSentAgain(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(int) { ran.Add(1) })
	b.work(b.config(), f).mustStop()
	for _, fault := range []faultnet.Fault{faultnet.DropReply, faultnet.DropRequest} {
		ran.Store(0)
		rdb, dialer := b.faulty(faultnet.Once(fault, calls(redisstore.Scripts["ack"])))
		w := b.workWith(rdb, b.config(), f)
		tasks := int64(0)
		b.Until("a task is acknowledged by a call of its own, and not with a claim", func() bool {
			b.delay(f, 1)
			tasks++
			b.Idle()
			return dropped(dialer) == 1
		})
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		if ran.Load() != tasks {
			t.Errorf("%v: %d tasks ran %d times, %v", fault, tasks, ran.Load(), dialer.Counts())
		}
		b.Check(redistest.Invariants{Idle: true})
	}
	if n := b.counters()["lost"]; n != 0 {
		t.Errorf("%d claims counted as lost; a repeated ack finds nothing because it has been carried out", n)
	}
}

func TestLostReplyOfRetryDoesNotDouble(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(int) error {
		if ran.Add(1) == 1 {
			return errors.New("once")
		}
		return nil
	})
	b.work(b.config(), f).mustStop()
	rdb, dialer := b.faulty(faultnet.Once(faultnet.DropReply, calls(redisstore.Scripts["shelve"])))
	w := b.workWith(rdb, b.config(), f)
	b.delay(f, 1)
	b.Until("it has run twice", func() bool { return ran.Load() == 2 })
	b.Idle()
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if ran.Load() != 2 || dropped(dialer) != 1 {
		t.Errorf("ran %d times, %v", ran.Load(), dialer.Counts())
	}
	b.Check(redistest.Invariants{Idle: true})
}

func TestHeartbeatThatExpiredLosesOnlyWhatWasTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	causes, entered, leave := make(chan error, 2), make(chan int, 4), make(chan struct{})
	f := b.fn("f", func(ctx context.Context, i int) {
		entered <- i
		select {
		case <-ctx.Done():
			causes <- context.Cause(ctx)
		case <-leave:
		}
	})
	cfg := b.config()
	cfg.Concurrency, cfg.NoSweeper = 2, true
	w := b.work(cfg, f)
	b.delay(f, 1)
	b.delay(f, 2)
	await(b, "a task", entered)
	await(b, "a task", entered)
	b.Do("DEL", b.Name+"_worker:"+w.ID())
	// Another worker's sweeper takes one of the two claims.
	from := b.q.store.ClaimsOf(w.ID())
	tokens, total, err := b.q.store.ClaimTokens(t.Context(), from, 1)
	if err != nil || total != 2 {
		t.Fatalf("%d claims, %v", total, err)
	}
	page, _, err := b.q.store.Claims(t.Context(), from, tokens)
	if err != nil || len(page) != 1 {
		t.Fatalf("%d claims, %v", len(page), err)
	}
	b.requeue(w.ID(), page[0], page[0].Message)
	if err := await(b, "a canceled context", causes); !errors.Is(err, lane.ErrLost) {
		t.Errorf("cause %v, expected ErrLost", err)
	}
	close(leave)
	b.Idle()
	b.Until("three runs", func() bool { return len(entered) == 1 }) // the task that was taken has run again
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if len(causes) != 0 {
		t.Error("the claim that stood was canceled too")
	}
	b.Check(redistest.Invariants{Idle: true})
	if c := b.counters(); c["lost"] != 1 || c["swept"] != 1 || c["processed"] != 2 {
		t.Errorf("counters %v", c)
	}
}

func TestPrefetchedTaskWaitsForFreshHeartbeat(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 4), make(chan struct{})
	f := b.fn("f", func(i int) { entered <- i; <-leave })
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch, cfg.NoSweeper = 1, 1, true
	w := b.work(cfg, f)
	b.delay(f, 1)
	b.delay(f, 2)
	await(b, "the first", entered)
	l := w.lanes[0]
	b.Until("the second is claimed", func() bool { known, _, _ := l.Count(); return known == 2 })
	// As after a pause of the process: the last heartbeat is old, and other workers have the prefetched tasks by now.
	old := time.Now().Add(-time.Minute)
	l.Confirmed.Store(&old)
	if l.Fresh(cfg.HeartbeatLife) {
		t.Fatal("an old heartbeat counts as fresh")
	}
	b.Do("DEL", b.Name+"_worker:"+w.ID())
	var token string
	for _, c := range l.OpenClaims() {
		if m, err := c.Parse(); err == nil && m.Payload[0] == 2 {
			token = c.Token
		}
	}
	b.Do("HDEL", b.Name+"_processing:"+w.ID(), token)
	close(leave)
	b.Until("the loss was noticed", func() bool { return b.counters()["lost"] >= 1 })
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if len(entered) != 0 {
		t.Error("a task ran whose claim was gone")
	}
}

func TestWorkerCarriesOnAfterRedisWasAway(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t, "--appendonly", "yes"))
	ran := make(chan int, 10)
	f := b.fn("f", func(i int) { ran <- i })
	w := b.work(b.config(), f)
	b.delay(f, 1)
	await(b, "the first", ran)
	for round := range 3 {
		b.Server.Kill(t)
		b.Server.Restart(t)
		b.Conn = b.Server.Dial(t)
		b.Until("a task is accepted", func() bool {
			_, err := b.q.DelayContext(t.Context(), f, round)
			return err == nil
		})
		await(b, "a task after the restart", ran)
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.log.String(), "trying again") {
		t.Errorf("the outage was not logged:\n%s", b.log)
	}
}

func TestIdleWaitLastsItsTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &redisstore.Link{Src: b.rdb.loops, Key: b.Name}
	defer l.HangUp()
	if _, err := l.Open(ctx); err != nil {
		t.Fatal(err)
	}
	// If a context can end, the connection's own timeout must not end the wait early.
	on := redisstore.WaitOn{Due: []*redisstore.Store{b.q.store}, Worker: "w"}
	if woken, err := redisstore.Wait(ctx, l, on, redisstore.WaitTime); woken.Store != nil || err != nil {
		t.Errorf("%+v, %v", woken, err)
	}
}

func TestWaitOnAnImpatientConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const timeout = 600 * time.Millisecond
	pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialReadTimeout(timeout))
	}}
	t.Cleanup(func() { pool.Close() })
	w := &fetch.Waiter{Link: redisstore.Link{Src: redisstore.PoolSource{Pool: pool}, Key: b.Name}}
	defer w.Link.HangUp()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	on := redisstore.WaitOn{Due: []*redisstore.Store{b.q.store}, Worker: "w"}
	if woken, err := w.Wait(ctx, on); woken.Store != nil || err != nil {
		t.Fatalf("%+v, %v", woken, err)
	}
	if w.Limit < redisstore.ShortestWait || w.Limit >= timeout {
		t.Errorf("waits %v; expected less than the connection's timeout of %v", w.Limit, timeout)
	}
}

// TestStopDuringRegistration stops a worker between its first registration and the answer to it, which comes late or
// never: Redis must not keep the worker registered.
func TestStopDuringRegistration(t *testing.T) {
	for _, fault := range []faultnet.Fault{faultnet.DelayReply, faultnet.DropReply} {
		t.Run(fault.String(), func(t *testing.T) {
			b := newBench(t)
			b.work(b.config()).mustStop() // so that Redis knows the scripts
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			once := faultnet.Once(fault, calls(redisstore.Scripts["register"]))
			rdb, dialer := b.faulty(func(request []byte) faultnet.Fault {
				f := once(request)
				if f == fault {
					stop()
				}
				return f
			})
			dialer.Delay = 100 * time.Millisecond
			w, err := NewWorker(rdb, b.config())
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
			if n := b.Size("_workers"); n != 0 {
				t.Errorf("Redis knows %d workers, expected none", n)
			}
		})
	}
}

// nobody is a fetcher that hears nothing.
type nobody struct{}

func (nobody) Nudge(int, bool) {}

func (nobody) Wake() {}
