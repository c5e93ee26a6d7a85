package delayed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// parseForTest reads a message back.
func parseForTest(message string) (wire.Message, error) {
	return wire.Parse([]byte(message), wire.WorkerLimits)
}

// pending returns the queue's messages.
func (b *bench) pending() []wire.Message {
	b.T.Helper()
	list := b.List("")
	messages := make([]wire.Message, len(list))
	for i, m := range list {
		var err error
		if messages[i], err = parseForTest(m); err != nil {
			b.T.Fatal(err)
		}
	}
	return messages
}

func plainForTest(int) {}

func TestDelayWritesExtendedMessage(t *testing.T) {
	b := newBench(t)
	before := time.Now().UnixMilli()
	ref := b.delayWith(b.q.With(delayed.MaxRetry(3)), plainForTest, 7)
	m := b.pending()[0]
	if m.Kind != wire.GoExtended || m.Path != testPath+"plainForTest" ||
		string(m.Payload) != "\x07" {
		t.Errorf("%+v", m)
	}
	if m.Meta.ID != ref.ID() || len(ref.ID()) != 24 || !m.Meta.HasMaxRetry || m.Meta.MaxRetry != 3 || m.Meta.HasN ||
		m.Meta.EnqueuedAt < before || m.Meta.EnqueuedAt > time.Now().UnixMilli() {
		t.Errorf("meta %+v, ref %s", m.Meta, ref)
	}
	if ref.Queue() != b.Name || ref.String() != b.Name+"/"+ref.ID() || b.q.Ref("x").ID() != "x" {
		t.Errorf("ref %v", ref)
	}
	if n, err := b.q.Len(t.Context()); n != 1 || err != nil {
		t.Errorf("Len %d, %v", n, err)
	}
	b.Check(redistest.Invariants{})
}

func TestDelayByPathSendsTheNumberOfArguments(t *testing.T) {
	b := newBench(t)
	if _, err := b.q.Enqueue(t.Context(), delayed.NewGoTask("a/b.F", []int{1})); err != nil {
		t.Fatal(err)
	}
	m := b.pending()[0]
	if !m.Meta.HasN || m.Meta.N != 1 || string(m.Payload) != "\x91\x91\x01" {
		t.Errorf("%+v", m)
	}
}

func TestLegacyQueueSendsWhatLegacyWorkersRead(t *testing.T) {
	b := newBench(t)
	q, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if ref := b.delayWith(q, plainForTest, 7); ref.ID() != "" {
		t.Errorf("a plain message has no id, found %q", ref.ID())
	}
	b.delayWith(q.With(delayed.MaxRetry(1)), plainForTest, 8)
	ms := b.pending()
	if ms[0].Kind != wire.GoPlain || ms[1].Kind != wire.GoExtended {
		t.Errorf("kinds %v %v", ms[0].Kind, ms[1].Kind)
	}
}

func TestPythonFormsDoNotMix(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	legacy, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	task := delayed.NewPyTask("m:f", []any{1}, nil)
	ref, err := b.q.With(delayed.MaxRetry(2), delayed.TaskID("x")).Enqueue(ctx, task)
	if err != nil || ref.ID() != "x" {
		t.Fatal(ref, err)
	}
	if m := b.pending()[0]; m.Kind != wire.PyExtended || m.Retry != 2 || m.Meta.ID != "x" {
		t.Errorf("%+v", m)
	}
	if _, err := legacy.Enqueue(ctx, task); !strings.Contains(errorText(err), "extended") {
		t.Errorf("plain task on an extended queue: %v", err)
	}
	b.delay(plainForTest, 1) // Go tasks have only one form
	other := newBench(t)
	legacy, _ = delayed.OpenQueue(other.Name, other.rdb.WithLegacy(), delayed.QueueConfig{})
	refs, err := legacy.With(delayed.MaxRetry(1)).DelayMany(ctx, task, task)
	if err != nil {
		t.Fatal(err)
	}
	if id := refs[1].ID(); id != "" {
		t.Errorf("a plain Python task has the id %q", id)
	}
	if m := other.pending()[1]; m.Kind != wire.Py || m.Retry != 1 || string(m.Args()) != "\x91\x01" {
		t.Errorf("%+v", m)
	}
	if _, err := other.q.DelayMany(ctx, task); !strings.Contains(errorText(err), "plain") {
		t.Errorf("extended task on a plain queue: %v", err)
	}
	if _, err := legacy.With(delayed.TaskID("x")).Enqueue(ctx, task); !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("TaskID on a plain Python task: %v", err)
	}
}

