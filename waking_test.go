package delayed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// waker is a worker whose waits and looks last for an hour: a task starts in time only if the worker waits on the very queue, or claims from it.
type waker struct {
	*bench
	rng     *rand.Rand
	queues  []*Queue
	paused  []bool
	order   bool // to the worker
	own     bool // the worker has paused itself
	w       *started
	f       any
	entered chan int
	tasks   int
}

func (k *waker) start() {
	k.t.Helper()
	order := Weighted{}
	for i, q := range k.queues {
		order[q.Name()] = i + 1
	}
	cfg := k.config()
	cfg.Queues, cfg.NoSweeper = order, true
	w, err := NewWorker(k.rdb, cfg)
	k.must(err)
	k.must(w.Register(k.f))
	for _, wt := range w.fetcher.waiters {
		wt.limit = time.Hour
	}
	for _, g := range w.groups {
		g.mover.every = time.Hour
	}
	k.order, k.own = false, false
	k.w = k.bench.start(w)
}

// sure does something until it succeeds: connections are killed now and then.
func (k *waker) sure(do func(context.Context) error) {
	k.t.Helper()
	k.until("it is done", func() bool { return do(k.t.Context()) == nil })
}

// change does something at random that changes what the worker waits on, or how.
func (k *waker) change() string {
	k.t.Helper()
	i := k.rng.IntN(len(k.queues))
	q := k.queues[i]
	switch op := k.rng.IntN(12); op {
	case 0, 1, 2:
		k.sure(q.Pause)
		k.paused[i] = true
		return "pause " + q.Name()
	case 3, 4, 5:
		k.sure(q.Resume)
		k.paused[i] = false
		return "resume " + q.Name()
	case 6:
		on := k.rng.IntN(2) == 0
		if on {
			k.sure(Fleet(k.queues).Pause)
		} else {
			k.sure(Fleet(k.queues).Resume)
		}
		for i := range k.paused {
			k.paused[i] = on
		}
		return fmt.Sprint("fleet ", on)
	case 7:
		if k.order = !k.order; k.order {
			k.sure(k.queues[0].Worker(k.w.ID()).Pause)
		} else {
			k.sure(k.queues[0].Worker(k.w.ID()).Resume)
		}
		return fmt.Sprint("order to pause ", k.order)
	case 8:
		if k.own = !k.own; k.own {
			k.w.Pause()
		} else {
			k.w.Resume()
		}
		return fmt.Sprint("own pause ", k.own)
	case 9:
		weight := 1 + k.rng.IntN(100)
		k.sure(func(ctx context.Context) error { return q.SetWeight(ctx, weight) })
		return "weight of " + q.Name()
	case 10:
		k.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		return "all connections are lost"
	default:
		k.w.mustStop()
		k.start()
		return "restart"
	}
}

// Whenever a served queue is not paused, has a task, and an executor is free, the worker waits on that queue or claims from it.
func TestWorkerWaitsOnEveryQueueThatIsNotPaused(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	k := &waker{bench: newBenchOn(t, redistest.Start(t)), rng: rand.New(rand.NewPCG(seed, 0)), entered: make(chan int, 100)}
	for i := range 3 {
		k.queues = append(k.queues, NewQueue(fmt.Sprint(k.name, i), k.rdb))
	}
	k.paused = make([]bool, len(k.queues))
	k.f = k.fn("f", func(i int) { k.entered <- i })
	k.start()
	var did []string
	for range 150 {
		for range 1 + k.rng.IntN(3) {
			did = append(did, k.change())
		}
		if k.order || k.own {
			k.w.Resume()
			k.sure(k.queues[0].Worker(k.w.ID()).Resume)
			k.order, k.own = false, false
		}
		<-time.After(time.Duration(k.rng.IntN(30)) * time.Millisecond) // sometimes the worker has done all that by now, sometimes not
		for i, q := range k.queues {
			if k.paused[i] {
				continue
			}
			k.tasks++
			_, err := q.Delay(k.f, k.tasks)
			for err != nil { // its connection was killed
				_, err = q.Delay(k.f, k.tasks)
			}
			select {
			case n := <-k.entered:
				for n != k.tasks { // an earlier one whose connection was killed
					n = <-k.entered
				}
			case <-time.After(patience):
				t.Fatalf("seed %d: a task of %s does not start after %q", seed, q.Name(), did[max(0, len(did)-8):])
			}
		}
	}
}

// A key of the wrong type that a worker waits on costs no more than the back-off allows, also while claims succeed.
func TestFailedWaitsBackOff(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	b.do("SET", b.name+"_wake", "another type")
	ran := make(chan int)
	f := b.fn("f", func(i int) { ran <- i })
	begun := time.Now()
	b.work(b.config(), f)
	const waits = 6
	// 50 ms, doubled up to 2 s, ± 50 %, lie between them; on a busy machine more, never less.
	const shortest = (50 + 100 + 200 + 400 + 800) * time.Millisecond / 2
	for i := range waits {
		// Only with the next wait under way a task is added: one that begins later may find its notification and succeed.
		b.until("a wait", func() bool { return b.server.CommandStats(t)["blpop"] > int64(i) })
		if i < waits-1 {
			b.delay(f, i)
			await(b, "a task", ran)
		}
	}
	if took := time.Since(begun); took < shortest {
		t.Errorf("%d failed waits within %v, expected at least %v", waits, took, shortest)
	}
	b.do("DEL", b.name+"_wake")
}

// A queue that is resumed is waited on at once: its notify list is among the keys of a wait that began while it was paused.
func TestResumedQueueIsWaitedOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := &waiter{lanes: []int{0, 1}, stores: []*store{b.q.store, newStore(b.rdb.loops, "", b.name+".x")}}
	rests := func(i int) bool { return i == 1 }
	if keys := w.keys([]int{0, 1}, rests, true, "w"); len(keys) != 5 {
		t.Errorf("keys %q", keys)
	}
	b.must(w.renew(t.Context(), rests, "w"))
	if n := b.size("_rewait:w"); n != 0 {
		t.Error("the wait was ended for a queue that rests")
	}
	for range 2 {
		b.must(w.renew(t.Context(), func(int) bool { return false }, "w"))
		if n, _ := redis.Int(b.do("LLEN", b.name+"_rewait:w"), nil); n != 1 {
			t.Errorf("%d notes to end the wait, expected one", n)
		}
	}
}
