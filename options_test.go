package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// TestBoundsOfOptions sets each option to its limit, which is allowed, and beyond it, which is not.
func TestBoundsOfOptions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func(...int) {})
	for _, c := range []struct {
		name        string
		in, outside delayed.Option
	}{
		{"TaskID", delayed.TaskID(strings.Repeat("x", 256)), delayed.TaskID(strings.Repeat("x", 257))},
		{
			"At", delayed.At(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)),
			delayed.At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)),
		},
		{"In", delayed.In(time.Millisecond), delayed.In(time.Millisecond - 1)},
		{
			"UniqueKey", delayed.UniqueKey(strings.Repeat("x", 510), time.Hour),
			delayed.UniqueKey(strings.Repeat("x", 511), time.Hour),
		},
		{"ttl of Unique", delayed.Unique(time.Millisecond), delayed.Unique(time.Millisecond - 1)},
		{"Group", delayed.Group(strings.Repeat("x", 256)), delayed.Group(strings.Repeat("x", 257))},
		{
			"Backoff", delayed.Backoff(make([]time.Duration, 64)...),
			delayed.Backoff(make([]time.Duration, 65)...),
		},
		{"MaxBackoff", delayed.MaxBackoff(time.Millisecond), delayed.MaxBackoff(0)},
		{"Retention", delayed.Retention(time.Millisecond), delayed.Retention(time.Millisecond - 1)},
	} {
		if _, err := b.q.With(c.in).Delay(f, 1); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := b.q.With(c.outside).Delay(f, 2); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s beyond its bound: %v", c.name, err)
		}
	}
}

// TestWeightsAtTheirBounds: the highest weight is allowed, and none above.
func TestWeightsAtTheirBounds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for weight, ok := range map[int]bool{-1: false, 0: true, 1: true, 1000: true, 1001: false} {
		if err := b.q.SetWeight(t.Context(), weight); ok != (err == nil) || !ok &&
			!errors.Is(err, delayed.ErrArguments) {
			t.Errorf("weight %d: %v", weight, err)
		}
	}
}

// TestRefusedTaskOfASecondBatch: the error gives the task's position in the whole call, not in its batch.
func TestRefusedTaskOfASecondBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func(...int) {}, delayed.Unique(time.Hour))
	there := b.delay(f, 119)
	tasks := make([]*delayed.Task, 150) // 100 go together
	for i := range tasks {
		tasks[i] = delayed.Call(f, i)
	}
	refs, err := b.q.DelayMany(t.Context(), tasks...)
	var batch *delayed.BatchError
	var taken *delayed.DuplicateError
	if !errors.As(err, &batch) || !errors.As(err, &taken) || taken.ID != there.ID() || batch.Sent != 100 ||
		len(refs) != 100 || !strings.Contains(err.Error(), "task 120:") {
		t.Errorf("found %v, with %d of %d refs", err, len(refs), len(tasks))
	}
}

// TestGroupWithoutAPolicy: by default a group waits for a minute, and for at most a thousand calls.
func TestGroupWithoutAPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	index := b.fn("index", func(...int) {})
	byPath := delayed.NewGoTask("example.com/search.Index", []int{1})
	q := b.q.With(delayed.Group("k"))
	tasks := make([]*delayed.Task, 999)
	for i := range tasks {
		tasks[i] = delayed.Call(index, i)
	}
	for _, step := range []struct {
		tasks     []*delayed.Task
		size      int
		sooner    time.Duration // earliest due time
		later     time.Duration // latest due time
		groupsNow int
	}{
		{tasks, 999, 50 * time.Second, time.Minute, 1},
		{tasks[:1], 1000, -time.Minute, 0, 1},
		{[]*delayed.Task{byPath}, 1, 50 * time.Second, time.Minute, 2},
	} {
		_, err := q.DelayMany(t.Context(), step.tasks...)
		b.Must(err)
		groups, err := b.groups()
		b.Must(err)
		if len(groups) != step.groupsNow {
			t.Fatalf("found %+v", groups)
		}
		g := groups[len(groups)-1] // the groups are in order of their due times
		left := time.Until(g.Due)
		if g.Size != step.size || g.Key != "k" || left < step.sooner || left > step.later+time.Second {
			t.Errorf("found %+v, due in %v, expected %d calls, due in %v to %v", g, left, step.size, step.sooner,
				step.later)
		}
	}
}

// headersOf returns the headers of a message.
func headersOf(m *wire.Message) map[string]string {
	if m.Meta.Extra == nil {
		return nil
	}
	return m.Meta.Extra.Headers
}

