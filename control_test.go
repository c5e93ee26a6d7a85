package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/state"
)

// hearing returns a handle whose workers get signals, or get none because Redis does not let them subscribe.
func (b *bench) hearing(signals bool) *delayed.Store {
	if signals {
		return b.rdb
	}
	b.Do("ACL", "SETUSER", "deaf", "on", ">deaf", "allkeys", "allchannels", "+@all", "-subscribe")
	deaf, err := delayed.Dial(strings.Replace(b.Server.URL(), "://", "://deaf:deaf@", 1))
	b.Must(err)
	b.T.Cleanup(func() { deaf.Close() })
	return deaf
}

// TestPause pauses and resumes a queue while one of its tasks runs and some are claimed ahead.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			started, release := make(chan int, 10), make(chan struct{})
			f := b.fn("f", func(n int) { started <- n; <-release })
			cfg := b.config()
			cfg.Concurrency, cfg.Prefetch = 1, 5
			if hears {
				cfg.HeartbeatLife = time.Hour // too long for the heartbeat alone
			}
			for i := range 5 {
				b.delay(f, i)
			}
			w, err := delayed.NewWorker(b.hearing(hears), cfg)
			b.Must(err)
			b.Must(w.Register(f))
			s := b.start(w)
			if n := await(b, "the first task", started); n != 0 {
				t.Errorf("task %d is first", n)
			}
			b.Until("tasks are claimed ahead", func() bool { return b.Size("") == 0 })
			b.Must(b.q.Pause(t.Context()))
			if paused, err := b.q.Paused(t.Context()); err != nil || !paused {
				t.Errorf("Paused: %v, %v", paused, err)
			}
			b.Until("they are given back", func() bool { return b.Size("") == 4 && b.Size("_processing:"+w.ID()) == 1 })
			release <- struct{}{} // the running one ends
			b.Until("it is acknowledged", func() bool { return b.Size("_processing:"+w.ID()) == 0 })
			// Tasks that are enqueued meanwhile wait, and due ones become pending.
			b.delay(f, 5)
			b.delayWith(b.q.With(delayed.In(time.Millisecond)), f, 6)
			b.Until("all are pending", func() bool { return b.Size("") == 6 && b.Size("_noti") >= 1 })
			// A worker that starts now obeys the pause too.
			other := b.work(cfg, f)
			b.delay(f, 7)
			b.Until("the others know it", func() bool { return b.Size("") == 7 })
			if len(started) > 0 {
				t.Errorf("task %d was started while the queue was paused", <-started)
			}
			b.Must(b.q.Resume(t.Context()))
			if paused, err := b.q.Paused(t.Context()); err != nil || paused {
				t.Errorf("Paused: %v, %v", paused, err)
			}
			close(release)
			for range 7 {
				await(b, "the others", started)
			}
			b.Idle()
			s.mustStop()
			other.mustStop()
			if n := b.counters()["processed"]; n != 8 {
				t.Errorf("%d processed, expected 8", n)
			}
		})
	}
}

// TestPauseOfOneQueue: the worker goes on with another queue.
func TestPauseOfOneQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := delayed.NewQueue(b.Name+".other", b.rdb)
	ran := make(chan string, 10)
	f := b.fn("f", func(s string) { ran <- s })
	cfg := b.config()
	cfg.Queues = delayed.Strict{b.Name, other.Name()}
	b.Must(b.q.Pause(t.Context()))
	b.work(cfg, f)
	b.delay(f, "paused")
	for range 20 {
		b.delayWith(other, f, "other")
		if got := await(b, "a task of the other queue", ran); got != "other" {
			t.Fatalf("found %q", got)
		}
	}
	b.Must(b.q.Resume(t.Context()))
	if got := await(b, "the task that was held back", ran); got != "paused" {
		t.Errorf("found %q", got)
	}
}

// TestWorkerOrders pauses one of two workers through Redis.
func TestWorkerOrders(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cfg := b.config()
			if hears {
				cfg.HeartbeatLife = time.Hour
			} else {
				cfg.HeartbeatLife = 2 * time.Second
			}
			w, err := delayed.NewWorker(b.hearing(hears), cfg)
			b.Must(err)
			b.start(w)
			other := b.work(b.config())
			control := b.q.Worker(w.ID())
			for _, step := range []struct {
				do   func(context.Context) error
				want state.Worker
			}{
				{control.Pause, state.Paused},
				{control.Resume, state.Running},
				{control.Pause, state.Paused},
				{control.Quiet, state.Quiet},
			} {
				b.Must(step.do(t.Context()))
				b.Until(step.want.String(), func() bool { return w.Status().State == step.want })
			}
			if where := other.Status().State; where != state.Running {
				t.Errorf("the other worker is %v", where)
			}
		})
	}
}

