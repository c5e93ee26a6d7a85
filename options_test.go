package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
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
	for name, c := range map[string]struct {
		n, size int
		ok      bool
	}{
		"64 headers": {64, 4, true}, "65 headers": {65, 4, false}, "8,192 bytes": {2, 4096, true},
		"a byte more": {2, 4097, false},
	} {
		q := b.q
		for i := range c.n {
			key := string(rune('A' + i))
			q = q.With(delayed.Header(key, strings.Repeat("x", c.size-len(key))))
		}
		if _, err := q.Delay(f, 3); (err == nil) != c.ok || err != nil && !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s: %v", name, err)
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
		{[]delayed.Option{delayed.Header("", "v")}, "not empty"},
		{[]delayed.Option{delayed.Header("\xff", "v")}, "UTF-8"},
		{[]delayed.Option{delayed.Header("k", "\xff")}, "UTF-8"},
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
	q, err := delayed.OpenQueue(b.rdb,
		delayed.QueueConfig{Name: b.Name, Inject: func(ctx context.Context) map[string]string {
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
	plain, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true, Inject: inject})
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
	extended, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name + "x", Inject: inject})
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
	q, err := delayed.OpenQueue(b.rdb,
		delayed.QueueConfig{
			Name: b.Name, Legacy: true,
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

func TestRetryAndTimeOptionsRefuse(t *testing.T) {
	q := offline(t)
	for _, tt := range []struct {
		option delayed.Option
		text   string
	}{
		{delayed.Backoff(), "option Backoff(): expected 1 to 64 delays, found 0"},
		{delayed.Backoff(make([]time.Duration, 65)...), "expected 1 to 64 delays, found 65"},
		{
			delayed.Backoff(time.Second, -time.Second),
			"option Backoff(1s, -1s): expected no negative delay, found -1s as number 2",
		},
		{delayed.MaxBackoff(0), "option MaxBackoff(0s): expected a positive duration"},
		{delayed.MaxBackoff(-1), "expected a positive duration"},
		{delayed.RetryUntil(time.Time{}), "option RetryUntil(0001-01-01T00:00:00Z): expected a time after 1970"},
		{delayed.Timeout(-1), "option Timeout(-1ns): expected a positive duration, or 0 for no bound"},
		{delayed.Deadline(time.Unix(0, 0)), "expected a time after 1970"},
		{delayed.TTL(0), "option TTL(0s): expected a positive duration"},
	} {
		t.Run(tt.option.String()[:min(40, len(tt.option.String()))], func(t *testing.T) {
			_, err := q.With(delayed.MaxRetry(1), tt.option,
				delayed.MaxRetry(2)).With(delayed.MaxRetry(3)).Delay(benchTask, 1, "x")
			if !errors.Is(err, delayed.ErrArguments) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("With: %v", err)
			}
			if o, ok := tt.option.(delayed.TaskOption); ok {
				_, err := q.Delay(delayed.Func(benchTask, o), 1, "x")
				if !errors.Is(err, delayed.ErrFunction) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("Func: %v", err)
				}
			}
		})
	}
	backoff := delayed.BackoffFunc(func(int, error) time.Duration { return 0 })
	for text, f := range map[string]*delayed.Function{
		"expected a function, found nil":                delayed.Func(benchTask, delayed.BackoffFunc(nil)),
		"expected Backoff or BackoffFunc, found both":   delayed.Func(benchTask, backoff, delayed.Backoff(time.Second)),
		"expected Backoff or BackoffFunc, found both; ": delayed.Func(benchTask, delayed.Backoff(time.Second), backoff),
	} {
		if _, err := q.Delay(f, 1, "x"); !errors.Is(err, delayed.ErrFunction) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, expected %s", err, text)
		}
	}
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
		`UniqueKey("a", 1s)`: delayed.UniqueKey("a", time.Second),
		"UntilStart()":       delayed.UntilStart(), "OnConflict(Fail)": delayed.OnConflict(delayed.Fail),
		"OnConflict(Skip)":    delayed.OnConflict(delayed.Skip),
		"OnConflict(Replace)": delayed.OnConflict(delayed.Replace), "OnConflict(Conflict(7))": delayed.OnConflict(7),
		"Debounce(5s)": delayed.Debounce(5 * time.Second), "Front()": delayed.Front(),
	} {
		if fmt.Sprint(o) != want {
			t.Errorf("%v, expected %s", o, want)
		}
	}
}

func TestBadOptionsAreErrors(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	for name, q := range map[string]*delayed.Queue{
		"empty id": b.q.With(delayed.TaskID("")), "long id": b.q.With(delayed.TaskID(string(make([]byte, 300)))),
		"nil": b.q.With(nil),
	} {
		if _, err := q.Delay(f, 1); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := q.DelayMany(t.Context(), delayed.Call(f, 1)); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s: DelayMany: %v", name, err)
		}
	}
	if _, err := b.q.With(delayed.TaskID("x")).DelayMany(t.Context(), delayed.Call(f, 1),
		delayed.Call(f, 2)); !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("one id for two tasks: %v", err)
	}
	if len(redistest.Dump(t, b.Conn, b.Name)) != 0 {
		t.Error("something was written")
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
