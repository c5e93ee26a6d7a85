package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
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
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
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
	legacy, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
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
	legacy, _ = delayed.OpenQueue(other.rdb, delayed.QueueConfig{Name: other.Name, Legacy: true})
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
		q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
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
	q, _ := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
	delayed.ForgetForm(q)
	if _, err := q.Enqueue(t.Context(), task); err == nil {
		t.Error("a form that was confirmed long ago is relied on")
	}
}

// TestLegacyQueueRefusesWhatKeakonCannotRead: keakon's worker takes messages from the list before it finds keys that
// are not strings.
func TestLegacyQueueRefusesWhatKeakonCannotRead(t *testing.T) {
	b := newBench(t)
	legacy, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
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
	legacy, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
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
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
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

//nolint:contextcheck // some calls give a context where none belongs
func TestFaultyCallsAreErrorsAndWriteNothing(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	big := strings.Repeat("x", wire.Default.Bytes)
	for name, tt := range map[string]struct {
		call func() error
		want error
	}{
		"string for int": {func() error { _, err := b.q.Delay(plainForTest, "x"); return err }, delayed.ErrArguments},
		"too few":        {func() error { _, err := b.q.Delay(plainForTest); return err }, delayed.ErrArguments},
		"too many": {
			func() error { _, err := b.q.Delay(plainForTest, 1, 2); return err },
			delayed.ErrArguments,
		},
		"not a function":   {func() error { _, err := b.q.Delay(7); return err }, delayed.ErrFunction},
		"nil":              {func() error { _, err := b.q.Delay(nil); return err }, delayed.ErrFunction},
		"closure":          {func() error { _, err := b.q.Delay(func() {}); return err }, delayed.ErrFunction},
		"context first":    {func() error { _, err := b.q.Delay(ctx, plainForTest); return err }, delayed.ErrFunction},
		"context argument": {func() error { _, err := b.q.Delay(plainForTest, ctx); return err }, delayed.ErrArguments},
		"empty path": {
			func() error { _, err := b.q.Enqueue(ctx, delayed.NewGoTask("")); return err },
			delayed.ErrFunction,
		},
		"long path": {
			func() error { _, err := b.q.Enqueue(ctx, delayed.NewGoTask(big)); return err },
			delayed.ErrFunction,
		},
		"Python path": {
			func() error { _, err := b.q.Enqueue(ctx, delayed.NewGoTask("m:f")); return err },
			delayed.ErrFunction,
		},
		"Go path": {
			func() error { _, err := b.q.Enqueue(ctx, delayed.NewPyTask("a.b", nil, nil)); return err },
			delayed.ErrFunction,
		},
		"two colons": {
			func() error { _, err := b.q.Enqueue(ctx, delayed.NewPyTask("a:b:c", nil, nil)); return err },
			delayed.ErrFunction,
		},
		"channel": {
			func() error { _, err := b.q.Enqueue(ctx, delayed.NewGoTask("a.B", make(chan int))); return err },
			delayed.ErrArguments,
		},
		"Python channel": {func() error {
			_, err := b.q.Enqueue(ctx, delayed.NewPyTask("a:b", []any{make(chan int)}, nil))
			return err
		}, delayed.ErrArguments},
		"Python keyword": {func() error {
			_, err := b.q.Enqueue(ctx, delayed.NewPyTask("a:b", nil, map[string]any{"k": func() {}}))
			return err
		}, delayed.ErrArguments},
		"too large": {
			func() error { _, err := b.q.Enqueue(ctx, delayed.NewGoTask("a.B", big)); return err },
			delayed.ErrArguments,
		},
		"too large together": {func() error {
			_, err := b.q.Enqueue(ctx, delayed.NewGoTask("a.B", big[:len(big)-20]))
			return err
		}, delayed.ErrArguments},
		"nil task": {func() error { _, err := b.q.Enqueue(ctx, nil); return err }, delayed.ErrArguments},
		"nil among many": {
			func() error { _, err := b.q.DelayMany(ctx, delayed.Call(plainForTest, 1), nil); return err },
			delayed.ErrArguments,
		},
		"one faulty of many": {func() error {
			_, err := b.q.DelayMany(ctx, delayed.Call(plainForTest, 1), delayed.Call(plainForTest))
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

func TestOpenQueueSaysWhatIsWrong(t *testing.T) {
	b := newBench(t)
	for _, cfg := range []delayed.QueueConfig{{}, {Name: "a_retry"}} {
		if _, err := delayed.OpenQueue(b.rdb, cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
	if _, err := delayed.OpenQueue(nil, delayed.QueueConfig{Name: "x"}); err == nil {
		t.Error("a nil handle was accepted")
	}
	if _, err := delayed.OpenQueue(b.rdb.WithPrefix("p:"), delayed.QueueConfig{Name: "x", Legacy: true}); err == nil {
		t.Error("a legacy queue with a prefix was accepted")
	}
	defer func() {
		if recover() == nil {
			t.Error("NewQueue did not panic")
		}
	}()
	delayed.NewQueue("a b", b.rdb)
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