func TestHeadersTravel(t *testing.T) {
	b := newBench(t)
	q := b.q.With(delayed.Header("tenant", "a"), delayed.Header("x", "1"), delayed.Header("x", "2"))
	other := q.With(delayed.Header("tenant", "b"), delayed.MaxRetry(1)) // this leaves q unchanged
	b.delayWith(q, plainForTest, 1)
	b.delayWith(other, plainForTest, 1)
	if _, err := other.Enqueue(t.Context(), delayed.NewGoTask("a.b", 1)); err != nil {
		t.Fatal(err)
	}
	b.delay(plainForTest, 1)
	want := []map[string]string{{"tenant": "a", "x": "2"}, {"tenant": "b", "x": "2"}, {"tenant": "b", "x": "2"}, nil}
	for i, m := range b.pending() {
		if got := headersOf(&m); !maps.Equal(got, want[i]) {
			t.Errorf("message %d: expected %q, found %q", i, want[i], got)
		}
		if i == 3 && m.Meta.Extra != nil {
			t.Errorf("a task without headers carries %+v", m.Meta.Extra)
		}
	}
	if s := delayed.Header("a", "b\n").String(); s != `Header("a", "b\n")` {
		t.Errorf("found %s", s)
	}
}

func TestHeadersWithinBounds(t *testing.T) {
	b := newBench(t)
	var many []delayed.Option
	for i := range wire.MaxHeaders + 1 {
		many = append(many, delayed.Header(fmt.Sprint("k", i), ""))
	}
	long := strings.Repeat("v", wire.MaxHeaderBytes)
	for _, c := range []struct {
		opts []delayed.Option
		says string
	}{
		{many, "65 headers, expected at most 64"},
		{[]delayed.Option{delayed.Header("k", long)}, "headers of 8193 bytes, expected at most 8192"},
	} {
		_, err := b.q.With(c.opts...).Delay(plainForTest, 1)
		if !errors.Is(err, delayed.ErrArguments) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("expected ErrArguments that says %q, found %v", c.says, err)
		}
	}
	b.delayWith(b.q.With(many[1:]...), plainForTest, 1)
	b.delayWith(b.q.With(delayed.Header("k", long[1:])), plainForTest, 1)
	for i, m := range b.pending() { // as a worker reads them
		if n := len(headersOf(&m)); n != []int{wire.MaxHeaders, 1}[i] {
			t.Errorf("message %d has %d headers", i, n)
		}
	}
}

type traceKey struct{}

func TestInjectAddsHeadersOfTheContext(t *testing.T) {
	b := newBench(t)
	calls := 0
	q, err := delayed.OpenQueue(b.Name, b.rdb,
		delayed.QueueConfig{Inject: func(ctx context.Context) map[string]string {
			calls++
			trace, _ := ctx.Value(traceKey{}).(string)
			if trace == "" {
				return nil
			}
			return map[string]string{"trace": trace, "x": "injected"}
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), traceKey{}, "t1")
	if _, err := q.DelayContext(ctx, plainForTest, 1); err != nil {
		t.Fatal(err)
	}
	ref, err := q.With(delayed.Header("x", "given")).Enqueue(ctx, delayed.Call(plainForTest, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.DelayMany(ctx, delayed.Call(plainForTest, 1), delayed.Call(plainForTest, 2),
		delayed.NewPyTask("m:f", nil, nil)); err != nil {
		t.Fatal(err)
	}
	b.delayWith(q, plainForTest, 1) // a context without values
	want := []map[string]string{
		{"trace": "t1", "x": "injected"},
		{"trace": "t1", "x": "given"},
		{"trace": "t1", "x": "injected"},
		{"trace": "t1", "x": "injected"},
		{"trace": "t1", "x": "injected"},
		nil,
	}
	for i, m := range b.pending() {
		if got := headersOf(&m); !maps.Equal(got, want[i]) {
			t.Errorf("message %d: expected %q, found %q", i, want[i], got)
		}
	}
	if calls != 4 {
		t.Errorf("Inject was called %d times, expected 4", calls)
	}
	if ref.Queue() != b.Name {
		t.Errorf("ref %v", ref)
	}
	big := context.WithValue(t.Context(), traceKey{}, strings.Repeat("t", wire.MaxHeaderBytes))
	for name, try := range map[string]func() error{
		"DelayContext": func() error { _, err := q.DelayContext(big, plainForTest, 1); return err },
		"Enqueue":      func() error { _, err := q.Enqueue(big, delayed.Call(plainForTest, 1)); return err },
		"DelayMany":    func() error { _, err := q.DelayMany(big, delayed.Call(plainForTest, 1)); return err },
	} {
		if err := try(); !errors.Is(err, delayed.ErrArguments) || !strings.Contains(err.Error(), "Inject") {
			t.Errorf("%s: expected ErrArguments that names Inject, found %v", name, err)
		}
	}
}

// TestHeadersOfPythonTasks: where headers cannot be sent, given ones are refused and injected ones left out.
func TestHeadersOfPythonTasks(t *testing.T) {
	b := newBench(t)
	inject := func(context.Context) map[string]string { return map[string]string{"trace": "t1"} }
	plain, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{Inject: inject})
	if err != nil {
		t.Fatal(err)
	}
	task := delayed.NewPyTask("m:f", nil, nil)
	if _, err := plain.Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if m := b.pending()[0]; m.Kind != wire.Py {
		t.Errorf("expected a plain Python task, found %+v", m)
	}
	if _, err := plain.With(delayed.Header("k", "v")).Enqueue(t.Context(), task); !errors.Is(err,
		delayed.ErrArguments) {
		t.Errorf("expected ErrArguments, found %v", err)
	}
	extended, err := delayed.OpenQueue(b.Name+"x", b.rdb, delayed.QueueConfig{Inject: inject})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := extended.With(delayed.Header("k", "v")).Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	message, err := redis.String(b.Conn.Do("LINDEX", b.Name+"x", 0))
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseForTest(message)
	if want := map[string]string{"k": "v", "trace": "t1"}; err != nil || !maps.Equal(headersOf(&m), want) {
		t.Errorf("expected %q, found %+v, %v", want, m.Meta.Extra, err)
	}
}

// TestInjectOnLegacyQueue: an injected header makes the message an extended one, which go-delayed's workers read as
// well.
func TestInjectOnLegacyQueue(t *testing.T) {
	b := newBench(t)
	found := map[string]string{"trace": "t1"}
	q, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(),
		delayed.QueueConfig{
			Inject: func(context.Context) map[string]string { return found },
		})
	if err != nil {
		t.Fatal(err)
	}
	b.delayWith(q, plainForTest, 1)
	found = nil
	b.delayWith(q, plainForTest, 1)
	messages := b.pending()
	if messages[0].Kind != wire.GoExtended || headersOf(&messages[0])["trace"] != "t1" ||
		messages[1].Kind != wire.GoPlain {
		t.Errorf("found %+v", messages)
	}
}

var someTime = time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC)

