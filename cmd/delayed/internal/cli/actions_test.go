package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/cli"
	"github.com/godelayed/delayed/state"
)

// acted is what actions print as JSON.
type acted struct {
	DryRun      bool `json:"dry_run"`
	Interrupted bool
	Reports     []struct {
		Queue, State           string
		Scanned, Done, Skipped int
		Failed                 []struct{ ID, Error string }
	}
}

// delayMany enqueues calls of welcome with the ids t-0, t-1 and so on.
func (b *bench) delayMany(q *delayed.Queue, n int) {
	b.T.Helper()
	for i := range n {
		_, err := q.With(delayed.TaskID(fmt.Sprintf("t-%d", i))).Delay(welcome, i, "en")
		b.Must(err)
	}
}

func TestActionsOnIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q, 6)
	var v acted
	b.read(&v, "archive", "t-0", "t-1")
	if len(v.Reports) != 1 || v.Reports[0].Done != 2 || v.Reports[0].Queue != queueName {
		t.Errorf("archive: %+v", v)
	}
	b.ok("tasks", "retry", "t-0", "--queue", queueName)
	b.ok("task", "delete", "t-2")
	b.ok("reschedule", "t-3", "--in", "2h")
	b.ok("reschedule", "t-4", "--at", "2050-01-02T03:04:05Z")
	b.ok("move", "t-5", "--to", "slow")
	for s, n := range map[state.Task]int{state.Pending: 1, state.Archived: 1, state.Scheduled: 2} {
		if got := b.size(queueName, s); got != n {
			t.Errorf("%d %v tasks, expected %d", got, s, n)
		}
	}
	if b.size("slow", state.Pending) != 1 {
		t.Error("the task was not moved")
	}
	text := b.ok("task", "t-4")
	if !strings.Contains(text, "2050-01-02 03:04:05Z") || !strings.Contains(text, `cli_test.welcome(4, "en")`) {
		t.Errorf("task show prints %s", text)
	}
	b.fails(3, `no queue holds a task "gone"`, "cancel", "gone")
	b.fails(1, "", "run-now", "t-0") // it is pending
	if out := b.run("run-now", "t-0").out; !strings.Contains(out, "cannot run pending tasks") {
		t.Errorf("run-now of a pending task prints %s", out)
	}
}

func TestIDInTwoQueues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q, 1)
	b.delayMany(delayed.NewQueue("other", b.rdb), 1)
	b.fails(2, "several queues, mail, other: say which with --queue", "delete", "t-0")
	b.ok("delete", "t-0", "--queue", "other")
	if b.size(queueName, state.Pending) != 1 {
		t.Error("the wrong task was deleted")
	}
	if out := b.ok("task", "show", "t-0"); strings.Count(out, "queue:") != 1 {
		t.Errorf("task show prints %s", out)
	}
}

func TestBulkActions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q.With(delayed.In(time.Hour)), 10)
	_, err := b.q.With(delayed.In(time.Hour)).Delay(fails, 1)
	b.Must(err)
	all := []string{"delete", "--all", "--queue", queueName, "--state", "scheduled", "--func", "welcome"}
	if out := b.ok(append(all, "--dry-run")...); !strings.Contains(out, "would do 10") {
		t.Errorf("a dry run prints %s", out)
	}
	b.fails(4, "Delete those of 11 scheduled tasks that match function welcome in queue mail? Nobody can be asked",
		all...)
	b.fails(4, "Move 11 scheduled tasks in queue mail, to queue urgent?", "move", "--all", "-q", queueName,
		"-s", "scheduled", "--to", "urgent")
	b.asks, b.in = true, "n\n"
	b.fails(4, "nothing was done", all...)
	if n := b.size(queueName, state.Scheduled); n != 11 {
		t.Fatalf("%d tasks are left, expected 11", n)
	}
	b.in = "y\n"
	var v acted
	b.read(&v, all...)
	if v.Reports[0].Done != 10 || b.size(queueName, state.Scheduled) != 1 {
		t.Errorf("deleted %+v", v)
	}
	for _, c := range []struct{ text, args string }{
		{"go with --all", "delete --func welcome"},
		{"which tasks?", "delete"},
		{"expected ids or --all, found both", "delete t-1 --all --queue mail --state retry"},
		{"expected --queue", "delete --all --state retry"},
		{`--state "active": expected one of`, "delete --all --queue mail --state active"},
		{"when?", "reschedule t-1"},
		{"when?", "reschedule t-1 --in 1h --at 2050-01-01"},
		{"where to?", "move t-1"},
		{"with what?", "edit t-1"},
		{"which tasks?", "queue empty mail"},
	} {
		b.fails(2, c.text, strings.Fields(c.args)...)
	}
}

