package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/sweep"
)

// heldSource returns no connection before the test releases it: until then a caller whose context ends gets an error,
// as with other sources.
type heldSource struct {
	Source
	held  chan struct{}
	tries chan time.Time
}

func (s heldSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	if s.tries != nil {
		s.tries <- time.Now()
	}
	<-s.held
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.Source == nil {
		return nil, errors.New("planted")
	}
	return s.Source.Conn(ctx, key)
}

func (s heldSource) Slot(string) int { return 0 }

// A caller that enqueues after all others have given up does not get the error of their wait for a connection.
func TestCoalescerAfterAllHaveLeft(t *testing.T) {
	b := newBench(t)
	src := heldSource{Source: b.rdb.loops, held: make(chan struct{})}
	s := redisstore.NewStore(src, "", b.Name)
	c := redisstore.NewCoalescer(s)
	ctx, leave := context.WithCancel(t.Context())
	sent := make(chan error, 2)
	send := func(ctx context.Context) {
		sent <- c.Enqueue(ctx, []redisstore.Envelope{{Message: []byte("m")}}, time.Now())
	}
	waiting := func(n int) func() bool {
		return func() bool {
			c.Mu.Lock()
			defer c.Mu.Unlock()
			return c.Last != nil && c.Last.Waiting == n
		}
	}
	go send(ctx)
	b.Until("one waits for a connection", waiting(1))
	leave()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves: %v", err)
	}
	next, cancel := context.WithCancel(t.Context())
	defer cancel()
	go send(next)
	b.Until("another comes", waiting(1))
	close(src.held)
	if err := <-sent; err != nil || b.Size("") != 1 {
		t.Errorf("who came later: %v, %d tasks pending", err, b.Size(""))
	}
}

// A shared call waits for replicas as long as the most patient caller would, whoever comes last.
func TestCoalescerWaitsAsTheMostPatient(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	src := heldSource{Source: b.rdb.loops, held: make(chan struct{})}
	s := redisstore.NewStore(src, "", b.Name)
	s.Wait = 1
	c := redisstore.NewCoalescer(s)
	sent := make(chan error, 2)
	for n, life := range []time.Duration{time.Hour, time.Second} {
		ctx, cancel := context.WithTimeout(t.Context(), life)
		defer cancel()
		go func() { sent <- c.Enqueue(ctx, []redisstore.Envelope{{Message: []byte("m")}}, time.Now()) }()
		b.Until("one more waits", func() bool {
			c.Mu.Lock()
			defer c.Mu.Unlock()
			return c.Last != nil && c.Last.Waiting == n+1
		})
	}
	if c.Mu.Lock(); c.Last.Within != redisstore.LongestWait {
		t.Errorf("replicas are waited for %v, expected %v", c.Last.Within, redisstore.LongestWait)
	}
	c.Mu.Unlock()
	close(src.held)
	<-sent
	<-sent
}

// A heartbeat that fails is tried again well within its life, however long that goes on.
func TestFailedHeartbeatIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := heldSource{held: make(chan struct{}), tries: make(chan time.Time, 10_000)}
		close(src.held)
		const life = 8 * time.Second
		l := lane.New(redisstore.NewStore(src, "", "q"), "w", false)
		log := loop.NewJournal((&logText{}).logger())
		h := beat.New([]*lane.Lane{l}, life, "v", sweep.NewLinkHealth(life), log, exec.New(1, 0, life, nil),
			beat.NewAnnouncer(nil, nil, nil, time.Hour, log))
		ctx, cancel := context.WithCancel(t.Context())
		go h.Run(ctx)
		<-time.After(5 * time.Minute)
		cancel()
		synctest.Wait()
		last := <-src.tries
		for len(src.tries) > 0 {
			at := <-src.tries
			if at.Sub(last) > life/8 {
				t.Fatalf("a try came %v after the last one, expected %v at most", at.Sub(last), life/8)
			}
			last = at
		}
	})
}

// parkedFunc reads pages of parked tasks.
type parkedFunc func(page []redisstore.Filed) (ids []string)

func (f parkedFunc) RunnableParked(_ context.Context, _ *lane.Lane, page []redisstore.Filed) ([]string, error) {
	return f(page), nil
}

// A mover that reads parked tasks continues after those that stay; those that it has found will be gone.
func TestMoverReadsOnBehindWhatStays(t *testing.T) {
	r := newReceivingWorker(t, nil)
	for i := range 3 * redisstore.ParkedPage {
		id := strings.Repeat("x", i+1)
		r.b.Do("ZADD", r.b.Name+"_parked", 1e15+float64(i), id)
		r.b.Do("HSET", r.b.Name+"_tasks", id, "m")
	}
	m, pages := r.slotGroups[0].mover, 0
	m.Parked = parkedFunc(func(page []redisstore.Filed) (ids []string) {
		if pages++; pages < 2 {
			return nil
		}
		for _, t := range page[:60] {
			ids = append(ids, t.ID)
		}
		return ids
	})
	r.b.Must(m.FindParked(t.Context(), 0, 3*redisstore.ParkedPage))
	if want := 2*redisstore.ParkedPage - 60; m.Offset[0] != want || pages != 2 {
		t.Errorf("%d pages read, the next from %d on, expected 2 and %d", pages, m.Offset[0], want)
	}
	// After the last page the mover begins again, because the worker may know more functions by then.
	m.Parked = parkedFunc(func([]redisstore.Filed) []string { pages++; return nil })
	for _, want := range []int{5, 8} {
		r.b.Must(m.FindParked(t.Context(), 0, 3*redisstore.ParkedPage))
		if m.Offset[0] != 0 || pages != want {
			t.Errorf("%d pages read, the next from %d on, expected %d and 0", pages, m.Offset[0], want)
		}
	}
}

// The fetcher does not look again at once at a queue that it found empty.
func TestEmptyQueueIsNotedAsProbed(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.fetcher.Probe(t.Context())
	if r.fetcher.Queues[0].EmptyAt.IsZero() || r.fetcher.Queues[0].HasTasks {
		t.Errorf("probed %v, hot %v", r.fetcher.Queues[0].EmptyAt, r.fetcher.Queues[0].HasTasks)
	}
}