// TestPythonFormEndsWithTheLastTask: the other form may follow once the queue holds nothing that may be a Python task,
// in no place, and no entry that makes one.
func TestPythonFormEndsWithTheLastTask(t *testing.T) {
	b := newBench(t)
	task := delayed.NewPyTask("m:f", nil, nil)
	for _, place := range [][]any{
		{"RPUSH", b.Name, "m"},
		{"ZADD", b.Name + "_scheduled", 1, "x"},
		{"ZADD", b.Name + "_retry", 1, "x"},
		{"ZADD", b.Name + "_parked", 1, "x"},
		{"ZADD", b.Name + "_archived", 1, "x"},
		{"HSET", b.Name + "_processing", "1", "m"},
		{"HSET", b.Name + "_processing:w", "1-1", "m"},
		{"HSET", b.Name + "_periodic", "e", "r"},
	} {
		b.Do("SADD", b.Name+"_workers", "v", "w")
		b.Do("SET", b.Name+"_mode", "extended")
		b.Do(fmt.Sprint(place[0]), place[1:]...)
		q, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
		b.Must(err)
		if _, err := q.Enqueue(t.Context(), task); !strings.Contains(errorText(err), "may hold extended Python tasks") {
			t.Errorf("with a task in %s: %v", place[1], err)
		}
		b.Do("DEL", place[1])
		if _, err := q.Enqueue(t.Context(), task); err != nil {
			t.Errorf("behind a task in %s: %v", place[1], err)
		}
		if form := fmt.Sprintf("%s", b.Do("GET", b.Name+"_mode")); form != "plain" {
			t.Errorf("the form is %s", form)
		}
		b.Do("DEL", b.Name, b.Name+"_noti")
	}
	// A handle that has seen the form confirmed asks again after a while.
	b.Do("SET", b.Name+"_mode", "extended")
	b.Do("RPUSH", b.Name, "m")
	q, _ := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	delayed.ForgetForm(q)
	if _, err := q.Enqueue(t.Context(), task); err == nil {
		t.Error("a form that was confirmed long ago is relied on")
	}
}

// TestLegacyQueueRefusesWhatKeakonCannotRead: keakon's worker takes messages from the list before it finds keys that
// are not strings.
func TestLegacyQueueRefusesWhatKeakonCannotRead(t *testing.T) {
	b := newBench(t)
	legacy, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	b.Must(err)
	for _, bad := range []any{
		map[int]string{1: "a"},
		map[bool]int{true: 1},
		[]any{1, map[string]any{"a": []map[any]int{{2: 1}}}},
	} {
		for _, task := range []*delayed.Task{
			delayed.NewPyTask("m:f", []any{bad}, nil),
			delayed.NewPyTask("m:f", nil, map[string]any{"k": bad}),
		} {
			if _, err := legacy.Enqueue(t.Context(), task); !errors.Is(err, delayed.ErrArguments) ||
				!strings.Contains(err.Error(), "keys are strings") {
				t.Errorf("%v: %v", bad, err)
			}
		}
	}
	if n := b.Size(""); n != 0 {
		t.Errorf("%d tasks are pending", n)
	}
	_, err = legacy.Enqueue(t.Context(),
		delayed.NewPyTask("m:f", []any{map[string]any{"a": []byte{1}}, time.Now(), uint64(math.MaxUint64), nil},
			map[string]any{"k": 1.5}))
	b.Must(err)
}

// TestPythonTaskWithoutID: what can be asked only by an id is an error, never silence.
func TestPythonTaskWithoutID(t *testing.T) {
	b := newBench(t)
	legacy, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	b.Must(err)
	ctx, task := t.Context(), delayed.NewPyTask("m:f", nil, nil)
	ref, err := legacy.Enqueue(ctx, task)
	b.Must(err)
	_, stateErr := ref.State(ctx)
	for what, err := range map[string]error{
		"Cancel": ref.Cancel(ctx), "Wait": ref.Wait(ctx), "RunAgain": ref.RunAgain(ctx), "Delete": ref.Delete(ctx),
		"State": stateErr,
	} {
		if !errors.Is(err, delayed.ErrNoID) {
			t.Errorf("%s: %v", what, err)
		}
	}
	later, err := legacy.With(delayed.In(time.Hour)).Enqueue(ctx, task)
	b.Must(err)
	b.Must(later.Cancel(ctx))
	if n := b.Size("_scheduled"); n != 0 {
		t.Errorf("%d tasks are scheduled", n)
	}
	if err := later.Cancel(ctx); !errors.Is(err, delayed.ErrNoID) {
		t.Errorf("Cancel of one that is not scheduled any more: %v", err)
	}
	if n := b.Size("_revoked"); n != 0 {
		t.Errorf("%d cancellations are noted that reach nobody", n)
	}
}