// What options for retries and times write into messages, and how they are printed.
func TestRetryAndTimeOptions(t *testing.T) {
	const now = 1_700_000_000_000
	many := make([]time.Duration, wire.MaxRetryDelays)
	for _, tt := range []struct {
		option delayed.Option
		text   string
		want   wire.Extra
	}{
		{
			delayed.Backoff(time.Second, 90*time.Second, 0), "Backoff(1s, 1m30s, 0s)",
			wire.Extra{RetryDelays: []int64{1000, 90_000, 0}},
		},
		{delayed.Backoff(1999 * time.Microsecond), "Backoff(1.999ms)", wire.Extra{RetryDelays: []int64{1}}},
		{
			delayed.Backoff(many...), "Backoff(" + strings.Repeat("0s, ", 63) + "0s)",
			wire.Extra{RetryDelays: make([]int64, 64)},
		},
		{delayed.MaxBackoff(time.Minute), "MaxBackoff(1m0s)", wire.Extra{RetryCap: 60_000}},
		{delayed.MaxBackoff(time.Millisecond), "MaxBackoff(1ms)", wire.Extra{RetryCap: 1}},
		{
			delayed.RetryUntil(someTime), "RetryUntil(2030-01-02T03:04:05.006Z)",
			wire.Extra{RetryUntil: someTime.UnixMilli()},
		},
		{delayed.Timeout(time.Minute), "Timeout(1m0s)", wire.Extra{Timeout: 60_000}},
		{delayed.Timeout(time.Millisecond + 1), "Timeout(1.000001ms)", wire.Extra{Timeout: 2}},
		{delayed.Timeout(0), "Timeout(0s)", wire.Extra{Timeout: wire.Unlimited}},
		{delayed.Timeout(math.MaxInt64), "Timeout(2562047h47m16.854775807s)", wire.Extra{Timeout: wire.Unlimited + 1}},
		{delayed.Deadline(someTime), "Deadline(2030-01-02T03:04:05.006Z)", wire.Extra{Deadline: someTime.UnixMilli()}},
		{delayed.TTL(time.Hour), "TTL(1h0m0s)", wire.Extra{Expiry: now + 3_600_000}},
		{delayed.TTL(time.Millisecond), "TTL(1ms)", wire.Extra{Expiry: now + 1}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			if got := tt.option.String(); got != tt.text {
				t.Errorf("shown as %s", got)
			}
			q := offline(t)
			if got := extraOf(t, q.With(tt.option), delayed.Call(benchTask, 1, "x"), now); got != fmt.Sprint(tt.want) {
				t.Errorf("%s, expected %+v", got, tt.want)
			}
			if o, ok := tt.option.(delayed.TaskOption); ok {
				task := delayed.Call(delayed.Func(benchTask, o), 1, "x")
				if got := extraOf(t, q, task, now); got != fmt.Sprint(tt.want) {
					t.Errorf("as a default %s, expected %+v", got, tt.want)
				}
			}
		})
	}
}