// canceler is a terminal that gets Ctrl-C when the first bar is drawn.
type canceler struct{ cancel func() }

func (c canceler) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), "\r\x1b[K[#") {
		c.cancel()
	}
	return len(p), nil
}

func TestBulkActionStops(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q.With(delayed.In(time.Hour)), 80) // four pages
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var out bytes.Buffer
	streams := b.streams(&out, canceler{cancel})
	streams.Bars = true
	args := []string{"archive", "--all", "--queue", queueName, "--state", "scheduled", "--yes", "--json"}
	if code := cli.Run(ctx, args, streams); code != 130 {
		t.Errorf("exit code %d, expected 130", code)
	}
	var v acted
	b.Must(json.Unmarshal(out.Bytes(), &v))
	if !v.Interrupted || v.Reports[0].Done != 25 || b.size(queueName, state.Archived) != 25 {
		t.Errorf("stopped after %+v, expected one page of 25 tasks", v)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome)
	b.delayMany(b.q.With(delayed.In(time.Hour)), 3)
	b.ok("edit", "t-0", "--args", `[42, "de"]`)
	if out := b.ok("task", "t-0"); !strings.Contains(out, `welcome(42, "de")`) {
		t.Errorf("after edit: %s", out)
	}
	b.fails(2, `argument 1 of cli_test.welcome(int64, string): expected a whole number`, "edit", "t-0", "--args",
		`["x", "de"]`)
	b.fails(2, "expected the arguments of cli_test.welcome(int64, string), found 1", "edit", "t-0", "--args", `[1]`)
	b.fails(2, "expected a JSON array", "edit", "t-0", "--args", `42`)
	b.ok("edit", "--all", "--queue", queueName, "--state", "scheduled", "--func", "welcome", "--arg", "1=en", "--args",
		`[7, "fr"]`, "--yes")
	out := b.ok("tasks", queueName)
	if strings.Count(out, `welcome(7, "fr")`) != 2 || !strings.Contains(out, `welcome(42, "de")`) {
		t.Errorf("after edit --all: %s", out)
	}
}

func TestQueueVerbs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q, 2)
	if out := b.ok("pause", queueName); out != "paused mail\n" {
		t.Errorf("pause prints %q", out)
	}
	if out := b.ok("queues"); !strings.Contains(out, "paused") {
		t.Errorf("queues prints %s", out)
	}
	b.ok("queue", "resume", queueName)
	paused, err := b.q.Paused(bg)
	b.Must(err)
	if paused {
		t.Error("resume has not resumed the queue")
	}
	b.ok("weight", queueName, "7")
	if out := b.ok("queue", queueName); !strings.Contains(out, "weight:       7") {
		t.Errorf("queue prints %s", out)
	}
	b.fails(2, "expected a number from 0 to 1000", "weight", queueName, "x")
	b.fails(2, "0 to 1000", "weight", queueName, "1001")
	b.fails(3, `queue "mial"`, "pause", "mial")
	b.fails(1, "holds 2 tasks", "queue", "rm", queueName, "--yes")
	b.fails(4, "Delete queue mail with 2 tasks?", "queue", "rm", queueName, "--force")
	b.ok("queue", "empty", queueName, "--state", "pending", "--yes")
	if b.size(queueName, state.Pending) != 0 {
		t.Error("the queue is not empty")
	}
	b.ok("queue", "rm", queueName, "--yes")
	b.fails(3, "not found", "queue", "show", queueName)
}