func TestScheduledPythonTaskKeepsItsBytes(t *testing.T) {
	b := newBench(t)
	q, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	b.Must(err)
	q = q.With(delayed.In(time.Hour))
	for range 2 { // equal messages must not become one
		if _, err := q.Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil)); err != nil {
			t.Fatal(err)
		}
	}
	tasks := b.Hash("_tasks")
	if len(tasks) != 2 {
		t.Errorf("%d tasks, expected 2", len(tasks))
	}
	for _, m := range tasks {
		if m != "\x91\xa3m:f" {
			t.Errorf("%q", m)
		}
	}
}

func TestFaultyCallsAreErrorsAndWriteNothing(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	big := strings.Repeat("x", wire.Default.Bytes)
	for name, tt := range map[string]struct {
		call func() error
		want error
	}{
		"too large": {
			func() error { _, err := b.q.Enqueue(ctx, delayed.NewGoTask("a.B", big)); return err },
			delayed.ErrArguments,
		},
		"too large together": {func() error {
			_, err := b.q.Enqueue(ctx, delayed.NewGoTask("a.B", big[:len(big)-20]))
			return err
		}, delayed.ErrArguments},
	} {
		if err := tt.call(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, expected %v", name, err, tt.want)
		}
	}
	if state := redistest.Dump(t, b.Conn, b.Name); len(state) != 0 {
		t.Errorf("something was written: %v", state)
	}
	var misfit *delayed.ArgumentError
	_, err := b.q.Delay(plainForTest, "x")
	if !errors.As(err, &misfit) || misfit.Index != 0 || misfit.Want != "int" ||
		!strings.Contains(misfit.Func, "plainForTest") {
		t.Errorf("%#v", misfit)
	}
	if _, err := b.q.Enqueue(ctx, delayed.NewGoTask("a.B", make(chan int))); !errors.As(err, &misfit) ||
		misfit.Func != "a.B" {
		t.Errorf("%v", err)
	}
}

func TestDelayManySplitsBySize(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func(string) {})
	large := strings.Repeat("x", 900_000)
	var tasks []*delayed.Task
	for range 20 { // 18 MB: three batches
		tasks = append(tasks, delayed.Call(f, large))
	}
	refs, err := b.q.DelayMany(t.Context(), tasks...)
	if err != nil || len(refs) != 20 || b.Size("") != 20 || b.Size("_noti") != 20 {
		t.Errorf("%d refs, %v, %d pending", len(refs), err, b.Size(""))
	}
	if calls := b.Do("OBJECT", "ENCODING", b.Name); calls == nil {
		t.Error("no list")
	}
	if refs, err := b.q.DelayMany(t.Context()); err != nil || len(refs) != 0 {
		t.Errorf("nothing: %v, %v", refs, err)
	}
}

func TestContextEndsDelay(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.q.DelayContext(ctx, plainForTest, 1); !errors.Is(err, context.Canceled) ||
		errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("a context that had ended: %v", err)
	}
	// A server that accepts connections and never answers.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	rdb, _ := delayed.Dial("redis://" + silent.Addr().String())
	defer rdb.Close()
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := delayed.NewQueue("x", rdb).DelayContext(ctx, plainForTest, 1); err == nil {
		t.Error("no error from a silent server")
	}
}

func TestPrefixKeepsQueuesApart(t *testing.T) {
	b := newBench(t)
	rdb := b.rdb.WithPrefix("app:")
	if delayed.Signals(rdb) != delayed.Signals(b.rdb) {
		t.Error("WithPrefix makes a Pub/Sub connection of its own")
	}
	f := b.fn("f", func() {})
	if _, err := delayed.NewQueue(b.Name, rdb).Delay(f); err != nil {
		t.Fatal(err)
	}
	if b.Size("") != 0 {
		t.Error("the prefix was ignored")
	}
	if n, _ := delayed.NewQueue(b.Name, rdb).Len(t.Context()); n != 1 {
		t.Errorf("%d pending under the prefix", n)
	}
	b.workWith(rdb, b.config(), f)
	b.Until("it has run", func() bool { n, _ := delayed.NewQueue(b.Name, rdb).Len(t.Context()); return n == 0 })
}

