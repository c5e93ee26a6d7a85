package delayedprom_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/godelayed/delayed"
	delayedprom "github.com/godelayed/delayed/contrib/prometheus"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestMetrics brings tasks into all states and looks at the metrics of a queue.
func TestMetrics(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Shared(t))
	started, release := make(chan struct{}, 1), make(chan struct{})
	block := delayed.Func(func() { started <- struct{}{}; <-release }, delayed.Name("block"))
	b.work(welcome, fails, sleeps, block)
	b.delay(block, nil)
	redistest.Await(b.Bench, "the long task", started)
	t.Cleanup(func() { close(release) })
	for i := range 3 {
		b.delay(welcome, []any{i}, delayed.KeepResult(time.Hour), delayed.Retention(time.Hour))
	}
	b.delay(fails, []any{1})
	b.delay(fails, []any{2}, delayed.MaxRetry(0))
	b.delay(sleeps, []any{30 * time.Millisecond})
	b.delay(delayed.Func(func() {}, delayed.Name("unknown")), nil)
	b.delay(welcome, []any{4}, delayed.In(time.Hour))
	reg := b.register(delayedprom.Config{Memory: true, OnError: func(err error) { t.Error(err) }})
	want := series{
		`delayed_tasks{queue="mail",state="pending"}`:     0,
		`delayed_tasks{queue="mail",state="active"}`:      1,
		`delayed_tasks{queue="mail",state="scheduled"}`:   1,
		`delayed_tasks{queue="mail",state="retry"}`:       1,
		`delayed_tasks{queue="mail",state="parked"}`:      1,
		`delayed_tasks{queue="mail",state="archived"}`:    1,
		`delayed_tasks{queue="mail",state="completed"}`:   3,
		`delayed_tasks{queue="mail",state="aggregating"}`: 0,
		`delayed_suspect_tasks{queue="mail"}`:             0,
		`delayed_groups{queue="mail"}`:                    0,
		`delayed_queue_latency_seconds{queue="mail"}`:     0,
		`delayed_queue_paused{queue="mail"}`:              0,

		`delayed_due_lateness_seconds{queue="mail"}`:  0,
		`delayed_workers{queue="mail"}`:               1,
		`delayed_worker_slots{queue="mail"}`:          4,
		`delayed_claims{queue="mail",worker="alive"}`: 1,
		`delayed_claims{queue="mail",worker="dead"}`:  0,
		`delayed_long_running_tasks{queue="mail"}`:    1,

		`delayed_tasks_run_total{function="mail.Welcome",queue="mail"}`:    3,
		`delayed_tasks_run_total{function="mail.Fails",queue="mail"}`:      2,
		`delayed_tasks_failed_total{function="mail.Fails",queue="mail"}`:   2,
		`delayed_tasks_failed_total{function="mail.Welcome",queue="mail"}`: 0,
		`delayed_tasks_archived_total{function="mail.Fails",queue="mail"}`: 1,
		`delayed_task_run_seconds{function="mail.Sleeps",queue="mail"}`:    1,
		`delayed_task_wait_seconds{function="mail.Welcome",queue="mail"}`:  3,

		`delayed_outcomes_total{outcome="processed",queue="mail"}`: 6,
		`delayed_outcomes_total{outcome="failed",queue="mail"}`:    2,
		`delayed_outcomes_total{outcome="retried",queue="mail"}`:   1,
		`delayed_outcomes_total{outcome="archived",queue="mail"}`:  1,
		`delayed_outcomes_total{outcome="parked",queue="mail"}`:    1,
		`delayed_outcomes_total{outcome="swept",queue="mail"}`:     0,

		`delayed_queues`:                             1,
		`delayed_queues_omitted`:                     0,
		`delayed_scrape_success`:                     1,
		`delayed_queue_scrape_success{queue="mail"}`: 1,
		`delayed_scrape_errors_total`:                0,
	}
	var got, sums series
	missing := func() (all []string) {
		for name, value := range want {
			if v, ok := got[name]; !ok || v != value {
				all = append(all, fmt.Sprintf("%s: %v, expected %v", name, v, value))
			}
		}
		return all
	}
	for deadline := time.Now().Add(redistest.Patience); ; <-time.After(50 * time.Millisecond) {
		if got, sums = scrape(t, reg); len(missing()) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s\nin %v", strings.Join(missing(), "\n"), got)
		}
	}
	if took := sums[`delayed_task_run_seconds{function="mail.Sleeps",queue="mail"}`]; took < 0.03 || took > 10 {
		t.Errorf("a handler that sleeps for 30 ms took %v s", took)
	}
	if age := got[`delayed_longest_run_seconds{queue="mail"}`]; age < 1 || age > 60 {
		t.Errorf("the longest handler runs for %v s", age)
	}
	if got[`delayed_queue_memory_bytes{queue="mail"}`] < 100 || got["delayed_scrape_duration_seconds"] <= 0 {
		t.Errorf("memory or duration is missing: %v", got)
	}
	// Of the queue, of three functions and of the collector; what histograms have beyond one series is not counted.
	if n := len(got); n != 32+3*5+6 {
		t.Errorf("%d series: %v", n, got)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}

	b.Must(b.q.Pause(t.Context()))
	b.delay(welcome, []any{5}, delayed.In(5*time.Millisecond))
	b.Until("the task waits", func() bool {
		got, _ = scrape(t, reg)
		return got[`delayed_queue_latency_seconds{queue="mail"}`] > 0
	})
	if got[`delayed_queue_paused{queue="mail"}`] != 1 || got[`delayed_tasks{queue="mail",state="pending"}`] != 1 {
		t.Errorf("paused, with a task: %v", got)
	}
	got, sums = scrape(t, reg)
	if late := sums[`delayed_due_lateness_seconds{queue="mail"}`]; late <= 0 || late > 60 ||
		got[`delayed_due_lateness_seconds{queue="mail"}`] != 1 {
		t.Errorf("a task that came due was %v s late: %v", late, got)
	}
	scripts := 0.0
	for name, n := range got {
		if strings.HasPrefix(name, "delayed_redis_script_seconds{") && sums[name] > 0 {
			scripts += n
		}
	}
	if scripts < 10 {
		t.Errorf("%v scripts have run in Redis: %v", scripts, got)
	}
	b.Must(b.q.Resume(t.Context()))
}

