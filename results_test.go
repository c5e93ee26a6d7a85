package delayed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// within returns a context that limits a wait for a task.
func (b *bench) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.T.Cleanup(cancel)
	return ctx
}

func TestAwait(t *testing.T) {
	b := newBench(t)
	type point struct{ X, Y int }
	double := b.fn("double", func(n int) (int, error) {
		if n < 0 {
			return 0, errors.New("negative")
		}
		return 2 * n, nil
	}, delayed.KeepResult(time.Hour))
	move := b.fn("move", func(p point, by int) point { return point{p.X + by, p.Y + by} })
	anything := b.fn("any", func(kind string) any {
		if kind == "nil" {
			return nil
		}
		return []string{kind}
	}, delayed.Retention(time.Hour))
	tick := b.fn("tick", func() {}, delayed.KeepResult(time.Hour))
	odd := b.fn("odd", func() chan int { return nil })
	b.work(b.config(), double, move, anything, tick, odd)
	ctx := b.within()

	if n, err := delayed.Await[int](ctx, b.delay(double, 21)); n != 42 || err != nil {
		t.Errorf("Await returned %d, %v", n, err)
	}
	if n, err := delayed.Await[*int64](ctx, b.delay(double, 4)); err != nil || *n != 8 {
		t.Errorf("Await of a pointer returned %v, %v", n, err)
	}
	if p, err := delayed.Await[point](ctx,
		b.delayWith(b.q.With(delayed.KeepResult(time.Hour)), move, point{1, 2}, 3)); p != (point{4, 5}) || err != nil {
		t.Errorf("Await returned %v, %v", p, err)
	}
	if v, err := delayed.Await[[]string](ctx, b.delay(anything, "list")); !reflect.DeepEqual(v, []string{"list"}) ||
		err != nil {
		t.Errorf("Await returned %v, %v", v, err)
	}
	if v, err := delayed.Await[any](ctx, b.delay(anything, "nil")); v != nil || err != nil {
		t.Errorf("Await returned %v, %v", v, err)
	}
	if err := b.delay(tick).Wait(ctx); err != nil {
		t.Errorf("Wait returned %v", err)
	}
	// By its id, as in another process.
	ref := b.delay(double, 5)
	if n, err := delayed.Await[int](ctx, b.q.Ref(ref.ID())); n != 10 || err != nil {
		t.Errorf("Await returned %d, %v", n, err)
	}

	keep := b.q.With(delayed.KeepResult(time.Hour))
	unchecked, err := keep.Enqueue(ctx, delayed.NewGoTask(b.Name+".odd"))
	if err != nil {
		t.Fatal(err)
	}
	_, early := keep.Delay(odd)
	_, made := b.q.Delay(delayed.Func(func() chan int { return nil }, delayed.Name("odd"),
		delayed.KeepResult(time.Hour)))
	for name, err := range map[string]error{
		"Delay": early,
		"Func":  made,
	} {
		if !errors.Is(err, delayed.ErrFunction) ||
			!strings.Contains(errorText(err), "expected a result that can travel") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a small type", second(delayed.Await[int8](ctx, b.delay(double, 100))), "expected int8"},
		{"another type", second(delayed.Await[string](ctx, b.delay(double, 1))), "expected string, found integer"},
		{
			"a type that cannot travel", second(delayed.Await[chan int](ctx, b.delay(double, 1))),
			"a result cannot be of the type chan int",
		},
		{"nothing is returned", second(delayed.Await[int](ctx, b.delay(tick))), "returns nothing"},
		{"nothing is kept", b.delay(move, point{}, 1).Wait(ctx), "give one to Queue.With or to Func"},
		{
			"nothing is kept, said explicitly", b.delayWith(b.q.With(delayed.KeepResult(0)), double, 1).Wait(ctx),
			"give one to Queue.With or to Func",
		},
		{"it cannot be kept", second(delayed.Await[int](ctx, unchecked)), "could not be kept"},
		{"gathered", b.delayWith(b.q.With(delayed.KeepResult(time.Hour), delayed.Group("g")),
			b.fn("sum", func(...int) int { return 0 }), 1).Wait(ctx), "is gathered with others"},
	} {
		if !errors.Is(c.err, delayed.ErrNoResult) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, expected ErrNoResult with %q", c.name, c.err, c.want)
		}
	}
	ref = b.delayWith(b.q.With(delayed.MaxRetry(1)), double, -1)
	delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
	_, err = delayed.Await[int](ctx, ref)
	var failed *delayed.TaskError
	if !errors.As(err, &failed) {
		t.Fatalf("a task that failed: %v", err)
	}
	if at := failed.At; time.Since(at) > time.Minute ||
		*failed != (delayed.TaskError{ref.ID(), state.Archived, "failed", "negative", 2, 0, at}) {
		t.Errorf("found %+v", failed)
	}
	if text := err.Error(); text != "delayed: task "+ref.ID()+" is archived (failed) after 2 attempts: negative" {
		t.Errorf("its text is %q", text)
	}
}