func TestSetWeight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Must(b.q.SetWeight(t.Context(), 500))
	if weight := b.Hash("_control")["weight"]; weight != "500" {
		t.Errorf("Redis holds the weight %q, expected 500", weight)
	}
	b.Must(b.q.SetWeight(t.Context(), 0))
	if weight, set := b.Hash("_control")["weight"]; set {
		t.Errorf("Redis holds the weight %q, expected none", weight)
	}
	for _, n := range []int{-1, 1001} {
		if err := b.q.SetWeight(t.Context(), n); !errors.Is(err, delayed.ErrArguments) ||
			!strings.Contains(err.Error(), "expected 1 to 1000, or 0") {
			t.Errorf("SetWeight(%d): %v", n, err)
		}
	}
}

// TestControlIsPublished checks the signals for changes of the control hash.
func TestControlIsPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := redisstore.NewSignals(b.src)
	defer s.Close()
	c, end := s.SubscribeQueue(b.store)
	defer end()
	if got := await(b, "the subscription", c); got != "" {
		t.Fatalf("signal %q, expected that the subscription holds", got)
	}
	if err := b.q.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the signal", c); got != "control" {
		t.Fatalf("signal %q, expected control", got)
	}
	if was, _ := redis.Int(b.Do("HLEN", b.Name+"_control"), nil); was != 2 {
		t.Errorf("%d fields, expected 2", was)
	}
}

// revoked returns how many ids are revoked.
func (b *bench) revoked() int { return b.Size("_revoked") }

// TestCancelPending cancels tasks that no worker has claimed: they never run.
func TestCancelPending(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			var ran sync.Map
			f := b.fn("f", func(n int) { ran.Store(n, true) })
			var refs []*delayed.Ref
			for i := range 10 {
				refs = append(refs, b.delay(f, i))
			}
			for i := 0; i < 10; i += 3 {
				b.Must(refs[i].Cancel(t.Context()))
				b.Must(refs[i].Cancel(t.Context())) // changes nothing
			}
			w, err := delayed.NewWorker(b.hearing(hears), b.config())
			b.Must(err)
			b.Must(w.Register(f))
			s := b.start(w)
			b.Idle()
			s.mustStop()
			for i := range 10 {
				if _, yes := ran.Load(i); yes != (i%3 != 0) {
					t.Errorf("task %d: ran %v", i, yes)
				}
			}
			if c := b.counters(); c["canceled"] != 4 || c["processed"] != 6 || b.revoked() != 0 {
				t.Errorf("counters %v, %d revoked", c, b.revoked())
			}
			b.Check(redistest.Invariants{Idle: true})
		})
	}
}

// TestCancelFiled cancels scheduled, retrying and parked tasks.
func TestCancelFiled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() error { return errors.New("no luck") })
	cfg := b.config()
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	b.work(cfg, f)
	scheduled := b.delayWith(b.q.With(delayed.In(time.Hour), delayed.UniqueKey("k", time.Hour),
		delayed.KeepResult(time.Hour)), f)
	retrying, unknown := b.delay(f), b.delay(b.fn("unknown", func() {}))
	b.Until("all are filed", func() bool { return b.Size("_scheduled")+b.Size("_retry")+b.Size("_parked") == 3 })
	waited := make(chan error, 1)
	go func() { waited <- scheduled.Wait(t.Context()) }()
	for _, ref := range []*delayed.Ref{scheduled, retrying, unknown} {
		b.Must(ref.Cancel(t.Context()))
	}
	for _, suffix := range []string{
		"_scheduled", "_retry", "_parked", "_tasks", "_info", "_locks", "_revoked",
	} {
		if n := b.Size(suffix); n != 0 {
			t.Errorf("N%s has %d elements", suffix, n)
		}
	}
	var failed *delayed.TaskError
	if err := await(b, "who waits", waited); !errors.Is(err, delayed.ErrCanceled) || !errors.As(err, &failed) ||
		failed.State != state.Canceled {
		t.Errorf("Wait: %v", err)
	}
	if where, err := scheduled.State(t.Context()); err != nil || where != state.Canceled {
		t.Errorf("State: %v, %v", where, err)
	}
	b.delayWith(b.q.With(delayed.In(time.Hour), delayed.UniqueKey("k", time.Hour)), f) // the lock is free
}