// countingSource counts the connections that are in use.
type countingSource struct {
	delayed.Source
	now, most atomic.Int64
	hold      chan struct{}
}

func (s *countingSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	if n := s.now.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	<-s.hold
	defer s.now.Add(-1)
	return s.Source.Conn(ctx, key)
}

// TestSizesOfBatches: as many tasks as one call of DelayMany accepts together, by their options.
func TestSizesOfBatches(t *testing.T) {
	for name, test := range map[string]struct {
		option delayed.Option
		script string
		size   int
	}{
		"plain":     {delayed.MaxRetry(3), "enqueue", redisstore.MaxBatchTasks},
		"scheduled": {delayed.In(time.Hour), "schedule", redisstore.MaxFiled},
		"grouped":   {delayed.Group("g"), "gather", redisstore.MaxFiled},
		"unique":    {delayed.Unique(time.Hour), "enlist", redisstore.MaxEnlisted},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			f := b.fn("f", func(...int) {})
			tasks := make([]*delayed.Task, test.size+1)
			for i := range tasks {
				tasks[i] = delayed.Call(f, i)
			}
			requests, called := 0, calls(redisstore.Scripts[test.script])
			rdb, _ := b.faulty(faultnet.Once(faultnet.DropRequest, func(request []byte) bool {
				if called(request) {
					requests++
				}
				return requests == 2
			}))
			_, err := delayed.NewQueue(b.Name, rdb).With(test.option).DelayMany(t.Context(), tasks...)
			var batch *delayed.BatchError
			if !errors.As(err, &batch) || batch.Sent != test.size {
				t.Errorf("expected that the first request has %d tasks, found %v", test.size, err)
			}
		})
	}
}

// TestCoalescersAreShared by the queues of a handle that have one list, and forgotten with them.
func TestCoalescersAreShared(t *testing.T) {
	b := newBench(t)
	again := delayed.NewQueue(b.Name, b.rdb)
	legacy, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*delayed.Queue{
		"again": again, "With": b.q.With(delayed.MaxRetry(1)),
		"another form": legacy,
	} {
		if delayed.Coalescer(q) != delayed.Coalescer(b.q) {
			t.Errorf("%s: another coalescer", name)
		}
	}
	rdb, err := delayed.Dial(b.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	for name, q := range map[string]*delayed.Queue{
		"another queue":  delayed.NewQueue(b.Name+"x", b.rdb),
		"prefix":         delayed.NewQueue(b.Name, b.rdb.WithPrefix("x:")),
		"another handle": delayed.NewQueue(b.Name, rdb),
	} {
		if delayed.Coalescer(q) == delayed.Coalescer(b.q) {
			t.Errorf("%s: the same coalescer", name)
		}
	}
	for i := range 10_000 {
		delayed.NewQueue(fmt.Sprint(b.Name, ".", i), b.rdb)
	}
	b.Until("the queues that are out of use are forgotten", func() bool {
		runtime.GC()
		return delayed.Coalescers(b.rdb) == 1
	})
	if delayed.Coalescer(delayed.NewQueue(b.Name, b.rdb)) != delayed.Coalescer(b.q) {
		t.Error("a queue that is in use was forgotten")
	}
	runtime.KeepAlive(b.q)
}

// faulty returns a handle whose connections break as plan says.
func (b *bench) faulty(plan faultnet.Plan) (*delayed.Store, *faultnet.Dialer) {
	d := faultnet.NewDialer(plan, 0)
	pool := &redis.Pool{
		MaxIdle: 10,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialContextFunc(d.DialContext),
				redis.DialReadTimeout(redisstore.CallTimeout))
		},
	}
	b.T.Cleanup(func() { pool.Close() })
	return delayed.FromPool(pool), d
}

// calls returns a function that reports whether a request runs the given script.
func calls(sc *redisstore.Script) func([]byte) bool {
	return func(request []byte) bool { return bytes.Contains(request, []byte(sc.Sha)) }
}