func TestAwaitDropped(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() error { return delayed.Drop(errors.New("not needed")) }, delayed.KeepResult(time.Hour))
	b.work(b.config(), f)
	ref := b.delay(f)
	err := ref.Wait(b.within())
	var failed *delayed.TaskError
	if !errors.As(err, &failed) || failed.State != state.Dropped || !strings.Contains(failed.Text, "not needed") {
		t.Errorf("a task that was dropped: %v", err)
	}
	if where, err := ref.State(b.within()); where != state.Dropped || err != nil {
		t.Errorf("its state is %v, %v", where, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestWaitEnds(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() {}, delayed.KeepResult(time.Hour))
	ctx, cancel := context.WithCancel(b.within())
	ref := b.delay(f)
	waited := make(chan error, 1)
	go func() { waited <- ref.Wait(ctx) }()
	cancel()
	if err := await(b, "the end of Wait", waited); !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), ref.ID()) {
		t.Errorf("Wait returned %v", err)
	}
	if err := (*delayed.Ref)(nil).Wait(ctx); err == nil {
		t.Error("a nil Ref waits")
	}
	legacy, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ref = b.delayWith(legacy, b.fn("g", func() {}))
	if err := ref.Wait(b.within()); !errors.Is(err, delayed.ErrNoID) {
		t.Errorf("a task without id: %v", err)
	}
	if _, err := ref.State(b.within()); !errors.Is(err, delayed.ErrNoID) {
		t.Errorf("a task without id: %v", err)
	}
	other, err := delayed.Dial(b.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	ref = delayed.NewQueue(b.Name, other).Ref("x")
	go func() { waited <- ref.Wait(b.within()) }()
	b.Until("it has subscribed", func() bool { return b.subscribed("x") > 0 })
	other.Close()
	if err := await(b, "the end of Wait", waited); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// subscribed returns how many connections listen to the end of a task.
func (b *bench) subscribed(id string) int64 {
	b.T.Helper()
	reply, _ := b.Do("PUBSUB", "NUMSUB", b.Name+"_ended:"+id).([]any)
	n, _ := reply[1].(int64)
	return n
}

// TestManyWait: a thousand goroutines wait on one connection, and all are woken.
func TestManyWait(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(n int) int { return n }, delayed.KeepResult(time.Hour))
	const n = 1000
	before := b.Int("EVAL", `return #redis.call('PUBSUB', 'CHANNELS')`, 0)
	refs := make([]*delayed.Ref, n)
	for i := range refs {
		refs[i] = b.delay(f, i)
	}
	errs := make(chan error, n)
	var waiting sync.WaitGroup
	for i, ref := range refs {
		waiting.Go(func() {
			got, err := delayed.Await[int](b.within(), ref)
			if err == nil && got != i {
				err = fmt.Errorf("task %d returned %d", i, got)
			}
			errs <- err
		})
	}
	b.Until("all have subscribed", func() bool {
		return b.subscribed(refs[n-1].ID()) == 1 &&
			b.Int("EVAL", `return #redis.call('PUBSUB', 'CHANNELS')`, 0) >= before+n
	})
	b.work(b.config(), f)
	waiting.Wait()
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestWaitForTheRightTask waits for a task whose id belonged to another one before: what is kept of that one does not
// count.
func TestWaitForTheRightTask(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(n int) int { return n }, delayed.KeepResult(time.Hour))
	q := b.q.With(delayed.TaskID("daily"))
	w := b.work(b.config(), f)
	if n, err := delayed.Await[int](b.within(), b.delayWith(q, f, 1)); n != 1 || err != nil {
		t.Fatalf("Await returned %d, %v", n, err)
	}
	w.mustStop()
	last := time.Now().UnixMilli()
	b.Until("it is a millisecond later", func() bool { return time.Now().UnixMilli() > last })
	// Like a producer that does not check who has the id.
	message, ref, _, err := delayed.Message(q, delayed.Call(f, 2), time.Now().UnixMilli())
	b.Must(err)
	b.Must(b.store.Enqueue(t.Context(), []redisstore.Envelope{{ID: ref.ID(), Message: message}}))
	got := make(chan int, 1)
	go func() {
		n, err := delayed.Await[int](b.within(), ref)
		if err != nil {
			t.Error(err)
		}
		got <- n
	}()
	b.Until("it waits", func() bool { return b.subscribed("daily") == 1 })
	if n, err := delayed.Await[int](b.within(), b.q.Ref("daily")); n != 1 || err != nil {
		t.Errorf("who asks for the id finds %d, %v", n, err)
	}
	b.work(b.config(), f)
	if n := await(b, "the second result", got); n != 2 {
		t.Errorf("Await returned %d", n)
	}
}