// TestCancelTooLate cancels tasks that are archived or completed, or have ended without a trace.
func TestCancelTooLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fails := b.fn("fails", func() error { return errors.New("no luck") })
	works := b.fn("works", func() {})
	b.work(b.config(), fails, works)
	archived, completed := b.delayWith(b.q.With(delayed.MaxRetry(0)), fails),
		b.delayWith(b.q.With(delayed.KeepResult(time.Hour)), works)
	b.Until("both have ended", func() bool { return b.Size("_archived") == 1 && b.Size("_completed") == 1 })
	for _, ref := range []*delayed.Ref{archived, completed} {
		if err := ref.Cancel(t.Context()); !errors.Is(err, delayed.ErrEnded) ||
			!strings.Contains(err.Error(), ref.String()) {
			t.Errorf("Cancel: %v", err)
		}
	}
	if err := b.q.Ref("").Cancel(t.Context()); !errors.Is(err, delayed.ErrNoID) {
		t.Errorf("without an id: %v", err)
	}
	if err := (*delayed.Ref)(nil).Cancel(t.Context()); !errors.Is(err, delayed.ErrNoID) {
		t.Errorf("nil: %v", err)
	}
	// An id that another task may use again, although nobody knows that its first task has ended.
	own := b.q.With(delayed.TaskID("own"))
	b.delayWith(own, works)
	b.Idle()
	b.Until("it has ended", func() bool { return b.Size("_locks") == 0 })
	b.Must(b.q.Ref("own").Cancel(t.Context()))
	b.delayWith(own, works)
	b.Idle()
	b.Until("it has run again", func() bool { return b.counters()["processed"] == 4 })
}

// TestCancelRunning: canceling ends the contexts of handlers, whatever the handlers return then.
func TestCancelRunning(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			started, causes := make(chan string, 10), make(chan error, 10)
			f := b.fn("f", func(ctx context.Context, what string) error {
				started <- what
				<-ctx.Done()
				causes <- context.Cause(ctx)
				switch what {
				case "returns nil":
					return nil
				case "panics":
					panic("stop")
				case "snoozes":
					return delayed.Snooze(time.Second)
				}
				return ctx.Err()
			})
			release := make(chan struct{})
			blind := b.fn("blind", func() error { started <- "blind"; <-release; return errors.New("no luck") })
			cfg := b.config()
			cfg.Concurrency = 10
			if hears {
				cfg.HeartbeatLife = time.Hour // too long for the heartbeat alone
			}
			w, err := delayed.NewWorker(b.hearing(hears), cfg)
			b.Must(err)
			b.Must(w.Register(f, blind))
			b.start(w)
			var refs []*delayed.Ref
			for _, what := range []string{"returns nil", "panics", "snoozes", "fails"} {
				refs = append(refs, b.delayWith(b.q.With(delayed.UniqueKey(what, time.Hour),
					delayed.KeepResult(time.Hour)), f, what))
			}
			refs = append(refs, b.delay(blind))
			for range refs {
				await(b, "all run", started)
			}
			for _, ref := range refs {
				b.Must(ref.Cancel(t.Context()))
			}
			for range len(refs) - 1 {
				if err := await(b, "the end of a context", causes); !errors.Is(err, delayed.ErrCanceled) {
					t.Errorf("cause %v", err)
				}
			}
			close(release)
			b.Idle()
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			for i, ref := range refs[:4] {
				if err := ref.Wait(ctx); errors.Is(err, delayed.ErrCanceled) != (i > 0) || (err == nil) != (i == 0) {
					t.Errorf("%d: %v", i, err)
				}
			}
			b.Until("nothing is left",
				func() bool { return b.revoked()+b.Size("_locks")+b.Size("_retry")+b.Size("_scheduled") == 0 })
			if c := b.counters(); c["canceled"] != 4 || c["processed"] != 1 || c["retried"] != 0 || c["archived"] != 0 {
				t.Errorf("counters %v", c)
			}
		})
	}
}