// extraOf prints what options have written into the message of a task.
func extraOf(t *testing.T, q *delayed.Queue, task *delayed.Task, now int64) string {
	t.Helper()
	message, _, _, err := delayed.Message(q, task, now)
	if err != nil {
		t.Fatal(err)
	}
	x := parsed(t, message).Meta.Extra
	if x == nil {
		return "none"
	}
	return fmt.Sprint(*x)
}

// Queues derived from one queue do not see each other's options.
func TestOptionsOfSiblingsStayApart(t *testing.T) {
	q := offline(t).With(delayed.MaxBackoff(time.Second), delayed.TTL(time.Hour), delayed.RetryUntil(someTime))
	a, b := q.With(delayed.Timeout(time.Second)), q.With(delayed.Timeout(2*time.Second))
	for i, q := range []*delayed.Queue{a, b} {
		m := parsed(t, messageOf(t, q, delayed.Call(benchTask, 1, "x")))
		if got := m.Meta.Extra.Timeout; got != int64(i+1)*1000 {
			t.Errorf("queue %d: %d ms", i, got)
		}
	}
}

// Backoff copies the caller's slice, so that the caller may change it.
func TestBackoffCopiesItsDelays(t *testing.T) {
	delays := []time.Duration{time.Second, time.Minute}
	o := delayed.Backoff(delays...)
	delays[0] = time.Hour
	m := parsed(t, messageOf(t, offline(t).With(o), delayed.Call(benchTask, 1, "x")))
	if got := m.Meta.Extra.RetryDelays; !slices.Equal(got, []int64{1000, 60_000}) {
		t.Errorf("delays %v", got)
	}
}

// Options that contradict each other are refused; none of them is ignored.
func TestOptionsThatContradict(t *testing.T) {
	t.Parallel()
	rdb, err := delayed.Dial("redis://localhost:1") // never connects
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := delayed.NewQueue("q", rdb)
	f := delayed.Func(func() {}, delayed.Name("f"))
	in, at, debounce := delayed.In(time.Hour), delayed.At(time.Now().Add(time.Hour)), delayed.Debounce(time.Minute)
	for name, opts := range map[string][]delayed.Option{
		"Debounce and In":    {debounce, in},
		"In and Debounce":    {in, debounce},
		"At and Debounce":    {at, debounce},
		"In(0) and Debounce": {delayed.In(0), debounce},
	} {
		one, two := q.With(opts...), q.With(opts[0]).With(opts[1])
		for _, q := range []*delayed.Queue{one, two} {
			if _, err := q.Delay(f); !errors.Is(err, delayed.ErrArguments) ||
				!strings.Contains(err.Error(), "Debounce") {
				t.Errorf("%s: %v, expected an error about Debounce", name, err)
			}
		}
	}
}

// TestFuncTimeoutZero: Timeout(0) of Func means no limit, also for tasks without a timeout, such as those of NewGoTask.
func TestFuncTimeoutZero(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bounded := make(chan bool, 1)
	f := b.fn("f", func(ctx context.Context) { _, ok := ctx.Deadline(); bounded <- ok }, delayed.Timeout(0))
	cfg := b.config()
	cfg.Timeout = time.Hour
	b.work(cfg, f)
	_, err := b.q.Enqueue(bg, delayed.NewGoTask(b.Name+".f"))
	b.Must(err)
	if await(b, "the call", bounded) {
		t.Error("the worker's timeout holds")
	}
}

// Options for one point in time cannot hold for all ticks of an entry.
func TestEntryWithOneMoment(t *testing.T) {
	t.Parallel()
	rdb, err := delayed.Dial("redis://localhost:1") // never connects
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	soon := time.Now().Add(time.Hour)
	for _, o := range []delayed.Option{delayed.Deadline(soon), delayed.RetryUntil(soon)} {
		_, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: "q", Owner: "o", Entries: []delayed.Entry{{
			Name: "e", Spec: "@daily", Options: []delayed.Option{o},
			Task: delayed.Call(delayed.Func(func() {}, delayed.Name("f"))),
		}}})
		if err == nil || !strings.Contains(err.Error(), "RetryUntil: one moment") {
			t.Errorf("%v: %v, expected an error that says why", o, err)
		}
	}
}