// TestDeadClaims looks at a queue whose worker has died while no sweeper runs.
func TestDeadClaims(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Shared(t))
	b.delay(welcome, []any{1})
	b.known(1)
	b.Do("SADD", b.Name+"_workers", "w1")
	b.Do("HSET", b.Name+"_processing:w1", "1", "a", "2", "b")
	got, _ := scrape(t, b.register(delayedprom.Config{}))
	if got[`delayed_claims{queue="mail",worker="dead"}`] != 2 || got[`delayed_workers{queue="mail"}`] != 0 {
		t.Errorf("two claims of a dead worker: %v", got)
	}
}

// TestQueueThatFails breaks one of three queues.
func TestQueueThatFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Shared(t))
	b.delay(welcome, []any{1})
	for _, name := range []string{"a", "z"} {
		_, err := delayed.NewQueue(name, b.rdb).Delay(welcome, 1)
		b.Must(err)
	}
	b.known(3)
	b.Do("SET", b.Name+"_scheduled", "not a set")
	var errs atomic.Int64
	reg := b.register(delayedprom.Config{OnError: func(err error) {
		if errs.Add(1); !strings.Contains(err.Error(), "queue mail") || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%v", err)
		}
	}})
	got, _ := scrape(t, reg)
	for name, value := range (series{
		`delayed_queue_scrape_success{queue="a"}`:    1,
		`delayed_queue_scrape_success{queue="mail"}`: 0,
		`delayed_queue_scrape_success{queue="z"}`:    1,
		`delayed_tasks{queue="a",state="pending"}`:   1,
		`delayed_tasks{queue="z",state="pending"}`:   1,
		`delayed_worker_slots{queue="mail"}`:         0, // what can be read of it is there
		"delayed_scrape_success":                     0,
		"delayed_scrape_errors_total":                1,
	}) {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s: %v, expected %v", name, v, value)
		}
	}
	if _, ok := got[`delayed_tasks{queue="mail",state="pending"}`]; ok || errs.Load() != 1 {
		t.Errorf("sizes of the broken queue are there, or %d errors were reported: %v", errs.Load(), got)
	}
}