// TestCancelUnknownToTheWorker: a task fails before its worker knows that it was canceled, but the script that would
// store it for a retry knows.
func TestCancelUnknownToTheWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started, release := make(chan struct{}, 4), make(chan struct{})
	f := b.fn("f", func(context.Context) error { started <- struct{}{}; <-release; return errors.New("no luck") })
	cfg := b.config()
	cfg.HeartbeatLife = time.Hour
	w, err := delayed.NewWorker(b.hearing(false), cfg)
	b.Must(err)
	b.Must(w.Register(f))
	b.start(w)
	for i, q := range []*delayed.Queue{b.q, b.q.With(delayed.MaxRetry(0))} {
		ref := b.delayWith(q, f)
		await(b, "it runs", started)
		b.Must(ref.Cancel(t.Context()))
		release <- struct{}{}
		b.Until("it has ended", func() bool { return b.counters()["canceled"] == i+1 })
		b.Idle()
	}
	if n := b.Size("_retry") + b.Size("_archived") + b.revoked(); n != 0 {
		t.Errorf("%d are left: %v", n, b.counters())
	}
}

// TestCancelOfDeadWorkersTask cancels a task whose worker has died, and which would be archived because of that.
func TestCancelOfDeadWorkersTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() {})
	ref := b.delay(f)
	s := b.store
	_, err := s.Register(bg, "dead", time.Minute, "v")
	b.Must(err)
	got, err := s.Claim(bg, redisstore.ClaimCall{Worker: "dead", Batch: 1, Most: 1})
	if err != nil || len(got.Messages) != 1 {
		t.Fatal(got, err)
	}
	b.delay(f)
	b.Do("DEL", b.Name+"_worker:dead")
	b.Must(ref.Cancel(t.Context()))
	b.sweep()
	cfg := b.config()
	cfg.NoSweeper = true
	b.work(cfg, f)
	b.Until("it was swept and has ended", func() bool { return b.counters()["canceled"] == 1 })
	b.Idle()
	if c := b.counters(); c["processed"] != 1 || c["swept"] != 1 || b.revoked() != 0 {
		t.Errorf("counters %v, %d revoked", c, b.revoked())
	}
}