func TestScheduledTasksRunWhenDue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan time.Time, 10)
	f := b.fn("f", func(string) { ran <- time.Now() })
	b.work(b.config(), f)
	b.Until("the worker sleeps", func() bool { return b.Size("_workers") == 1 })
	for _, tt := range []struct {
		name  string
		opt   func() delayed.Option
		delay time.Duration
	}{
		{"In", func() delayed.Option { return delayed.In(300 * time.Millisecond) }, 300 * time.Millisecond},
		{
			"At", func() delayed.Option { return delayed.At(time.Now().Add(200 * time.Millisecond)) },
			200 * time.Millisecond,
		},
		{"At in the past", func() delayed.Option { return delayed.At(time.Now().Add(-time.Hour)) }, 0},
		{"In the past", func() delayed.Option { return delayed.In(-time.Hour) }, 0},
	} {
		start := time.Now()
		b.delayWith(b.q.With(tt.opt()), f, tt.name)
		at := await(b, tt.name, ran)
		// A little earlier is possible because times are whole milliseconds.
		if at.Sub(start) < tt.delay-2*time.Millisecond {
			t.Errorf("%s: ran after %v, expected %v", tt.name, at.Sub(start), tt.delay)
		}
	}
	b.Check(redistest.Invariants{})
}

func TestThousandsFallDueTogether(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 5000)
	f := b.fn("f", func(i int) { ran <- i })
	calls := make([]*delayed.Task, 3*redisstore.MoveBatch+1)
	for i := range calls {
		calls[i] = delayed.Call(f, i)
	}
	if _, err := b.q.With(delayed.In(100*time.Millisecond)).DelayMany(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	b.work(b.config(), f)
	seen := map[int]bool{}
	for range calls {
		seen[await(b, "a task", ran)] = true
	}
	if len(seen) != len(calls) {
		t.Errorf("%d different tasks ran, expected %d", len(seen), len(calls))
	}
	b.Idle()
	b.Check(redistest.Invariants{})
}

func TestTaskIDOfScheduledTaskIsTaken(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	q := b.q.With(delayed.In(time.Hour), delayed.TaskID("mine"))
	if ref := b.delayWith(q, f, 1); ref.ID() != "mine" {
		t.Fatalf("id %q", ref.ID())
	}
	before := redistest.Dump(t, b.Conn, b.Name)
	_, err := q.Delay(f, 2)
	var dup *delayed.DuplicateError
	if !errors.As(err, &dup) || dup.ID != "mine" || !errors.Is(err, delayed.ErrDuplicate) {
		t.Errorf("error %v", err)
	}
	if d := redistest.Diff(redistest.Dump(t, b.Conn, b.Name), before); d != "" {
		t.Errorf("the refused task left traces:\n%s", d)
	}
	if _, err := b.q.With(delayed.TaskID("mine")).Delay(f, 3); !errors.Is(err, delayed.ErrDuplicate) {
		t.Errorf("a pending task of the same id: %v", err)
	}
}

func TestOptionsPrintAsWritten(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, o := range map[string]delayed.Option{
		"In(1m30s)": delayed.In(90 * time.Second), "At(2026-01-02T03:04:05Z)": delayed.At(at),
		"MaxRetry(3)":   delayed.MaxRetry(3),
		"MaxRetry(0)":   delayed.MaxRetry(-3),
		`TaskID("a b")`: delayed.TaskID("a b"), "Unique(1m0s)": delayed.Unique(time.Minute),
		`UniqueKey("a", 1s)`:          delayed.UniqueKey("a", time.Second),
		"UntilStart()":                delayed.UntilStart(),
		"OnConflict(ConflictFail)":    delayed.OnConflict(delayed.ConflictFail),
		"OnConflict(ConflictSkip)":    delayed.OnConflict(delayed.ConflictSkip),
		"OnConflict(ConflictReplace)": delayed.OnConflict(delayed.ConflictReplace),
		"OnConflict(Conflict(7))":     delayed.OnConflict(7),
		"Debounce(5s)":                delayed.Debounce(5 * time.Second), "Front()": delayed.Front(),
	} {
		if fmt.Sprint(o) != want {
			t.Errorf("%v, expected %s", o, want)
		}
	}
}

// A task that waits says in its message when it is due, by which the time is measured that it waits for a worker.
func TestMessagesSayWhenTasksAreDue(t *testing.T) {
	q := offline(t)
	const now = 1_700_000_000_000
	for _, c := range []struct {
		option delayed.Option
		want   int64
	}{
		{delayed.In(time.Minute), now + 60_000},
		{delayed.At(time.UnixMilli(1_900_000_000_000)), 1_900_000_000_000},
		{delayed.In(0), 0},
		{delayed.MaxRetry(1), 0},
	} {
		message, _, _, err := delayed.Message(q.With(c.option), delayed.NewGoTask("a.b", 1), now)
		if err != nil {
			t.Fatal(err)
		}
		due := int64(0)
		if x := parsed(t, message).Meta.Extra; x != nil {
			due = x.Due
		}
		if due != c.want {
			t.Errorf("%v: due at %d, expected %d", c.option, due, c.want)
		}
	}
}