func TestDelayWithoutReplyIsUnknown(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	b.delay(f, 0)
	rdb, _ := b.faulty(faultnet.Once(faultnet.DropReply, calls(redisstore.Scripts["enqueue"])))
	if _, err := delayed.NewQueue(b.Name, rdb).Delay(f, 1); !errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("error %v, expected ErrUnknown", err)
	}
	if n := b.Size(""); n != 2 {
		t.Errorf("%d pending, expected 2", n)
	}
	tasks := make([]*delayed.Task, redisstore.MaxBatchTasks+1)
	for i := range tasks {
		tasks[i] = delayed.Call(f, i)
	}
	sent, enqueues := 0, calls(redisstore.Scripts["enqueue"])
	rdb, _ = b.faulty(faultnet.Once(faultnet.DropRequest, func(r []byte) bool {
		if enqueues(r) {
			sent++
		}
		return sent == 2
	}))
	refs, err := delayed.NewQueue(b.Name, rdb).DelayMany(t.Context(), tasks...)
	var batch *delayed.BatchError
	if !errors.As(err, &batch) || batch.Sent != redisstore.MaxBatchTasks || len(refs) != redisstore.MaxBatchTasks ||
		!errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("%d refs, %v", len(refs), err)
	}
}

// enqueued returns how often a task with each number is in Redis: pending, scheduled or gathered. The number is the
// task's only argument.
func (b *bench) enqueued() map[int]int {
	b.T.Helper()
	messages := b.List("")
	for _, m := range b.Hash("_tasks") {
		messages = append(messages, m)
	}
	groups, err := redis.Strings(b.Do("ZRANGE", b.Name+"_groups", 0, -1), nil)
	b.Must(err)
	for _, g := range groups {
		messages = append(messages, b.List("_group:"+g)...)
	}
	times := map[int]int{}
	for _, m := range messages {
		msg, err := parseForTest(m)
		b.Must(err)
		value, _, err := wire.DecodeAny(msg.Payload)
		b.Must(err)
		if list, ok := value.([]any); ok && len(list) == 1 {
			value = list[0]
		}
		n, ok := value.(int64)
		if !ok {
			b.T.Fatalf("the argument is %v, expected one number", value)
		}
		times[int(n)]++
	}
	return times
}

// TestProducersOfEveryKindOnABadNetwork: producers of plain, scheduled, gathered and unique tasks enqueue at once while
// replies and requests get lost. Each caller learns what happened to its own task, and of the tasks with one key there
// is one at most.
func TestProducersOfEveryKindOnABadNetwork(t *testing.T) {
	b := newBench(t)
	fn := b.fn("f", func(...int) {})
	dialer := faultnet.NewDialer(faultnet.Random(1, faultnet.Rates{DropReply: 0.1, DropRequest: 0.1}), 0)
	rdb := delayed.FromPool(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialContextFunc(dialer.DialContext))
	}})
	defer rdb.Close()
	q := delayed.NewQueue(b.Name, rdb)
	const producers, each, kinds = 64, 20, 4
	outcomes := make([]error, producers*each)
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := range each {
				options := []delayed.Option{
					nil, delayed.In(time.Hour + time.Duration(i)*time.Minute), delayed.Group("g"),
					delayed.UniqueKey(fmt.Sprint(i), time.Hour),
				}[p%kinds]
				q := q
				if options != nil {
					q = q.With(options)
				}
				ctx, cancel := context.WithCancel(t.Context())
				if p%8 >= kinds {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i*p)*time.Microsecond)
				}
				_, outcomes[p*each+i] = q.DelayContext(ctx, fn, p*each+i)
				cancel()
			}
		})
	}
	group.Wait()
	found, unknown := b.enqueued(), 0
	holders, refused, confirmed := map[int]int{}, map[int]bool{}, map[int]bool{}
	for id, err := range outcomes {
		n, lock := found[id], id%each
		unique := id/each%kinds == 3
		if unique {
			holders[lock] += n
		}
		var duplicate *delayed.DuplicateError
		switch {
		case err == nil:
			if n != 1 {
				t.Errorf("task %d is there %d times, its call reported that it is", id, n)
			}
			confirmed[lock] = confirmed[lock] || unique
		case errors.Is(err, delayed.ErrUnknown):
			if unknown++; n > 1 {
				t.Errorf("task %d is there %d times", id, n)
			}
		case unique && errors.As(err, &duplicate):
			if refused[lock] = true; n != 0 {
				t.Errorf("task %d is there, but its call reported that another one is", id)
			}
		case !errors.Is(err, context.DeadlineExceeded) || n != 0:
			t.Errorf("task %d is there %d times, its call reported: %v", id, n, err)
		}
	}
	for lock := range each {
		if n := holders[lock]; n > 1 || n == 0 && (refused[lock] || confirmed[lock]) {
			t.Errorf("%d tasks have the key %d, some confirmed: %v, some refused: %v", n, lock, confirmed[lock],
				refused[lock])
		}
	}
	if unknown == 0 || unknown > len(outcomes)/2 {
		t.Errorf("%d of %d tasks are unknown, expected some", unknown, len(outcomes))
	}
	b.Check(redistest.Invariants{})
}

