package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
)

// In strict order, later queues wait for a queue with which the worker is behind: it may have tasks. They do not if
// Redis does not answer for that queue.
func TestStrictOrderWhileBehind(t *testing.T) {
	for _, test := range []struct {
		name     string
		weighted bool
		away     bool
		waits    bool
	}{{name: "strict", waits: true}, {name: "strict, away", away: true}, {name: "weighted", weighted: true}} {
		t.Run(test.name, func(t *testing.T) {
			r := newReceivingWorker(t, func(cfg *WorkerConfig) {
				a := cfg.Queues.plan().Names[0]
				cfg.Queues = Strict{a, a + ".b", a + ".c"}
				if test.weighted {
					cfg.Queues = Weighted{a: 1, a + ".b": 1, a + ".c": 1}
				}
			})
			f := r.fetcher
			r.lanes[1].Unconfirmed.Store(lane.MaxUnconfirmed)
			if test.away {
				f.Queues[1].Waiter.NoClaimsBefore = time.Now().Add(time.Hour)
			}
			f.CheckBacklog()
			if a, b, c := f.Paused(0), f.Paused(1), f.Paused(2); a || !b || c != test.waits {
				t.Errorf("nothing may be claimed: %v, %v, %v, expected false, true, %v", a, b, c, test.waits)
			}
			r.lanes[1].EndingsRefused.Store(true)
			f.CheckBacklog()
			if a, b, c := f.Paused(0), f.Paused(1), f.Paused(2); a || !b || c {
				t.Errorf("while Redis refuses: %v, %v, %v, expected that only the queue itself is paused", a, b, c)
			}
			r.lanes[1].EndingsRefused.Store(false)
			r.lanes[1].Unconfirmed.Store(0)
			f.CheckBacklog()
			if a, b, c := f.Paused(0), f.Paused(1), f.Paused(2); a || b || c {
				t.Errorf("afterwards nothing may be claimed: %v, %v, %v", a, b, c)
			}
		})
	}
}

// Where Redis refuses the calls that end tasks of the first queue, the worker takes tasks of the second one.
func TestStrictOrderBesideRefusedEnds(t *testing.T) {
	b := newBench(t)
	fails := b.fn("fails", func(int) error { return Discard(errors.New("no luck")) })
	ran := make(chan int, 1)
	other := b.fn("other", func(i int) { ran <- i })
	for first := 0; first < 3*lane.MaxUnconfirmed; first += lane.MaxUnconfirmed {
		tasks := make([]*Task, lane.MaxUnconfirmed)
		for i := range tasks {
			tasks[i] = Call(fails, i)
		}
		_, err := b.q.DelayMany(t.Context(), tasks...)
		b.Must(err)
	}
	b.Do("SET", b.Name+"_archived", "of another type")
	cfg := b.config()
	cfg.Queues = Strict{b.Name, b.Name + ".later"}
	w := b.work(cfg, fails, other)
	b.Until("the worker is behind", w.lanes[0].Behind)
	b.delayWith(NewQueue(b.Name+".later", b.rdb), other, 1)
	if i := await(b, "the task of the later queue", ran); i != 1 {
		t.Errorf("ran %d", i)
	}
	b.Do("DEL", b.Name+"_archived")
	b.Until("all tasks have ended", func() bool { return b.Size("_archived") == 3*lane.MaxUnconfirmed })
}

// A claim that ends before large messages leaves tasks of its queue. In strict order they come before those of others.
func TestStrictOrderBehindAClaimThatEndsEarly(t *testing.T) {
	r := newReceivingWorker(t, func(cfg *WorkerConfig) {
		a := cfg.Queues.plan().Names[0]
		cfg.Queues, cfg.Concurrency = Strict{a, a + ".later"}, 10
	})
	for range 2 {
		r.b.delay(r.f, strings.Repeat("x", 700<<10))
	}
	later := NewQueue(r.b.Name+".later", r.b.rdb)
	r.b.delayWith(later, r.f, "small")
	r.b.Do("SET", r.b.Name+".later_worker:"+r.ID(), "v", "PX", 60000)
	r.fetcher.Queues[0].HasTasks, r.fetcher.Queues[1].HasTasks = true, true
	for i, want := range []int{1, 0} {
		r.fetcher.Round(t.Context(), 10)
		if n, m := r.b.Size(""), r.b.Size(".later"); n != want || m != want {
			t.Errorf("round %d: %d and %d tasks are pending, expected %d of each queue", i, n, m, want)
		}
	}
}