const testPath = "github.com/godelayed/delayed_test."

func fnTwo(int64, string) {}

func TestFuncOptions(t *testing.T) {
	for _, tt := range []struct {
		opts    []delayed.FuncOption
		path    string
		aliases string
		retries int // negative: the worker decides
	}{
		{
			[]delayed.FuncOption{delayed.Alias("old.A"), delayed.MaxRetry(5), delayed.Alias("old.B", "old.C")},
			testPath + "fnTwo", "old.A old.B old.C", 5,
		},
		{[]delayed.FuncOption{delayed.Name("a"), delayed.Name("b")}, "b", "", -1},
	} {
		f := delayed.Func(fnTwo, tt.opts...)
		info := described(t, f)
		if info.Path != tt.path || strings.Join(info.Aliases, " ") != tt.aliases {
			t.Errorf("%s, aliases %q, expected %s, aliases %q", info.Path, info.Aliases, tt.path, tt.aliases)
		}
		task := delayed.Call(f, 1, "x")
		m := parsed(t, messageOf(t, offline(t), task))
		if task.Path() != tt.path || m.Meta.HasMaxRetry != (tt.retries >= 0) || m.Meta.MaxRetry != max(tt.retries, 0) {
			t.Errorf("producers call %s with %+v, expected %s with %d retries", task.Path(), m.Meta, tt.path,
				tt.retries)
		}
	}
}

// idleWorker returns a worker that is not run.
func idleWorker(t testing.TB) *delayed.Worker {
	t.Helper()
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"idle"}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// functionsOf returns how a worker describes its functions.
func functionsOf(w *delayed.Worker) []function.Info {
	return seam.Functions(w).([]function.Info) //nolint:errcheck // by contract
}

// described returns how a worker describes a registered function.
func described(t testing.TB, fn any) function.Info {
	t.Helper()
	w := idleWorker(t)
	if err := w.Register(fn); err != nil {
		t.Fatal(err)
	}
	return functionsOf(w)[0]
}

// TestOptionalIsNotForProducers: producers must give all arguments; for a Go function the compiler would refuse fewer
// as well.
func TestOptionalIsNotForProducers(t *testing.T) {
	f := delayed.Func(func(int, string) {}, delayed.Name("test.fn"), delayed.Optional(1))
	if _, err := offline(t).Enqueue(t.Context(), delayed.Call(f, 1)); !errors.Is(err, delayed.ErrArguments) ||
		strings.Contains(err.Error(), "missing") {
		t.Errorf("expected ErrArguments, found %v", err)
	}
}

// TestHandlesAreNoArguments: values that only this process can use are refused; plain data of this package can be sent.
func TestHandlesAreNoArguments(t *testing.T) {
	for _, handle := range []any{
		&delayed.Queue{}, &delayed.Store{}, &delayed.Worker{}, &delayed.Scheduler{},
		&delayed.WorkerControl{}, &delayed.PeriodicControl{},
	} {
		_, err := offline(t).Enqueue(t.Context(), delayed.NewGoTask("a.b", handle))
		if !errors.Is(err, delayed.ErrArguments) || !strings.Contains(err.Error(), "which cannot travel") {
			t.Errorf("%T: expected that it cannot travel, found %v", handle, err)
		}
	}
	data := delayed.NewGoTask("a.b", &delayed.TaskInfo{ID: "x"})
	if _, _, _, err := delayed.Message(offline(t), data, 1); err != nil {
		t.Errorf("a *TaskInfo: %v", err)
	}
}

// uncomparable is an error of a type that Go cannot compare.
type uncomparable struct{ parts []string }

func (u uncomparable) Error() string { return strings.Join(u.parts, " ") }

// TestPublicEnd: PublicEnd translates a worker's errors also inside joined errors, and leaves all others unchanged.
func TestPublicEnd(t *testing.T) {
	other := errors.Join(delayed.ErrUnknown, uncomparable{[]string{"no", "answer"}})
	if got := delayed.PublicEnd(other); got.Error() != other.Error() || !errors.Is(got, delayed.ErrUnknown) {
		t.Errorf("found %v", got)
	}
	got := delayed.PublicEnd(errors.Join(&lane.StuckError{Funcs: []string{"f"}}, other, &lane.RunningError{}))
	var stuck *delayed.StuckError
	var running *delayed.StillRunningError
	if !errors.As(got, &stuck) || stuck.Funcs[0] != "f" || !errors.As(got, &running) ||
		!errors.Is(got, delayed.ErrUnknown) {
		t.Errorf("found %v", got)
	}
}

// release is one version of a program in a deploy: what its workers run, and what its producers delay.
type release struct {
	version string
	fns     []any
	delay   *delayed.Function
	args    []any
}