// TestCloseWhileProducersEnqueue: the handle is closed while tasks of every kind wait for a connection. Each caller is
// informed of it, or its task is there.
func TestCloseWhileProducersEnqueue(t *testing.T) {
	b := newBench(t)
	fn := b.fn("f", func(...int) {})
	rdb, err := delayed.Dial(b.Server.URL())
	b.Must(err)
	q := delayed.NewQueue(b.Name, rdb)
	queues := []*delayed.Queue{
		q, q.With(delayed.In(time.Hour)), q.With(delayed.Group("g")), q.With(delayed.Front()),
	}
	const producers = 32
	outcomes := make([]error, producers)
	accepted := make([]map[int]bool, producers)
	var some, group sync.WaitGroup
	some.Add(producers)
	for p := range producers {
		accepted[p] = map[int]bool{}
		group.Go(func() {
			for i := p; outcomes[p] == nil; i += producers {
				if _, outcomes[p] = queues[p%len(queues)].Delay(fn, i); outcomes[p] == nil {
					accepted[p][i] = true
				}
				if i == p {
					some.Done()
				}
			}
		})
	}
	some.Wait()
	b.Must(rdb.Close())
	group.Wait()
	found := b.enqueued()
	for p, err := range outcomes {
		unknown := errors.Is(err, delayed.ErrUnknown)
		if !errors.Is(err, delayed.ErrClosed) && !unknown {
			t.Errorf("producer %d: %v, expected ErrClosed", p, err)
		}
		for i := range accepted[p] {
			if found[i] != 1 {
				t.Errorf("task %d is there %d times, its call reported that it is", i, found[i])
			}
			delete(found, i)
		}
		if last := p + producers*len(accepted[p]); found[last] == 1 && unknown {
			delete(found, last)
		}
	}
	if len(found) > 0 {
		t.Errorf("tasks are there, but their calls reported that nothing was sent: %v", found)
	}
}

