package engine

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// waker is a worker whose waits and looks last for an hour: a task starts in time only if the worker waits on that
// queue, or claims from it.
type waker struct {
	*bench
	rng     *rand.Rand
	queues  []*Queue
	paused  []bool
	order   bool // an order to the worker
	own     bool // whether the worker has paused itself
	w       *started
	f       *Function
	entered chan int
	tasks   int
}

func (k *waker) start() {
	k.T.Helper()
	order := Weighted{}
	for i, q := range k.queues {
		order[q.Name()] = i + 1
	}
	cfg := k.config()
	cfg.Queues, cfg.NoSweeper = order, true
	cfg.Rest = time.Duration(k.rng.IntN(3)) * 10 * time.Millisecond // of each executor, behind each task
	w, err := NewWorker(k.rdb, cfg)
	k.Must(err)
	k.Must(w.Register([]*Function{k.f}, nil))
	for _, wt := range w.fetcher.Waiters {
		wt.Limit = time.Hour
	}
	for _, g := range w.slotGroups {
		g.mover.Every = time.Hour
	}
	k.order, k.own = false, false
	k.w = k.bench.start(w)
}

// sure repeats do until it succeeds, because the test kills connections at random.
func (k *waker) sure(do func(context.Context) error) {
	k.T.Helper()
	k.Until("it is done", func() bool { return do(k.T.Context()) == nil })
}

// change makes a random change that affects which queues the worker waits on, or how.
func (k *waker) change() string {
	k.T.Helper()
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
		for i, q := range k.queues {
			k.paused[i] = on
			if on {
				k.sure(q.Pause)
			} else {
				k.sure(q.Resume)
			}
		}
		return fmt.Sprint("all paused ", on)
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
		k.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		return "all connections are lost"
	default:
		k.w.mustStop()
		k.start()
		return "restart"
	}
}

// Whenever a queue is not paused and has a task, and an executor is free, the worker waits on that queue or claims from
// it.
func TestWorkerWaitsOnEveryQueueThatIsNotPaused(t *testing.T) {
	t.Parallel()
	for i := range 3 { // each with a server of its own, because they mostly wait for lost connections
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			testWaitsOnEveryQueue(t, 50)
		})
	}
}

func testWaitsOnEveryQueue(t *testing.T, rounds int) {
	t.Helper()
	seed := rand.Uint64()
	b := newBenchOn(t, redistest.Start(t))
	k := &waker{bench: b, rng: rand.New(rand.NewPCG(seed, 0)), entered: make(chan int, 100)}
	for i := range 3 {
		k.queues = append(k.queues, NewQueue(fmt.Sprint(k.Name, i), k.rdb))
	}
	k.paused = make([]bool, len(k.queues))
	k.f = k.fn("f", func(i int) { k.entered <- i })
	k.start()
	var did []string
	for range rounds {
		for range 1 + k.rng.IntN(3) {
			did = append(did, k.change())
		}
		if k.order || k.own {
			k.w.Resume()
			k.sure(k.queues[0].Worker(k.w.ID()).Resume)
			k.order, k.own = false, false
		}
		// Sometimes the worker has handled the changes by now, sometimes not.
		<-time.After(time.Duration(k.rng.IntN(30)) * time.Millisecond)
		for i, q := range k.queues {
			if k.paused[i] {
				continue
			}
			k.tasks++
			// Repeat it if its connection is killed: then the task may start twice.
			k.sure(func(ctx context.Context) error {
				_, err := q.DelayContext(ctx, k.f, k.tasks)
				return err
			})
			if !k.starts(k.tasks) {
				t.Fatalf("seed %d: a task of %s does not start after %q", seed, q.Name(), did[max(0, len(did)-8):])
			}
		}
	}
}

// starts reports whether a task starts; it forgets others that start before.
func (k *waker) starts(task int) bool {
	deadline := time.After(patience)
	for {
		select {
		case n := <-k.entered:
			if n == task {
				return true
			}
		case <-deadline:
			return false
		}
	}
}

// If a key on which a worker waits has the wrong type, that costs no more than the back-off allows, even while claims
// succeed.
func TestFailedWaitsBackOff(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	b.Do("SET", b.Name+"_wake", "another type")
	ran := make(chan int, 100)
	f := b.fn("f", func(i int) { ran <- i })
	b.work(b.config(), f)
	start := time.Now()
	end := time.After(2 * time.Second)
	for i := 0; ; i++ {
		b.delay(f, i)
		await(b, "a task", ran)
		select {
		case <-end:
			took := time.Since(start)
			// 50 ms, doubled up to 2 s, ± 50 %: at most ten in the first two seconds, and then one a second.
			if n := failedWaits(t, b.Server); n > 10+int(took/time.Second) {
				t.Errorf("%d waits have failed in %v", n, took)
			}
			if n := strings.Count(b.log.String(), "waiting for tasks again"); n > 0 {
				t.Errorf("%d log lines say that waits succeed again", n)
			}
			b.Do("DEL", b.Name+"_wake")
			return
		default:
		}
	}
}