// deploy is a queue that programs of several versions share.
type deploy struct {
	*bench
	mu   sync.Mutex
	runs map[string]map[int64]int // version to task to runs
	next int64
}

// ran records a run. All versions of the function call it.
func (d *deploy) ran(version string, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs[version] == nil {
		d.runs[version] = map[int64]int{}
	}
	d.runs[version][n]++
}

// total returns how many tasks have run, and how many runs there were.
func (d *deploy) total() (tasks, runs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := map[int64]bool{}
	for _, byTask := range d.runs {
		for n, count := range byTask {
			seen[n] = true
			runs += count
		}
	}
	return len(seen), runs
}

// produce delays n tasks as the producers of a version do.
func (d *deploy) produce(r *release, n int) {
	d.T.Helper()
	for range n {
		d.next++
		d.delay(r.delay, append([]any{d.next}, r.args...)...)
	}
}

// settled waits until every task has run or is parked.
func (d *deploy) settled(parked int) {
	d.T.Helper()
	d.Idle()
	d.Until("every task has run or is parked", func() bool {
		tasks, _ := d.total()
		return d.Size("_parked") == parked && tasks+parked == int(d.next) && d.Size("") == 0
	})
}

// over checks that each task has run once, and that none has failed.
func (d *deploy) over() {
	d.T.Helper()
	d.settled(0)
	if tasks, runs := d.total(); tasks != int(d.next) || runs != tasks {
		d.T.Errorf("expected %d tasks and as many runs, found %d and %d", d.next, tasks, runs)
	}
	c := d.counters()
	if c["failed"] != 0 || c["retried"] != 0 || c["archived"] != 0 || c["lost"] != 0 {
		d.T.Errorf("expected no failures and no retries, found %v", c)
	}
	d.Check(redistest.Invariants{})
}

// TestRollingDeployOfARenamedFunction has three versions: the first knows the old name, the second the new one and the
// old one as its alias, the third the new name alone.
func TestRollingDeployOfARenamedFunction(t *testing.T) {
	t.Parallel()
	d := &deploy{bench: newBench(t), runs: map[string]map[int64]int{}}
	oldName, newName := d.Name+".mail.Send", d.Name+".post.Send"
	version := func(name string, opts ...delayed.FuncOption) *release {
		f := delayed.Func(func(n int64) { d.ran(name, n) }, opts...)
		return &release{version: name, fns: []any{f}, delay: f}
	}
	v1, v2, v3 := version("v1", delayed.Name(oldName)), version("v2", delayed.Name(newName), delayed.Alias(oldName)),
		version("v3", delayed.Name(newName))

	one := d.work(d.config(), v1.fns...)
	d.produce(v1, 20)
	d.settled(0)
	// New producers come before new workers: their tasks wait.
	d.produce(v2, 20)
	d.settled(20)
	page, total, err := d.q.Parked(t.Context(), 0, 1)
	if err != nil || total != 20 || page[0].Function != newName || page[0].Reason != "unknown function" {
		t.Errorf("what waits is not visible: %+v of %d, %v", page, total, err)
	}
	two := d.work(d.config(), v2.fns...) // it releases them, but the old worker may park them again
	d.produce(v1, 20)
	d.produce(v2, 20)
	d.settled(0)
	one.mustStop()
	d.produce(v1, 20) // an old producer is left
	d.settled(0)
	// Back to the old version, as after a faulty deploy, and forward again.
	two.mustStop()
	one = d.work(d.config(), v1.fns...)
	d.produce(v2, 20)
	d.settled(20)
	one.mustStop()
	two = d.work(d.config(), v2.fns...)
	d.settled(0)
	// The third version comes too early: tasks with the old name wait for a worker of the second.
	three := d.work(d.config(), v3.fns...)
	two.mustStop()
	d.produce(v1, 20)
	d.produce(v3, 20)
	d.settled(20)
	two = d.work(d.config(), v2.fns...)
	d.settled(0)
	two.mustStop()
	d.produce(v3, 20)
	d.over()
	three.mustStop()
	for _, name := range []string{"v1", "v2", "v3"} {
		if len(d.runs[name]) == 0 {
			t.Errorf("no worker of %s has run a task", name)
		}
	}
}

