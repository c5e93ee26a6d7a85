package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// validate holds JSON documents against a schema.
func validate(t *testing.T, name, text string) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile("../../schema/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	n := 0
	for ; d.More(); n++ {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v in %s", name, err, text)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
		}
	}
	if n == 0 {
		t.Errorf("%s: no document", name)
	}
}

// populated is a bench with tasks in all states, a worker, a group, an entry and an audit record.
func populated(t *testing.T) (*bench, *delayed.Worker) {
	t.Helper()
	b := newBench(t)
	w := b.work(fails, delayed.Func(add, delayed.Name("sums.add")))
	later := b.q.With(delayed.In(time.Hour))
	_, err := b.q.With(delayed.TaskID("dead"), delayed.MaxRetry(0)).Delay(fails, 1)
	b.Must(err)
	_, err = b.q.With(delayed.TaskID("again"), delayed.Header("tenant", "a")).Delay(fails, 2)
	b.Must(err)
	_, err = b.q.With(delayed.TaskID("strange")).Delay(welcome, 3, "en")
	b.Must(err)
	sums := delayed.Func(add, delayed.Name("sums.add"))
	_, err = b.q.With(delayed.TaskID("sum"), delayed.Retention(time.Hour)).Delay(sums, 1, 2)
	b.Must(err)
	_, err = later.With(delayed.TaskID("later"), delayed.Timeout(time.Minute), delayed.Unique(time.Hour)).
		Delay(welcome, 4, "en")
	b.Must(err)
	_, err = b.q.With(delayed.Group("g")).Delay(sums, 7)
	b.Must(err)
	b.Must(b.q.Periodic().Set(bg, delayed.Entry{Name: "daily", Spec: "@daily", Task: delayed.Call(welcome, 1, "en")}))
	for _, s := range []state.Task{state.Archived, state.Retry, state.Parked, state.Completed} {
		b.Until("a task is "+s.String(), func() bool { return b.size(queueName, s) == 1 })
	}
	w.Pause()
	b.Until("the worker pauses", func() bool { return w.Status().State == state.Paused })
	_, err = b.q.With(delayed.TaskID("next")).Delay(welcome, 5, hostile)
	b.Must(err)
	return b, w
}

func TestJSONFitsSchemas(t *testing.T) {
	t.Parallel()
	b, w := populated(t)
	file := t.TempDir() + "/tasks.jsonl"
	for _, c := range []struct{ schema, args string }{
		{"queues", "queues"},
		{"queue", "queue show mail"},
		{"history", "history mail --days 3"},
		{"tasks", "tasks"},
		{"tasks", "tasks ls mail --state retry --header tenant=a --limit 1"},
		{"task", "task show again"},
		{"workers", "workers"},
		{"workers", "worker show " + w.ID()[:8]},
		{"functions", "functions mail"},
		{"cron", "cron ls"},
		{"ticks", "cron history daily"},
		{"groups", "groups"},
		{"stats", "stats"},
		{"stats", "stats mail"},
		{"metrics", "stats --per minute"},
		{"scale", "scale mail --target 10s"},
		{"bench", "bench --tasks 300 --time 5s --concurrency 2 --producers 3 --size 10"},
		{"monitor", "monitor --max-archived 10 --max-parked 10"},
		{"version", "version"},
		{"done", "pause mail"},
		{"done", "resume mail"},
		{"done", "weight mail 3"},
		{"done", "worker pause " + w.ID()},
		{"done", "cron run daily"},
		{"done", "groups fire mail g --yes"},
		{"enqueued", "enqueue sums.add 1 2 --in 1h"},
		{"acted", "archive later"},
		{"acted", "run-now --all --queue mail --state archived,retry --dry-run"},
		{"acted", "delete --all --queue mail --state parked --yes"},
		{"export", "export -o " + file},
		{"acted", "import " + file},
		{"audit", "audit"},
		{"doctor", "doctor"},
		{"acted", "queue empty mail --state all --yes"},
	} {
		t.Run(strings.ReplaceAll(c.args, " ", "_"), func(t *testing.T) {
			r := b.run(append(strings.Fields(c.args), "--json")...)
			if r.code > 1 {
				t.Fatalf("exit code %d: %s", r.code, r.err)
			}
			text := r.out
			if c.schema == "export" {
				text = b.ok("export")
			}
			validate(t, c.schema, text)
		})
	}
}

func TestJSONIsFaithfulAndPrintable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.With(delayed.TaskID("\u202eid"), delayed.Header("h", "\u0085")).
		Delay(types, 1, 1.5, []byte("\x00\xff"), time.UnixMilli(0), (*User)(nil), nil, true,
			map[string]any{"a": "\x7f"})
	b.Must(err)
	text := b.ok("tasks", "--json")
	for _, r := range text {
		if r != '\n' && (r < ' ' || r == 0x7f || r == 0x85 || r == 0x202e) {
			t.Errorf("JSON has %U", r)
		}
	}
	var v struct {
		Lists []struct {
			Tasks []struct {
				ID   string
				Args []any
			}
		}
	}
	b.read(&v, "tasks", "ls", queueName, "--state", "pending")
	task := v.Lists[0].Tasks[0]
	want := `[1 1.5 AP8= 1970-01-01T00:00:00Z <nil> <nil> true map[a:` + "\x7f" + `]]`
	if task.ID != "\u202eid" || fmt.Sprint(task.Args) != want {
		t.Errorf("found %q, %v, expected %q, %s", task.ID, task.Args, "\u202eid", want)
	}
}