func TestStatesAndInfo(t *testing.T) {
	b := newBench(t)
	fail := b.fn("fail", func(string) error { return errors.New("no") })
	keep := b.fn("keep", func(string) string { return "yes" }, delayed.Retention(time.Hour))
	cfg := b.config()
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	w := b.work(cfg, fail, keep)
	ctx := b.within()
	start := time.Now().Add(-time.Second)
	refs := map[state.Task]*delayed.Ref{
		state.Unknown:   b.q.Ref("nobody"),
		state.Scheduled: b.delayWith(b.q.With(delayed.In(time.Hour)), fail, "s"),
		state.Retry:     b.delay(fail, "r"),
		state.Parked:    b.delay(b.fn("elsewhere", func(string) {}), "p"),
		state.Archived:  b.delayWith(b.q.With(delayed.MaxRetry(0)), fail, "a"),
		state.Completed: b.delay(keep, "c"),
	}
	b.Idle()
	w.mustStop()
	for want, ref := range refs {
		b.Until("the task is "+want.String(), func() bool {
			state, err := ref.State(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return state == want
		})
		info, err := ref.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.ID != ref.ID() || info.State != want {
			t.Errorf("%s: found %+v", want, info)
		}
		if want == state.Unknown {
			continue
		}
		if info.Due.Before(start) || info.EnqueuedAt.Before(start) || !strings.HasPrefix(info.Function, b.Name+".") {
			t.Errorf("%s: found %+v", want, info)
		}
		switch want {
		case state.Retry, state.Archived:
			if info.Error != "no" || info.Attempts != 1 || info.Reason != "failed" || info.At.Before(start) ||
				info.Worker == "" {
				t.Errorf("%s: found %+v", want, info)
			}
		case state.Parked:
			if info.Reason != "unknown function" {
				t.Errorf("%s: found %+v", want, info)
			}
		case state.Completed:
			if info.Attempts != 1 || info.Began.Before(start) || info.At.Before(info.Began) {
				t.Errorf("%s: found %+v", want, info)
			}
		default:
		}
	}
	if state.Task(200).String() != "state.Task(200)" {
		t.Error("a state that is none")
	}
}

// TestInfoOfOthers reads bytes that are no info, or that other programs wrote.
func TestInfoOfOthers(t *testing.T) {
	pair := func(key string) []byte { return wire.AppendString(wire.AppendMapHeader(nil, 1), key) }
	for _, b := range [][]byte{
		nil,
		{0xc1},
		wire.AppendInt(nil, 1), wire.AppendString(pair("attempts"), "many"),
		wire.AppendInt(pair("error"), 1),
	} {
		if got := wire.ParseInfo(b); !reflect.DeepEqual(got, wire.Info{}) {
			t.Errorf("%x became %+v", b, got)
		}
	}
	full := wire.Info{
		Reason: "completed", Function: "f", Error: "e \xff", Stack: "s", Attempts: 2, Deaths: 1,
		At: time.UnixMilli(5), Worker: "w", Enqueued: time.UnixMilli(1),
		Began: time.UnixMilli(2), Result: make([]byte, 1<<20), Message: make([]byte, 1<<20),
	}
	got := wire.ParseInfo(full.Encode())
	full.Error = "e �"
	if !reflect.DeepEqual(got, full) {
		t.Errorf("found %.200v", got)
	}
}

// TestKeptForTheLongerTime: with KeepResult and Retention, everything is kept for the longer of the two.
func TestKeptForTheLongerTime(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() {})
	b.work(b.config(), f)
	for _, opts := range [][]delayed.Option{
		{delayed.KeepResult(time.Hour), delayed.Retention(2 * time.Hour)},
		{delayed.KeepResult(2 * time.Hour), delayed.Retention(time.Hour)},
	} {
		ref := b.delayWith(b.q.With(opts...), f)
		b.Must(ref.Wait(b.within()))
		info, err := ref.Info(b.within())
		b.Must(err)
		if d := info.Due.Sub(info.At); d < 2*time.Hour-patience || d > 2*time.Hour+patience {
			t.Errorf("%v: it is kept for %v", opts, d)
		}
	}
}