// TestRollingDeployOfAnAddedArgument: the second version has one argument more. Tasks of the first run in both. Tasks
// of the second wait for its workers, because they have another name: for a worker of the first they would have one
// argument too many, which is an error.
func TestRollingDeployOfAnAddedArgument(t *testing.T) {
	d := &deploy{bench: newBench(t), runs: map[string]map[int64]int{}}
	path, second := d.Name+".Send", d.Name+".Send2"
	languages := map[string]int{}
	f1 := delayed.Func(func(n int64) { d.ran("v1", n) }, delayed.Name(path))
	f2 := delayed.Func(func(n int64, lang string) {
		d.mu.Lock()
		languages[lang]++
		d.mu.Unlock()
		d.ran("v2", n)
	}, delayed.Name(second), delayed.Alias(path), delayed.Optional(1))
	v1, v2 := &release{version: "v1", fns: []any{f1}, delay: f1},
		&release{version: "v2", fns: []any{f2}, delay: f2, args: []any{"en"}}

	one := d.work(d.config(), v1.fns...)
	d.produce(v1, 10)
	d.produce(v2, 10)
	d.settled(10)
	two := d.work(d.config(), v2.fns...)
	d.produce(v1, 10)
	d.produce(v2, 10)
	d.settled(0)
	one.mustStop()
	d.produce(v1, 10)
	d.next++
	// by path, so with the number of arguments
	if _, err := d.q.Enqueue(t.Context(), delayed.NewGoTask(path, d.next)); err != nil {
		t.Fatal(err)
	}
	d.over()
	two.mustStop()
	if languages["en"] != 20 || languages[""] < 11 {
		t.Errorf("expected 20 tasks with a language and at least 11 without, found %v", languages)
	}
}

// TestRollingDeployOfAStruct: a struct has three versions. The second adds a field and changes the order; the third
// renames one with a tag, makes one optional and adds another. Each task runs once, on a worker that has its fields,
// whichever worker claims it first.
func TestRollingDeployOfAStruct(t *testing.T) {
	d := &deploy{bench: newBench(t), runs: map[string]map[int64]int{}}
	name := delayed.Name(d.Name + ".Place")
	var mu sync.Mutex
	wrong := []string{}
	ran := func(version string, id, count int64) {
		if count != 2*id {
			mu.Lock()
			wrong = append(wrong, fmt.Sprintf("%s: task %d with %d", version, id, count))
			mu.Unlock()
		}
		d.ran(version, id)
	}
	f1 := delayed.Func(func(o order1) { ran("v1", o.ID, o.Count) }, name)
	f2 := delayed.Func(func(o order2) { ran("v2", o.ID, o.Count) }, name)
	f3 := delayed.Func(func(o order3) { ran("v3", o.ID, o.Items) }, name)
	produce := func(version, n int) {
		t.Helper()
		for range n {
			d.next++
			switch id, note := d.next, "n"; version {
			case 1:
				d.delay(f1, order1{id, 2 * id})
			case 2:
				d.delay(f2, order2{note, 2 * id, id})
			case 3:
				d.delay(f3, order3{ID: id, Items: 2 * id, Note: &note, Lines: []struct{ SKU string }{{"x"}}})
			}
		}
	}

	one := d.work(d.config(), f1)
	produce(1, 10)
	d.settled(0)
	produce(2, 10) // new producers come first: their tasks wait
	produce(3, 10)
	d.settled(20)
	page, total, err := d.q.Parked(t.Context(), 0, 30)
	if err != nil || total != 20 {
		t.Fatalf("parked: %d, %v", total, err)
	}
	said := map[string]int{}
	for _, task := range page {
		if task.Reason != "unknown fields" || task.Function != d.Name+".Place" {
			t.Errorf("parked: %+v", task)
		}
		_, fields, _ := strings.Cut(task.Error, "(argument.field): ")
		said[strings.SplitN(fields, ";", 2)[0]]++
	}
	if said["1.Note"] != 10 || said["1.Note, 1.Lines"] != 10 {
		t.Errorf("the fields that are told: %v", said)
	}
	two := d.work(d.config(), f2)
	d.settled(10) // those of the second version ran; the first worker may have parked some of them again
	produce(1, 10)
	produce(2, 10)
	produce(3, 10)
	d.settled(20)
	one.mustStop()
	produce(1, 10) // an old producer is left
	d.settled(20)
	three := d.work(d.config(), f3)
	d.settled(0)
	produce(1, 5)
	produce(2, 5)
	two.mustStop()
	produce(1, 5)
	produce(2, 5)
	produce(3, 5)
	d.over()
	three.mustStop()
	if len(wrong) > 0 {
		t.Errorf("wrong values: %v", wrong)
	}
	for _, version := range []string{"v1", "v2", "v3"} {
		if len(d.runs[version]) == 0 {
			t.Errorf("no worker of %s has run a task", version)
		}
	}
}

// The structs that the versions of a program send in TestRollingDeployOfAStruct.
type (
	order1 struct{ ID, Count int64 }
	order2 struct {
		Note  string
		Count int64 // has another position
		ID    int64
	}
	order3 struct {
		ID    int64
		Items int64 `msgpack:"Count"` // has another name in Go
		Note  *string
		Lines []struct{ SKU string }
	}
)