// TestCancelRace cancels tasks at random moments, many times. Each task ends once: it succeeds or it is canceled, and
// if it was canceled before it was claimed it does not run.
func TestCancelRace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const rounds = 400
	var ended, failures [rounds]atomic.Int64
	f := b.fn("f", func(ctx context.Context, n int) error {
		if rand.IntN(2) == 0 && failures[n].Add(1) < 3 {
			return errors.New("once more")
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ended[n].Add(1)
		return nil
	})
	cfg := b.config()
	cfg.Concurrency = 8
	one, two := b.work(cfg, f), b.work(cfg, f)
	var refs [rounds]*delayed.Ref
	var all sync.WaitGroup
	for i := range rounds {
		all.Go(func() {
			q := b.q.With(delayed.KeepResult(time.Hour), delayed.UniqueKey(fmt.Sprint(i), time.Hour))
			if i%3 == 0 {
				q = q.With(delayed.In(time.Millisecond))
			}
			ref, err := q.Delay(f, i)
			if err != nil {
				t.Error(err)
				return
			}
			refs[i] = ref
			if err := ref.Cancel(t.Context()); err != nil && !errors.Is(err, delayed.ErrEnded) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	canceled := 0
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for i, ref := range refs {
		err := ref.Wait(ctx)
		switch {
		case err == nil && ended[i].Load() == 1:
		case errors.Is(err, delayed.ErrCanceled) && ended[i].Load() == 0:
			canceled++
		default:
			t.Errorf("task %d succeeded %d times, Wait says %v", i, ended[i].Load(), err)
		}
	}
	b.Until("nothing is left", func() bool {
		return b.Size("_locks")+b.Size("_scheduled")+b.Size("_retry")+b.Size("_archived") == 0
	})
	b.Idle()
	one.mustStop()
	two.mustStop()
	if n := b.counters()["canceled"]; n != canceled || canceled == 0 {
		t.Errorf("%d counted, %d seen", n, canceled)
	}
	// Those that had succeeded before they were canceled.
	t.Logf("%d of %d were canceled, %d are still revoked", canceled, rounds, b.revoked())
	b.Check(redistest.Invariants{Idle: true})
}

// TestCancelOfWhatWaitsInRedis: a task that was pending when Cancel returned never starts.
func TestCancelOfWhatWaitsInRedis(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 400
	var canceled [n]atomic.Bool
	var ran atomic.Int64
	f := b.fn("f", func(i int) {
		ran.Add(1)
		if canceled[i].Load() {
			t.Errorf("task %d runs, which was canceled while it was pending", i)
		}
	})
	b.Must(b.q.Pause(t.Context()))
	b.work(b.config(), f)
	refs := make([]*delayed.Ref, n)
	for i := range refs {
		refs[i] = b.delay(f, i)
	}
	for i := 0; i < n; i += 2 {
		b.Must(refs[i].Cancel(t.Context()))
		canceled[i].Store(true)
	}
	b.Must(b.q.Resume(t.Context()))
	b.Idle()
	if c := b.counters(); ran.Load() != n/2 || c["canceled"] != n/2 || b.revoked() != 0 {
		t.Errorf("%d have run, %d are revoked, counters %v", ran.Load(), b.revoked(), c)
	}
}

// TestCancelOfWhatIsClaimed: a worker that gets no signals may start the task after Cancel has returned, but the next
// heartbeat ends its context, and tasks that have not started by then do not start.
func TestCancelOfWhatIsClaimed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started, ended := make(chan int, 10), make(chan error, 10)
	release := make(chan struct{})
	f := b.fn("f", func(ctx context.Context, i int) {
		started <- i
		if i == 0 {
			<-release
			return
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
	})
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch = 1, 8
	w, err := delayed.NewWorker(b.hearing(false), cfg)
	b.Must(err)
	b.Must(w.Register(f))
	b.start(w)
	refs := make([]*delayed.Ref, 5)
	for i := range refs {
		refs[i] = b.delay(f, i)
	}
	await(b, "the first runs", started)
	b.Until("the others are claimed", func() bool { return b.Size("_processing:"+w.ID()) == len(refs) })
	for _, ref := range refs[1:] {
		b.Must(ref.Cancel(t.Context()))
	}
	close(release)
	b.Idle()
	if n := len(started); n > 1 || n != len(ended) {
		t.Errorf("%d of them have started, %d have ended", n, len(ended))
	}
	for len(ended) > 0 {
		if cause := <-ended; !errors.Is(cause, delayed.ErrCanceled) {
			t.Errorf("its context ended with %v", cause)
		}
	}
	if c := b.counters(); c["canceled"] < len(refs)-2 || b.Size("_archived")+b.Size("_retry") > 0 {
		t.Errorf("counters %v", c)
	}
}

// TestCancelGathered cancels calls that a group gathers, the first among them.
func TestCancelGathered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	index, calls := b.indexed("index")
	q := b.q.With(delayed.Group("k"), whenFull(6))
	var refs []*delayed.Ref
	for i := range 5 {
		refs = append(refs, b.delayWith(q, index, "a", i))
	}
	for _, i := range []int{0, 2, 3} {
		b.Must(refs[i].Cancel(t.Context()))
	}
	b.delayWith(q, index, "a", 5)
	w := b.work(b.config(), index)
	if got := await(b, "the call", calls); got != "a[1 4 5]" {
		t.Errorf("called with %s", got)
	}
	b.Idle()
	b.Until("the others are forgotten", func() bool { return b.revoked() == 0 })
	// Cancel all of them.
	q = b.q.With(delayed.Group("k"), whenFull(2))
	first := b.delayWith(q, index, "b", 1)
	b.Must(first.Cancel(t.Context()))
	waited := make(chan error, 1)
	go func() { waited <- b.q.Ref(first.ID()).Wait(b.within()) }() // as in another process
	b.Until("somebody waits", func() bool { return b.subscribed(first.ID()) == 1 })
	w.mustStop() // otherwise the last could be called before it is canceled
	last := b.delayWith(b.q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: time.Millisecond})),
		index, "b", 2)
	b.Must(last.Cancel(t.Context()))
	b.work(b.config(), index)
	b.Until("the group is gone", func() bool { return b.Size("_groups") == 0 && b.revoked() == 0 })
	if err := await(b, "the end of Wait", waited); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("Wait: %v", err)
	}
	b.Idle()
	if len(calls) > 0 {
		t.Errorf("called with %s", <-calls)
	}
	b.Check(redistest.Invariants{})
}