// TestAwaitOfAnotherType: if a value does not fit the type, Await returns no part of it.
func TestAwaitOfAnotherType(t *testing.T) {
	type returned struct {
		A int
		B string
	}
	type awaited struct{ A, B int }
	b := newBench(t)
	f := b.fn("f", func() returned { return returned{1, "two"} })
	b.work(b.config(), f)
	ref := b.delayWith(b.q.With(delayed.KeepResult(time.Hour)), f)
	if got, err := delayed.Await[awaited](b.within(), ref); got != (awaited{}) || !errors.Is(err, delayed.ErrNoResult) {
		t.Errorf("found %+v, %v", got, err)
	}
}

// awaySource has no connections until it is set to be back.
type awaySource struct {
	delayed.Source
	asked atomic.Int64
	back  atomic.Bool
}

func (s *awaySource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	s.asked.Add(1)
	if !s.back.Load() {
		return nil, errors.New("connection refused")
	}
	return s.Source.Conn(ctx, key)
}

// TestWaitWhileRedisIsAway: Redis is unreachable from the first look on, and Wait waits until it is back, or ctx ends.
func TestWaitWhileRedisIsAway(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() int { return 7 }, delayed.KeepResult(time.Hour))
	ref := b.delay(f)
	src := &awaySource{Source: b.src}
	away := delayed.FromSource(src)
	defer away.Close()
	there := delayed.NewQueue(b.Name, away).Ref(ref.ID())

	type answer struct {
		n   int
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		n, err := delayed.Await[int](b.within(), there)
		answered <- answer{n, err}
	}()
	// The first look, and then the first attempt to subscribe.
	b.Until("Redis has been asked for", func() bool { return src.asked.Load() >= 2 })
	select {
	case a := <-answered:
		t.Fatalf("Await gave up: %d, %v", a.n, a.err)
	default:
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := there.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Wait until a deadline: found %v", err)
	}
	b.work(b.config(), f)
	src.back.Store(true)
	if a := await(b, "the result", answered); a.n != 7 || a.err != nil {
		t.Errorf("found %d, %v", a.n, a.err)
	}
}

// TestWaitThatRedisRefuses: Wait returns the error, because waiting does not help.
func TestWaitThatRedisRefuses(t *testing.T) {
	b := newBench(t)
	b.Do("SET", b.Name+"_completed", "x")
	err := b.q.Ref("x").Wait(t.Context())
	var answer redis.Error
	if !errors.As(err, &answer) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("found %v", err)
	}
	for text, want := range map[string]bool{
		"NOPERM no permissions": true, "WRONGTYPE Operation": true, "WRONGPASS invalid": true,
		"LOADING Redis is loading": false,
		"BUSY Redis is busy":       false, "READONLY You can't write": false,
		"ERR max number of clients reached": false,
		"UNBLOCKED force unblock":           false,
		// As Redis 6.2 words the errors of scripts.
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -READONLY You can't write": false,
		"ERR Error running script (call to f_0): @user_script:1: WRONGTYPE Operation":                        true,
	} {
		if redisstore.Refused(redis.Error(text)) != want {
			t.Errorf("%s: expected that Redis refuses: %v", text, want)
		}
	}
}