// TestWrongTypedKeyIsNamed: errors about a key of another program name the key.
func TestWrongTypedKeyIsNamed(t *testing.T) {
	b := newBench(t)
	q := func() (*delayed.Queue, string) {
		name := redistest.Name(t)
		return delayed.NewQueue(name, b.rdb), name
	}
	ctx := t.Context()
	for suffix, do := range map[string]func(q *delayed.Queue) error{
		"":           func(q *delayed.Queue) error { _, err := q.Len(ctx); return err },
		"_noti":      func(q *delayed.Queue) error { _, err := q.Delay(lenTask); return err },
		"_tasks":     func(q *delayed.Queue) error { _, err := q.With(delayed.In(1e9)).Delay(lenTask); return err },
		"_scheduled": func(q *delayed.Queue) error { _, err := q.Ref("x").State(ctx); return err },
		"_control":   func(q *delayed.Queue) error { return q.Pause(ctx) },
		"_parked":    func(q *delayed.Queue) error { _, _, err := q.Parked(ctx, 0, 1); return err },
		"_periodic":  func(q *delayed.Queue) error { _, err := q.Periodic().List(ctx); return err },
		"_groups": func(q *delayed.Queue) error {
			_, err := q.With(delayed.Group("g")).Delay(listTask, 1)
			return err
		},
	} {
		q, name := q()
		if _, err := b.Conn.Do("PFADD", name+suffix, "x"); err != nil { // a string, which no code of this package makes
			t.Fatal(err)
		}
		err := do(q)
		want := fmt.Sprintf("key %q is a string, expected a %s: another program writes there; rename or delete its key",
			name+suffix, redisstore.TypeOfKey(name+suffix))
		if err == nil || !strings.HasPrefix(err.Error(), "delayed: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v, expected %q", suffix, err, want)
		}
		if _, err := b.Conn.Do("DEL", name+suffix); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWrongTypeWithoutTYPE: for a user who may not call TYPE, the error names the possible keys.
func TestWrongTypeWithoutTYPE(t *testing.T) {
	server := redistest.Start(t)
	name := redistest.Name(t)
	server.Do(t, "ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-type")
	server.Do(t, "SET", name, "x")
	rdb, err := delayed.Dial(strings.Replace(server.URL(), "redis://", "redis://u:p@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	if _, err := delayed.NewQueue(name, rdb).Len(t.Context()); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("one of the keys [%q]", name)) {
		t.Errorf("found %v", err)
	}
}

func lenTask() {}

func listTask(...int) {}

// TestOtherQueuesRunBesideAWrongType: tasks run, and due ones too, while a key of another queue of the worker has
// another type. That queue's tasks run once the key is gone.
func TestOtherQueuesRunBesideAWrongType(t *testing.T) {
	for _, key := range []string{"", "_noti", "_scheduled", "_control"} {
		for _, weighted := range []bool{false, true} {
			t.Run(fmt.Sprintf("key %q, weighted %v", key, weighted), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				b := newBenchOn(t, server)
				names := []string{b.Name + "bad", b.Name, b.Name + "last"}
				b.Do("SET", names[0]+key, "of another program")
				ran := make(chan string, 100)
				f := b.fn("f", func(name string) { ran <- name })
				for _, name := range names[1:] {
					q := delayed.NewQueue(name, b.rdb)
					for range 3 {
						b.delayWith(q, f, name)
						b.delayWith(q.With(delayed.In(10*time.Millisecond)), f, name)
					}
				}
				cfg := b.config()
				cfg.Queues = delayed.Strict(names)
				if weighted {
					cfg.Queues = delayed.Weighted{names[0]: 5, names[1]: 2, names[2]: 1}
				}
				start := time.Now()
				w := b.work(cfg, f)
				for range 12 {
					await(b, "a task of another queue", ran)
				}
				for range 30 { // while Redis goes on refusing claims from the other one
					b.delayWith(b.q.With(delayed.In(20*time.Millisecond)), f, b.Name)
					await(b, "a task of another queue", ran)
				}
				most := 1 + int(time.Since(start)/loop.ComplaintInterval)
				if n := strings.Count(b.log.String(), "cannot claim tasks"); n > most {
					t.Errorf("the log complains %d times of the queue:\n%s", n, b.log)
				}
				b.Do("DEL", names[0]+key)
				b.delayWith(delayed.NewQueue(names[0], b.rdb), f, "bad")
				if name := await(b, "the task of the bad queue", ran); name != "bad" {
					t.Errorf("found one of %q", name)
				}
				w.mustStop()
			})
		}
	}
}

// TestOtherQueuesRunBesideARefusedRegistration: where Redis refuses to register a worker, because the set of workers is
// of another type, the worker serves its other queues, and that one too as soon as it can. At its stop it unregisters
// from the others.
func TestOtherQueuesRunBesideARefusedRegistration(t *testing.T) {
	server := redistest.Start(t)
	b := newBenchOn(t, server)
	bad, key := b.Name+"bad", b.Name+"bad_workers"
	b.Do("SET", key, "of another program")
	ran := make(chan string, 1)
	f := b.fn("f", func(name string) { ran <- name })
	cfg := b.config()
	cfg.Queues = delayed.Strict{bad, b.Name}
	w, err := delayed.NewWorker(b.rdb, cfg)
	b.Must(err)
	b.Must(w.Register(f))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	waits := func() bool {
		info, err := redis.String(b.Conn.Do("INFO", "clients"))
		return err == nil && strings.Contains(info, "blocked_clients:1\r\n")
	}
	for range 3 {
		b.Until("the worker waits for tasks", waits)
		b.delayWith(b.q, f, b.Name)
		await(b, "a task of the other queue", ran)
	}
	if w.Status().Connected {
		t.Error("the worker says that it is connected to all queues")
	}
	b.Do("DEL", key)
	b.Until("the worker is connected", func() bool { return w.Status().Connected })
	b.delayWith(delayed.NewQueue(bad, b.rdb), f, bad)
	await(b, "a task of the queue that was refused", ran)
	b.Do("DEL", key)
	b.Do("SET", key, "of another program")
	cancel()
	if err := await(b, "the end of Run", result); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("Run returned %v, expected that it cannot unregister because of %s", err, key)
	}
	if n := b.Size("_workers"); n != 0 {
		t.Errorf("the worker is still registered on the other queue")
	}
}