// A notification that Redis finds before it looks at a key of the wrong type does not show that the next wait will
// succeed.
func TestRecoveredWait(t *testing.T) {
	t.Parallel()
	now := time.Now()
	wrong, broken := redis.Error("WRONGTYPE Operation against a key"), io.EOF
	for _, test := range []struct {
		name  string
		err   error
		wake  fetch.WakeUp
		after time.Duration
		want  bool
	}{
		{"a notification after an answer", wrong, fetch.WakeUp{Lane: 0, Held: 1}, time.Second, false},
		{"something is due after an answer", wrong, fetch.WakeUp{Lane: 0, Due: true}, time.Second, false},
		{"nothing after an answer: all keys were looked at", wrong, fetch.WakeUp{Lane: -1}, time.Second, true},
		{
			"a notification long after an answer", wrong,
			fetch.WakeUp{Lane: 0, Held: 1},
			loop.ComplaintInterval + time.Second,
			true,
		},
		{"a notification after a broken connection", broken, fetch.WakeUp{Lane: 0, Held: 1}, time.Second, true},
	} {
		w := &fetch.Waiter{}
		w.Failed(test.err, now)
		if !w.NoClaimsBefore.After(now) {
			t.Errorf("%s: no back-off", test.name)
		}
		if got := w.Recovered(test.wake, now.Add(test.after)); got != test.want {
			t.Errorf("%s: recovered %v, expected %v", test.name, got, test.want)
		}
	}
}

// failedWaits returns how many waits the server has answered with an error.
func failedWaits(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	stats, _ := redis.String(server.Do(t, "INFO", "commandstats"), nil)
	_, stats, _ = strings.Cut(stats, "cmdstat_blpop:")
	_, stats, _ = strings.Cut(stats, "failed_calls=")
	if _, err := fmt.Sscanf(stats, "%d", &n); err != nil {
		t.Fatalf("commandstats %q: %v", stats, err)
	}
	return n
}

// The worker waits on a resumed queue at once, although the wait under way began while the queue was paused and does
// not include its notify list.
func TestResumedQueueIsWaitedOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := &fetch.Waiter{
		Lanes:  []int{0, 1},
		Stores: []*redisstore.Store{b.q.store, redisstore.NewStore(b.rdb.loops, "", b.Name+".x")},
	}
	rests := func(i int) bool { return i == 1 }
	if on := w.WaitOn([]int{1, 0}, rests, true, "w"); !slices.Equal(on.Tasks, w.Stores[:1]) ||
		!slices.Equal(on.Suspects, on.Tasks) || !slices.Equal(on.Due, w.Stores) || on.Worker != "w" {
		t.Errorf("it waits on %+v", on)
	}
	b.Must(w.Renew(t.Context(), rests, "w"))
	if n := b.Size("_rewait:w"); n != 0 {
		t.Error("the wait was ended for a queue that rests")
	}
	b.Do("SET", b.Name+"_rewait:w", "of another type")
	if w.Renew(t.Context(), func(int) bool { return false }, "w") == nil {
		t.Error("the wait was ended by a key of another type")
	}
	b.Do("DEL", b.Name+"_rewait:w")
	for range 2 {
		b.Must(w.Renew(t.Context(), func(int) bool { return false }, "w"))
		if n, _ := redis.Int(b.Do("LLEN", b.Name+"_rewait:w"), nil); n != 1 {
			t.Errorf("%d notes to end the wait, expected one", n)
		}
	}
}

// A queue that was found paused rests until the worker has looked at the control hash, and no longer, because it may
// have been resumed meanwhile.
func TestRestOfAPausedQueueEndsWithALook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, err := NewWorker(b.rdb, b.config())
	b.Must(err)
	l := w.lanes[0]
	rests := func(when string, want bool) {
		t.Helper()
		if got := !l.RestsUntil().IsZero(); got != want {
			t.Errorf("%s: the queue rests: %v, expected %v", when, got, want)
		}
	}
	l.RestWhilePaused()
	rests("found paused", true)
	if len(l.Control.Poked) != 1 {
		t.Error("found paused: nobody was asked to look")
	}
	b.Do("SET", b.Name+"_control", "of another type")
	if w.ReadControl(t.Context(), l) == nil {
		t.Error("a look at a string succeeded")
	}
	rests("after a look that has failed", true)
	b.Do("UNLINK", b.Name+"_control")
	loop.Drain(w.exec.Changed)
	b.Must(w.ReadControl(t.Context(), l))
	rests("after a look", false)
	if len(w.exec.Changed) != 1 {
		t.Error("the fetcher was not woken after the look")
	}
	l.RestWhilePaused()
	rests("found paused again", true)
	b.Must(w.ReadControl(t.Context(), l))
	rests("after another look", false)
	l.Rest = lane.Rest{Until: time.Now()}
	b.Must(w.ReadControl(t.Context(), l))
	rests("Redis could not be asked", true)
}