// TestReadsAreNeverUnknown: a command that only reads has changed nothing, whether or not it was answered.
func TestReadsAreNeverUnknown(t *testing.T) {
	b := newBench(t)
	proxy := faultnet.NewProxy(t, b.Server.Addr())
	rdb, err := delayed.Dial(proxy.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	ref := delayed.NewQueue(b.Name, rdb).Ref("x")
	ask := func(ctx context.Context) error { _, err := ref.State(ctx); return err }
	for name, call := range map[string]func(context.Context) error{"State": ask, "Cancel": ref.Cancel} {
		if err := ask(t.Context()); err != nil {
			t.Fatal(err) // it is connected, and Redis knows the script
		}
		proxy.SetPlan(faultnet.Once(faultnet.DropReply,
			func(request []byte) bool { return bytes.Contains(request, []byte("EVALSHA")) }), 0)
		err := call(t.Context())
		if err == nil || errors.Is(err, delayed.ErrUnknown) ||
			!strings.Contains(err.Error(), "look: no answer of Redis") {
			t.Errorf("%s: found %v", name, err)
		}
	}
	for _, s := range redisstore.Scripts {
		if err := s.Explain(errors.New("EOF")); errors.Is(err, delayed.ErrUnknown) == s.Reads {
			t.Errorf("%s, which only reads: %v: %v", s.Name, s.Reads, err)
		}
	}
}

// TestWaitInVain: the wait ends with its context, and the error does not mention Redis if Redis has answered.
func TestWaitInVain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() {}, delayed.KeepResult(time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ref := range map[string]*delayed.Ref{
		"of a task that waits":                  b.delay(f),
		"of nobody knows what":                  b.q.Ref("nobody"),
		"of a call that may have been gathered": b.q.With(delayed.Group("k")).Ref("nobody"),
	} {
		deadline, end := context.WithTimeout(t.Context(), 500*time.Millisecond) // not during a look
		err := ref.Wait(deadline)
		end()
		want := "delayed: waiting for task " + ref.String() + ": context deadline exceeded"
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
			t.Errorf("%s: found %q, expected %q", name, err, want)
		}
		if err := ref.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, with a context that has ended: found %v", name, err)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	step, gone := make(chan string), make(chan error)
	f := b.fn("f", func(ctx context.Context) error {
		for note := range step {
			if note == "fail" {
				return errors.New("failed")
			}
			if note == "done" {
				return nil
			}
			gone <- delayed.Progress(ctx, int64(len(note)), 10, note)
		}
		return nil
	})
	cfg := b.config()
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	w := b.work(cfg, f)
	say := func(note string) {
		t.Helper()
		step <- note
		if err := await(b, "Progress", gone); err != nil {
			t.Errorf("Progress: %v", err)
		}
	}
	read := func(ref *delayed.Ref, want string) {
		t.Helper()
		b.Until("others read "+want, func() bool {
			done, total, note, err := ref.Progress(b.within())
			if err != nil {
				t.Fatal(err)
			}
			return done == int64(len(want)) && note == want && total == 10
		})
	}
	ref := b.delay(f)
	say("one")
	read(ref, "one")
	for range 50 {
		say("sooner")
	}
	say("last")
	read(ref, "last")
	long := strings.Repeat("é", 4096)
	say(long)
	b.Until("others read as much of a long note as is kept", func() bool {
		done, _, note, err := ref.Progress(b.within())
		return err == nil && done == int64(len(long)) && note == long[:4096]
	})
	if info, err := ref.Info(b.within()); err != nil || info.State != state.Active || info.Function != b.Name+".f" ||
		info.Worker != w.ID() || info.EnqueuedAt.IsZero() {
		t.Errorf("found %+v, %v", info, err)
	}
	step <- "done"
	b.Until("nothing is left of it", func() bool { return b.Size("_results") == 0 })

	// The progress stays in the kept info.
	ref = b.delayWith(b.q.With(delayed.KeepResult(time.Hour)), f)
	say("kept")
	say("to the end")
	step <- "done"
	if err := ref.Wait(b.within()); err != nil {
		t.Error(err)
	}
	read(ref, "to the end")
	if where, _ := ref.State(b.within()); where != state.Completed {
		t.Errorf("its state is %v", where)
	}

	// It stays in the info of a failure as well.
	ref = b.delay(f)
	say("so far")
	step <- "fail"
	b.Until("it is to be retried", func() bool { where, _ := ref.State(b.within()); return where == state.Retry })
	read(ref, "so far")
	if n := b.Size("_results"); n != 1 {
		t.Errorf("%d results, expected that of the second task", n)
	}

	// A task that is given back is pending again.
	ref = b.delay(f)
	say("half")
	read(ref, "half")
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	b.Until("the worker stops", func() bool { return w.Status().State != state.Running })
	close(step)
	if err := await(b, "the worker's end", stopped); err != nil {
		t.Error(err)
	}
	if err := delayed.Progress(t.Context(), 1, 2, ""); err == nil ||
		!strings.Contains(err.Error(), "outside of a handler") {
		t.Errorf("outside of a handler: %v", err)
	}
}

func TestProgressOfLessThanNothing(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(ctx context.Context) error { return delayed.Progress(ctx, -1, -10, "less than nothing") })
	b.work(b.config(), f)
	ref := b.delayWith(b.q.With(delayed.KeepResult(time.Hour)), f)
	b.Must(ref.Wait(b.within()))
	done, total, note, err := ref.Progress(b.within())
	if done != 0 || total != 0 || note != "less than nothing" || err != nil {
		t.Errorf("%d of %d, %q, %v", done, total, note, err)
	}
}