// TestCancelGatheredRace cancels calls while their groups become one call: no other call is lost with a canceled one.
func TestCancelGatheredRace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ran sync.Map
	index := b.fn("index", func(ids ...int) {
		for _, id := range ids {
			ran.Store(id, true)
		}
	})
	cfg := b.config()
	b.work(cfg, index)
	b.work(cfg, index)
	q := b.q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: time.Millisecond}))
	const rounds = 300
	for i := range rounds {
		// The test cancels the last call so far: if that has become a task of its own, the task contains no other call.
		b.delayWith(q, index, 2*i)
		b.Must(b.delayWith(q, index, 2*i+1).Cancel(t.Context()))
	}
	b.Until("all groups are gone", func() bool { return b.Size("_groups") == 0 })
	b.Idle()
	kept := 0
	for i := range rounds {
		if _, yes := ran.Load(2 * i); yes {
			kept++
		}
	}
	if kept < rounds-b.counters()["canceled"] {
		t.Errorf("%d of %d calls ran that were not canceled, counters %v", kept, rounds, b.counters())
	}
}

// TestCancelAmongManyGathered cancels calls at both ends of a group of more calls than one command asks about.
func TestCancelAmongManyGathered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	calls := make(chan []int, 10)
	index := b.fn("index", func(ids ...int) { calls <- ids })
	const n = 2_001 // a command asks about 1,000
	q := b.q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: time.Hour, MaxSize: n + 1}))
	tasks := make([]*delayed.Task, n)
	for i := range tasks {
		tasks[i] = delayed.Call(index, i)
	}
	refs, err := q.DelayMany(t.Context(), tasks...)
	b.Must(err)
	var want []int
	for i := range n + 1 {
		want = append(want, i)
	}
	for _, i := range []int{n - 1, 1_000, 999, 0} {
		b.Must(refs[i].Cancel(t.Context()))
		want = slices.Delete(want, i, i+1)
	}
	b.delayWith(q, index, n)
	b.work(b.config(), index)
	if got := redistest.Await(b.Bench, "the call", calls); !slices.Equal(got, want) {
		t.Errorf("called with %d values, expected %d: without those of the calls that were canceled", len(got),
			len(want))
	}
	b.Until("the others are forgotten", func() bool { return b.Size("_revoked") == 0 })
	b.Idle()
	b.Check(redistest.Invariants{})
}

func (b *bench) stepper(fns ...any) seam.Stepper {
	b.T.Helper()
	w, err := delayed.NewWorker(b.rdb, b.config())
	if err != nil {
		b.T.Fatal(err)
	}
	if err := w.Register(fns...); err != nil {
		b.T.Fatal(err)
	}
	s, err := seam.NewStepper(b.T.Context(), w)
	if err != nil {
		b.T.Fatal(err)
	}
	if err := w.Run(b.T.Context()); !errors.Is(err, delayed.ErrClosed) {
		b.T.Errorf("Run of a worker that is stepped: expected ErrClosed, found %v", err)
	}
	return s
}

// step does steps until a task has ended, or there is nothing to do for now.
func (b *bench) step(s seam.Stepper) (*seam.Run, time.Duration) {
	b.T.Helper()
	run, wait, err := s.Step(b.T.Context())
	if err != nil {
		b.T.Fatal(err)
	}
	return run, wait
}

// TestStepperGoexit ends the goroutine of a step from within a task.
func TestStepperGoexit(t *testing.T) {
	b := newBench(t)
	b.delay(b.fn("exit", runtime.Goexit))
	s := b.stepper(b.fn("exit", runtime.Goexit))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = s.Step(t.Context())
		t.Error("Step came back")
	}()
	await(b, "the goroutine", gone)
	if b.Size("_retry") != 1 {
		t.Error("expected that the task is tried again")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// TestStepperWithin cancels a task within which another one has run.
func TestStepperWithin(t *testing.T) {
	b := newBench(t)
	var s seam.Stepper
	var ref *delayed.Ref
	inner := b.fn("inner", func() {})
	outer := b.fn("outer", func(ctx context.Context) error {
		b.delay(inner)                                                //nolint:contextcheck // a bench has no context
		if run, _ := b.step(s); run == nil || run.Outcome != "done" { //nolint:contextcheck // likewise
			t.Errorf("within the task: %+v", run)
		}
		b.Must(ref.Cancel(ctx))
		b.Must(s.Beat(t.Context())) //nolint:contextcheck // that of the task ends meanwhile
		return context.Cause(ctx)
	})
	ref = b.delay(outer)
	s = b.stepper(inner, outer)
	if run, _ := b.step(s); run == nil || run.Outcome != "canceled" || !errors.Is(run.Err, delayed.ErrCanceled) {
		t.Errorf("expected that the context of the task has ended, found %+v", run)
	}
	b.Must(s.Close())
	b.Check(redistest.Invariants{Idle: true})
}