func TestWorkerVerbs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.work(welcome)
	in := func(s state.Worker) {
		b.Until("the worker is "+s.String(), func() bool { return w.Status().State == s })
	}
	b.Until("the worker tells of itself", func() bool {
		out := b.ok("workers")
		return strings.Contains(out, w.ID()[:12]) && strings.Contains(out, "  running     0/2  ")
	})
	out := b.ok("worker", "show", w.ID()[:12])
	for _, want := range []string{w.ID(), "running", "order: ", "program: ", "version: ", "started: ", "memory: "} {
		if !strings.Contains(out, want) {
			t.Errorf("worker show prints %s, expected %s", out, want)
		}
	}
	b.ok("worker", "pause", w.ID()[:10])
	in(state.Paused)
	b.ok("worker", "resume", w.ID())
	in(state.Running)
	b.ok("worker", "quiet", w.ID())
	in(state.Quiet)
	b.ok("restart", queueName)
	in(state.Stopped)
	b.fails(3, "expected the id of a living one", "worker", "stop", "nobody")
}

func TestCronVerbs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Must(b.q.Periodic().Set(bg, delayed.Entry{Name: "daily", Spec: "@daily", Task: delayed.Call(welcome, 1, "en")}))
	b.delayMany(b.q, 1) // makes the queue known
	if out := b.ok("cron"); !strings.Contains(out, "daily") || !strings.Contains(out, "cli_test.welcome") {
		t.Errorf("cron prints %s", out)
	}
	b.ok("cron", "pause", "daily")
	if out := b.ok("cron", "ls", queueName); !strings.Contains(out, "paused") {
		t.Errorf("cron ls prints %s", out)
	}
	b.ok("cron", "resume", "daily", "--queue", queueName)
	b.fails(3, `did you mean "daily"?`, "cron", "run", "dialy")
	b.ok("cron", "run", "daily")
	if b.size(queueName, state.Pending) != 2 {
		t.Error("cron run has enqueued nothing")
	}
	b.ok("cron", "history", "daily")
	b.ok("cron", "rm", "daily")
	b.fails(3, `"daily"`, "cron", "run", "daily")
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q.With(delayed.In(time.Hour)), 3)
	_, err := b.q.Delay(welcome, 9, hostile)
	b.Must(err)
	_, err = b.q.With(delayed.Group("g")).Enqueue(bg, delayed.NewGoTask("x.Y", []int{1}))
	b.Must(err)
	r := b.run("export", queueName)
	lines := r.out
	if n := strings.Count(lines, "\n"); r.code != 0 || n != 4 {
		t.Fatalf("exported %d lines: %s", n, lines)
	}
	if !strings.Contains(r.err, "exported 4 tasks; 1 aggregating task cannot be exported") {
		t.Errorf("export says %s", r.err)
	}
	if r = b.run("export", queueName, "-s", "pending"); strings.Contains(r.err, "cannot be exported") {
		t.Errorf("export of pending tasks says %s", r.err)
	}
	b.in = lines
	r = b.run("import")
	if r.code != 1 || strings.Count(r.out, "the queue holds a task with this id") != 4 {
		t.Errorf("importing what is there: code %d, %s", r.code, r.out)
	}
	b.ok("queue", "rm", queueName, "--force", "--yes")
	if out := b.ok("import"); !strings.Contains(out, "done 4") {
		t.Errorf("import prints %s", out)
	}
	if again := b.ok("export", queueName); again != lines {
		t.Errorf("after the import:\n%s\nbefore:\n%s", again, lines)
	}
	b.ok("import", "--to", "copy")
	if b.size("copy", state.Scheduled) != 3 || b.size("copy", state.Pending) != 1 {
		t.Error("the copy is not whole")
	}
	b.fails(2, `--to "a b"`, "import", "--to", "a b")
	b.in = "{}\n"
	b.fails(2, "line 1: expected version 1, found 0", "import")
	b.in = lines + "nonsense\n"
	b.fails(2, "line 5: expected a task", "import", "--to", "third")
	if b.size("third", state.Scheduled) != 3 {
		t.Error("the tasks before a broken line are not imported")
	}
	b.in = lines + strings.Repeat("x", 9<<20)
	b.fails(2, "line 5: expected a task as delayed export writes it, found a line of more than", "import", "--to", "4")
}