// TestProgressOfReleased gives back a task that has reported progress: the report is deleted.
func TestProgressOfReleased(t *testing.T) {
	b := newBench(t)
	began := make(chan struct{})
	f := b.fn("f", func(ctx context.Context) error {
		if err := delayed.Progress(ctx, 1, 2, "half"); err != nil {
			t.Error(err)
		}
		close(began)
		<-ctx.Done()
		if err := delayed.Progress(context.WithoutCancel(ctx), 2, 2, "late"); err != nil {
			t.Error(err)
		}
		return context.Cause(ctx)
	})
	cfg := b.config()
	cfg.Grace = -1
	w := b.work(cfg, f)
	ref := b.delay(f)
	await(b, "the report", began)
	w.mustStop()
	if n, results := b.Size(""), b.Size("_results"); n != 1 || results != 0 {
		t.Errorf("%d tasks are pending and %d reports are left, expected 1 and 0", n, results)
	}
	if where, err := ref.State(b.within()); where != state.Unknown || err != nil {
		t.Errorf("its state is %v, %v", where, err)
	}
	b.Check(redistest.Invariants{})
}

// TestProgressOfLost reports for a claim that another worker may have.
func TestProgressOfLost(t *testing.T) {
	b := newBench(t)
	began, gone := make(chan struct{}), make(chan error)
	f := b.fn("f", func(ctx context.Context) {
		began <- struct{}{}
		<-began
		gone <- delayed.Progress(ctx, 1, 2, "")
	})
	w := b.work(b.config(), f)
	b.delay(f)
	await(b, "the handler", began)
	b.Do("DEL", b.Name+"_processing:"+w.ID())
	began <- struct{}{}
	if err := await(b, "Progress", gone); !errors.Is(err, delayed.ErrLost) {
		t.Errorf("Progress: %v, expected ErrLost", err)
	}
	if n := b.Size("_results"); n != 0 {
		t.Errorf("%d reports", n)
	}
	w.mustStop()
}

// BenchmarkAwait measures the time from the end of a function to the return of Await in another goroutine that has been
// waiting: p50-us and p99-us.
func BenchmarkAwait(b *testing.B) {
	for _, waiters := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			env := newBench(b)
			open := make(chan struct{})
			f := env.fn("f", func() int64 {
				<-open
				return time.Now().UnixNano()
			}, delayed.KeepResult(time.Minute))
			cfg := env.config()
			cfg.Concurrency = waiters
			w := env.work(cfg, f)
			var all []time.Duration
			var mu sync.Mutex
			b.ResetTimer()
			for done := 0; done < b.N; done += waiters {
				var waiting sync.WaitGroup
				refs := make([]*delayed.Ref, min(waiters, b.N-done))
				for i := range refs {
					refs[i] = env.delay(f)
				}
				for _, ref := range refs {
					waiting.Go(func() {
						end, err := delayed.Await[int64](b.Context(), ref)
						took := time.Duration(time.Now().UnixNano() - end)
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						all = append(all, took)
						mu.Unlock()
					})
				}
				env.Until("all have subscribed", func() bool {
					return !slices.ContainsFunc(refs, func(r *delayed.Ref) bool { return env.subscribed(r.ID()) == 0 })
				})
				for range refs {
					open <- struct{}{}
				}
				waiting.Wait()
			}
			b.StopTimer()
			w.mustStop()
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(0, "ns/op")
			env.Do("UNLINK", env.Name+"_results", env.Name+"_completed")
		})
	}
}