// TestTimeout scrapes while Redis does not answer.
func TestTimeout(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server)
	b.delay(welcome, []any{1})
	b.known(1)
	const timeout = 300 * time.Millisecond
	var errs atomic.Int64
	byName := b.register(delayedprom.Config{
		Timeout: timeout, Queues: strings.Fields("mail a b c d e f g h i j k l m n o"),
		OnError: func(error) { errs.Add(1) },
	})
	all := b.register(delayedprom.Config{Timeout: timeout})
	if got, _ := scrape(t, all); got["delayed_scrape_success"] != 1 {
		t.Errorf("at first: %v", got)
	}
	server.Pause(t)
	t.Cleanup(func() { server.Resume(t) })
	for _, reg := range []*prometheus.Registry{byName, all} {
		began := time.Now()
		got, _ := scrape(t, reg)
		if took := time.Since(began); took > timeout+2*time.Second {
			limits.Errorf(t, "a scrape took %v", took)
		}
		if got["delayed_scrape_success"] != 0 || got["delayed_scrape_errors_total"] < 1 {
			t.Errorf("Redis is paused: %v", got)
		}
	}
	if n := errs.Load(); n < 1 || n > 12 {
		t.Errorf("reported %d errors, expected one for each queue that was being read, and one for all others", n)
	}
}

// TestQueuesToShow bounds the queues, and names them.
func TestQueuesToShow(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Shared(t))
	for i := range 7 {
		_, err := delayed.NewQueue(fmt.Sprint("q", i), b.rdb).Delay(welcome, 1)
		b.Must(err)
	}
	b.known(7)
	for _, c := range []struct {
		cfg            delayedprom.Config
		known, omitted float64
		shown          string
	}{
		{delayedprom.Config{}, 7, 0, "q0 q1 q2 q3 q4 q5 q6"},
		{delayedprom.Config{MaxQueues: 7}, 7, 0, "q0 q1 q2 q3 q4 q5 q6"},
		{delayedprom.Config{MaxQueues: 2}, 7, 5, "q0 q1"},
		{delayedprom.Config{MaxQueues: 1, Queues: []string{"q5", "q3", "q5", "unused"}}, 3, 0, "q3 q5 unused"},
	} {
		got, _ := scrape(t, b.register(c.cfg))
		var shown []string
		for _, name := range append(strings.Fields("q0 q1 q2 q3 q4 q5 q6"), "unused") {
			if _, ok := got[fmt.Sprintf(`delayed_tasks{queue=%q,state="pending"}`, name)]; ok {
				shown = append(shown, name)
			}
		}
		if s := strings.Join(shown, " "); s != c.shown || got["delayed_queues"] != c.known ||
			got["delayed_queues_omitted"] != c.omitted || got["delayed_scrape_success"] != 1 {
			t.Errorf("%+v: %s are shown, expected %s: %v", c.cfg, s, c.shown, got)
		}
	}
}

// TestManyFunctions runs more functions than have series of their own.
func TestManyFunctions(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Shared(t))
	const n = 80
	var fns []any
	for i := range n {
		fn := delayed.Func(func() {}, delayed.Name(fmt.Sprint("fn", i)))
		fns = append(fns, fn)
		b.delay(fn, nil)
	}
	b.work(fns...)
	reg := b.register(delayedprom.Config{Namespace: "tasks_of_7"})
	b.Until("all runs are counted", func() bool {
		got, _ := scrape(t, reg)
		functions, runs := 0, 0.0
		for name, v := range got {
			if strings.HasPrefix(name, "tasks_of_7_tasks_run_total{") {
				functions++
				runs += v
			}
		}
		if functions > 65 {
			t.Fatalf("%d functions have series", functions)
		}
		return runs == n && got[`tasks_of_7_tasks_run_total{function="",queue="mail"}`] == n-64
	})
}

// TestMisuse registers collectors that cannot work.
func TestMisuse(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Shared(t))
	for _, c := range []struct {
		ins  *inspect.Inspector
		cfg  delayedprom.Config
		want string
	}{
		{nil, delayedprom.Config{}, "the *Inspector is nil"},
		{b.ins, delayedprom.Config{Namespace: "my-app"}, `Config.Namespace is "my-app"`},
		{b.ins, delayedprom.Config{Namespace: "7"}, `Config.Namespace is "7"`},
		{b.ins, delayedprom.Config{Timeout: -1}, "Config.Timeout is -1ns"},
		{b.ins, delayedprom.Config{MaxQueues: -1}, "Config.MaxQueues is -1"},
		{b.ins, delayedprom.Config{Queues: []string{"\xff"}}, `Config.Queues has "\xff"`},
	} {
		collector := delayedprom.New(c.ins, c.cfg)
		err := prometheus.NewRegistry().Register(collector)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, expected %s", c.cfg, err, c.want)
		}
	}
	reg := b.register(delayedprom.Config{})
	if err := reg.Register(delayedprom.New(b.ins, delayedprom.Config{})); err == nil {
		t.Error("the same metrics are registered twice")
	}
}
