package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/cli"
	"github.com/godelayed/delayed/state"
)

func TestScale(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const slow = 30 * time.Millisecond
	sleeps := delayed.Func(func() { <-time.After(slow) }, delayed.Name("sleeps"))
	w := b.work(sleeps)
	_, err := b.q.Delay(sleeps)
	b.Must(err)
	type scale struct {
		Backlog float64 `json:"backlog_seconds"`
		Work    float64 `json:"work_seconds"`
		Wanted  int     `json:"wanted_workers"`
		Workers int     `json:"workers"`
		Queues  []struct {
			Mean float64 `json:"mean_run_seconds"`
		} `json:"queues"`
	}
	var v scale
	b.Until("the run is measured", func() bool {
		v = scale{}
		b.read(&v, "scale", queueName)
		return v.Queues[0].Mean >= slow.Seconds()
	})
	w.Pause()
	b.Until("the worker pauses", func() bool { return strings.TrimSpace(b.ok("scale", "--print", "workers")) == "0" })
	for range 100 {
		_, err := b.q.Delay(sleeps)
		b.Must(err)
	}
	b.read(&v, "scale", queueName, "--target", "1s", "--concurrency", "2")
	// 100 tasks of at least 30 ms are at least 3 s of work.
	if v.Work < 3 || v.Wanted < 2 || v.Backlog != v.Work || v.Workers != 0 {
		t.Errorf("%+v, expected at least 3 s of work, and 2 workers", v)
	}
	for _, c := range []struct{ args, want string }{
		{"--target 1h --print wanted", "1"},
		{"--target 1h --print wanted --min 3", "3"},
		{"--target 1ms --print wanted --max 7", "7"},
		{"--print pending", "100"},
	} {
		if out := b.ok(append([]string{"scale"}, strings.Fields(c.args)...)...); out != c.want+"\n" {
			t.Errorf("scale %s prints %q, expected %s", c.args, out, c.want)
		}
	}
	b.fails(2, "--target 0s: expected a positive duration", "scale", "--target", "0s")
	b.fails(2, "--max 1: expected at least --min, 2", "scale", "--min", "2", "--max", "1")
	b.fails(2, "--print \"x\": expected wanted", "scale", "--print", "x")
	b.fails(2, "expected --print or --json", "scale", "--print", "wanted", "--json")
	b.fails(2, "--concurrency -1: expected 0", "scale", "--concurrency", "-1")
	b.fails(3, "nobody has enqueued a task there", "scale", "nosuch")
}

func TestStatsPer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome, fails)
	for i := range 3 {
		_, err := b.q.Delay(welcome, i, "en")
		b.Must(err)
	}
	_, err := b.q.Delay(fails, 1)
	b.Must(err)
	type figures struct {
		Queue, Function string
		Runs, Failed    int
		Wait, Run       struct {
			P50 float64 `json:"p50_seconds"`
			P95 float64 `json:"p95_seconds"`
		}
		Graph []int
	}
	var v struct {
		Per              string
		From, To         time.Time
		Functions, Times []figures
	}
	for per, steps := range map[string]int{"second": 3600, "minute": 60, "day": 14} {
		args := []string{"stats", queueName, "--per", per}
		if per == "second" {
			args = append(args, "--last", "1h") // on a slow machine a minute may be over
		}
		b.Until("Redis knows of all runs", func() bool {
			v.Functions, v.Times = nil, nil
			b.read(&v, args...)
			return len(v.Functions) == 2 && v.Functions[0].Runs == 3 && v.Functions[1].Runs == 1
		})
		good, bad := v.Functions[0], v.Functions[1]
		if !strings.HasSuffix(good.Function, ".welcome") || good.Failed != 0 || bad.Failed != 1 || good.Run.P95 <= 0 ||
			good.Run.P50 > good.Run.P95 || len(good.Graph) != steps || v.Per != per {
			t.Errorf("per %s: %+v, expected 3 runs of welcome in %d steps, and one of fails that failed", per, v, steps)
		}
		inGraph, inTimes := 0, 0
		for _, n := range good.Graph {
			inGraph += n
		}
		for _, f := range v.Times {
			inTimes += f.Runs
		}
		if inGraph != 3 || inTimes != 4 {
			t.Errorf("per %s: %d runs in the graph and %d in all times, expected 3 and 4", per, inGraph, inTimes)
		}
	}
	b.read(&v, "stats", "--per", "minutes", "--func", "fails")
	if len(v.Functions) != 1 {
		t.Errorf("--func fails shows %d functions", len(v.Functions))
	}
	b.fails(2, `--per "week": expected second, minute or day`, "stats", "--per", "week")
	b.fails(2, "--last 2h00m: expected 1s to 1h00m", "stats", "--per", "second", "--last", "2h")
	b.fails(2, "go with --per", "stats", "--last", "2h")
	b.fails(3, "nobody has enqueued a task there", "stats", "nosuch")
}

// TestBench measures beside a queue that is at work, which it leaves alone.
func TestBench(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.work(welcome)
	w.Pause()
	for i := range 3 {
		_, err := b.q.Delay(welcome, i, "en")
		b.Must(err)
	}
	keys := func() int {
		found, ok := b.Do("KEYS", strings.TrimSuffix(b.Name, queueName)+"*delayed-bench-*").([]any)
		if !ok {
			t.Fatal("KEYS does not answer with a list")
		}
		return len(found)
	}
	bench := []string{"bench", "--tasks", "500", "--concurrency", "3", "--producers", "2", "--time", "1m", "--json"}
	var v struct {
		Queue                string
		Enqueue, Drain, Wake struct {
			Tasks     int
			PerSecond float64 `json:"per_second"`
			P50       float64 `json:"p50_seconds"`
			Max       float64 `json:"max_seconds"`
		}
		Warnings []string
	}
	b.read(&v, bench[:len(bench)-1]...)
	if v.Enqueue.Tasks != 500 || v.Enqueue.PerSecond <= 0 || v.Drain.PerSecond <= 0 || v.Wake.Tasks != 500 ||
		v.Wake.P50 <= 0 || v.Wake.P50 > v.Wake.Max || v.Drain.Tasks < 900 || v.Drain.Tasks > 1000 {
		t.Errorf("%+v", v)
	}
	if len(v.Warnings) == 0 || !strings.Contains(v.Warnings[0], "queue mail is at work") {
		t.Errorf("warnings %q, expected one of queue mail", v.Warnings)
	}
	if n := b.size(queueName, state.Pending); n != 3 || strings.Contains(b.ok("queues"), "bench") {
		t.Errorf("%d pending tasks in another queue, expected 3; queues: %s", n, b.ok("queues"))
	}
	if n := keys(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	// Ctrl-C while it measures.
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	out, errs := new(screen), new(screen)
	streams := b.streams(out, errs)
	streams.Bars = true
	streams.Err = writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "of 5: drain") {
			cancel()
		}
		return errs.Write(p)
	})
	if code := cli.Run(ctx, bench, streams); code != 130 {
		t.Errorf("exit code %d after Ctrl-C, expected 130: %s", code, errs)
	}
	validate(t, "bench", out.String())
	if n := keys(); n != 0 || !strings.Contains(out.String(), `"interrupted": true`) {
		t.Errorf("%d keys are left after Ctrl-C: %s", n, out)
	}
	b.fails(2, "--tasks 0: expected 1 to", "bench", "--tasks", "0")
	b.fails(2, "--time 1h0m0s: expected", "bench", "--time", "1h")
	b.fails(2, "bench measures once", "bench", "--watch")
	w.Resume()
}