func benchTask(int64, string) {}

var benchFunction = delayed.Func(benchTask, delayed.Name("bench.task"))

// produce calls f for 0 to b.N−1 from a number of goroutines.
func produce(b *testing.B, producers int, f func(i int) error) {
	b.Helper()
	var group sync.WaitGroup
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	for range producers {
		group.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := f(int(i - 1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkDelayDurable enqueues tasks on a server with one replica, with each setting that makes it less likely that a
// task is lost. docs/SERVERS.md quotes it.
func BenchmarkDelayDurable(b *testing.B) {
	for _, fsync := range []string{"none", "everysec", "always"} {
		for _, replicas := range []int{0, 1} {
			for _, producers := range []int{1, 64} {
				name := fmt.Sprintf("appendfsync=%s/replicas=%d/producers=%d", fsync, replicas, producers)
				b.Run(name, func(b *testing.B) {
					var args []string
					if fsync != "none" {
						args = []string{"--appendonly", "yes", "--appendfsync", fsync}
					}
					master, _ := replicated(b, args...)
					rdb, err := delayed.Dial(master.URL())
					if err != nil {
						b.Fatal(err)
					}
					defer rdb.Close()
					q, err := delayed.OpenQueue("mail", rdb, delayed.QueueConfig{WaitReplicas: replicas})
					if err != nil {
						b.Fatal(err)
					}
					call := func(i int) error {
						_, err := q.Delay(benchFunction, 1_700_000_000_000+int64(i), "hello-task")
						return err
					}
					// The master sends the replica nothing until that has confirmed its copy, once a second.
					if err := call(0); err != nil {
						b.Fatal(err)
					}
					produce(b, producers, call)
				})
			}
		}
	}
}

// BenchmarkDelay enqueues one task a call, from several goroutines at once.
func BenchmarkDelay(b *testing.B) {
	for _, producers := range []int{1, 2, 4, 16, 64, 256} {
		for _, cancellable := range []bool{false, true} {
			b.Run(fmt.Sprintf("producers=%d/cancellable=%v", producers, cancellable), func(b *testing.B) {
				env := newBench(b)
				defer env.Do("UNLINK", env.Name, env.Name+"_noti")
				ctx := context.WithoutCancel(b.Context())
				if cancellable {
					ctx = b.Context()
				}
				produce(b, producers, func(i int) error {
					_, err := env.q.DelayContext(ctx, benchFunction, 1_700_000_000_000+int64(i), "hello-task")
					return err
				})
			})
		}
	}
}

// BenchmarkPair measures the least work of enqueueing: two RPUSH in one round trip, neither atomic nor with an id.
func BenchmarkPair(b *testing.B) {
	server := redistest.Shared(b)
	conn, name, message := server.Dial(b), redistest.Name(b), make([]byte, 36)
	defer server.Do(b, "UNLINK", name, name+"_noti")
	produce(b, 1, func(int) error {
		if err := conn.Send("RPUSH", name, message); err != nil {
			return err
		}
		_, err := conn.Do("RPUSH", name+"_noti", 1)
		return err
	})
}

// BenchmarkDelayMany enqueues a thousand tasks a call; a task is one operation.
func BenchmarkDelayMany(b *testing.B) {
	const many = 1000
	env := newBench(b)
	defer env.Do("UNLINK", env.Name, env.Name+"_noti")
	tasks := make([]*delayed.Task, 0, many)
	b.ReportAllocs()
	for i := range b.N {
		if tasks = append(tasks,
			delayed.Call(benchFunction, 1_700_000_000_000+int64(i), "hello-task")); len(tasks) < many &&
			i+1 < b.N {
			continue
		}
		if _, err := env.q.DelayMany(b.Context(), tasks...); err != nil {
			b.Fatal(err)
		}
		tasks = tasks[:0]
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkNewTask encodes a task without enqueueing it.
func BenchmarkNewTask(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		if t := delayed.Call(benchFunction, 1_700_000_000_000+int64(i), "hello-task"); t.Path() == "" {
			b.Fatal(t)
		}
	}
}

func BenchmarkTaskID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		runtime.KeepAlive(wire.NewTaskID())
	}
}
