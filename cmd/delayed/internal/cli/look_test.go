package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/cli"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestExitCodesAndErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		code int
		text string
		args string
	}{
		{0, "", ""},
		{0, "", "queues"},
		{0, "", "version"},
		{2, `unknown command "queuse" for delayed; did you mean queues?`, "queuse"},
		{2, "unknown flag: --jsno", "queues --jsno"},
		{2, "usage: delayed history QUEUE", "history"},
		{2, "expected 1 to 90", "history mail --days 91"},
		{2, "--cursor belongs to one list", "tasks ls --cursor x"},
		{2, `--state "lost": expected one of pending, active`, "tasks ls --state lost"},
		{2, "expected a positive duration", "queues --watch=-1s"},
		{2, "--watch 0s: expected a positive duration", "queues --watch=0s"},
		{2, "--watch 0s: expected a positive duration", "queues --watch 0s"},
		{2, "--watch: tail follows events without it", "tail --watch=0s"},
		{2, "the URL is that of --url", "queues --url http://x"},
		{3, `queue "mail"`, "queue show mail"},
		{1, "connection refused", "queues --url redis://localhost:1"},
		{3, `worker "x"`, "worker show x"},
		{3, "connection refused", "monitor --url redis://localhost:1"},
		{3, "unknown flag", "monitor --nonsense"},
		{3, `queue "mail"`, "monitor mail"},
	} {
		r := b.run(strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.err, c.text) {
			t.Errorf("delayed %s: code %d, error %q, expected %d and %q", c.args, r.code, r.err, c.code, c.text)
		}
		if c.code == 0 && (r.out == "" || r.err != "") {
			t.Errorf("delayed %s prints %q and the error %q", c.args, r.out, r.err)
		}
		if strings.Count(r.err, "\n") > 1 {
			t.Errorf("delayed %s prints more than a line: %s", c.args, r.err)
		}
	}
}

// TestCommandsOfTheReadme runs the commands that README.md and docs/CLI.md begin with.
func TestCommandsOfTheReadme(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(delayed.Func(add, delayed.Name("app/mail.Render")), welcome)
	b.delayMany(b.q, 1)
	n := 0
	for _, file := range []string{"../../../../README.md", "../../../../docs/CLI.md"} {
		page, err := os.ReadFile(file)
		b.Must(err)
		head, _, _ := strings.Cut(string(page), "## Which Redis")
		for line := range strings.Lines(head) {
			line, _, _ = strings.Cut(line, "#")
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "delayed" || words[1] == "completion" || words[1] == "top" ||
				words[1] == "web" {
				continue // top needs a terminal, and web does not end: their own tests look after that
			}
			n++
			if words[1] == "retry" {
				words = append(words, "--yes")
			}
			if r := b.run(words[1:]...); r.code != 0 {
				t.Errorf("%s: code %d, %s", line, r.code, r.err)
			}
		}
	}
	if n != 6 {
		t.Errorf("found %d commands, expected 6", n)
	}
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, url := range []string{
		"redis://u:secret@localhost:1", "redis://u:secret@a:b:c", "secret", "redis://:secret@a,b",
	} {
		if r := b.run("queues", "--url", url); r.code == 0 || strings.Contains(r.err, "secret") && url != "secret" {
			t.Errorf("%s: code %d, %s", url, r.code, r.err)
		}
	}
}

// stopAfter is an output that ends a context after some writes.
type stopAfter struct {
	text   bytes.Buffer // not embedded: all goes through Write
	n      int
	cancel func()
}

func (s *stopAfter) Write(p []byte) (int, error) {
	if s.n--; s.n == 0 {
		s.cancel()
	}
	return s.text.Write(p)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q, 1)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	out := &stopAfter{n: 3, cancel: cancel}
	code := cli.Run(ctx, []string{"queues", "--watch=1ms", "--json"}, b.streams(out, out))
	lines := strings.Split(strings.TrimSpace(out.text.String()), "\n")
	if len(lines) != 3 || code != 0 {
		t.Fatalf("code %d, %d lines, expected 0 and 3: %s", code, len(lines), out.text.String())
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("no document on a line: %s", line)
		}
	}
	b.columns = 80
	ctx, cancel = context.WithCancel(bg)
	defer cancel()
	out = &stopAfter{n: 2, cancel: cancel}
	cli.Run(ctx, []string{"stats", "-w=1ms"}, b.streams(out, out))
	if n := strings.Count(out.text.String(), "\x1b[H\x1b[2J"); n != 2 {
		t.Errorf("the screen was cleared %d times, expected 2", n)
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q, 1)
	if out := b.ok("queues"); strings.Contains(out, "\x1b") {
		t.Errorf("colours without a terminal: %q", out)
	}
	b.columns = 80
	if out := b.ok("queues"); !strings.Contains(out, "\x1b[31mno workers\x1b[0m") {
		t.Errorf("no colours on a terminal: %q", out)
	}
	if out := b.ok("queues", "--no-color"); strings.Contains(out, "\x1b") {
		t.Errorf("colours with --no-color: %q", out)
	}
	b.env["NO_COLOR"] = "1"
	if out := b.ok("queues"); strings.Contains(out, "\x1b") {
		t.Errorf("colours with NO_COLOR: %q", out)
	}
}

func TestTasksPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q, 5)
	var seen []string
	cursor := []string{}
	for range 3 {
		var v struct {
			Lists []struct {
				Cursor string
				Total  int
				Tasks  []struct{ ID string }
			}
		}
		b.read(&v, append([]string{"tasks", "ls", queueName, "-s", "pending", "-n", "2"}, cursor...)...)
		if v.Lists[0].Total != 5 {
			t.Errorf("total %d, expected 5", v.Lists[0].Total)
		}
		for _, task := range v.Lists[0].Tasks {
			seen = append(seen, task.ID)
		}
		cursor = []string{"--cursor", v.Lists[0].Cursor}
	}
	if got := strings.Join(seen, " "); got != "t-0 t-1 t-2 t-3 t-4" {
		t.Errorf("pages have %s", got)
	}
	if out := b.ok("tasks", queueName, "--newest-first", "-n", "1"); !strings.Contains(out, "t-4") ||
		!strings.Contains(out, "More: add --cursor") {
		t.Errorf("newest first: %s", out)
	}
	if out := b.ok("tasks", "ls", queueName, "--arg", "0=3"); !strings.Contains(out, "t-3") ||
		strings.Contains(out, "t-2") {
		t.Errorf("a filter prints %s", out)
	}
	if out := b.ok("tasks", queueName, "-s", "dead"); !strings.Contains(out, "mail archived: 0 of 0") {
		t.Errorf("an empty list prints %s", out)
	}
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		code int
		text string
		args string
	}{
		{0, "OK: 1 queue", "monitor --allow-no-workers"},
		{0, "OK: 1 queue", "monitor mail --allow-no-workers --max-pending 3 --max-archived 0 --max-latency 1h"},
		{1, "warning: queue mail: 3 pending tasks, expected at most 2", "monitor --allow-no-workers --warn-pending 2"},
		{2, "critical: queue mail: 3 pending tasks, expected at most 0", "check --allow-no-workers --max-pending 0"},
		{2, "CRITICAL: 2 findings, 1 queue", "monitor --warn-pending 1"},
		{2, "critical: queue mail: 3 waiting tasks and no worker", "monitor"},
		{2, "0 workers, expected at least 1", "monitor --min-workers 1"},
		{2, "the oldest pending task has waited for", "monitor --allow-no-workers --max-latency 0s"},
	} {
		if c.text == "OK: 1 queue" && b.run("queue", queueName).code != 0 {
			b.delayMany(b.q, 3)
		}
		r := b.run(strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.out, c.text) {
			t.Errorf("delayed %s: code %d, %s, expected %d and %q", c.args, r.code, r.out, c.code, c.text)
		}
	}
	b.ok("pause", queueName)
	if r := b.run("monitor", "--allow-no-workers"); r.code != 1 || !strings.Contains(r.out, "queue mail: paused") {
		t.Errorf("a paused queue: code %d, %s", r.code, r.out)
	}
}

// proposals returns how the last word can be completed.
func (b *bench) proposals(words []string) (got []string) {
	b.T.Helper()
	out := b.ok(append([]string{"__complete"}, words...)...)
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		if word, _, _ := strings.Cut(line, "\t"); !strings.HasPrefix(word, ":") {
			got = append(got, word)
		}
	}
	return got
}

func TestComplete(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.work(welcome)
	b.delayMany(b.q.With(delayed.In(time.Hour)), 2)
	_, err := b.q.With(delayed.In(time.Hour), delayed.TaskID("bad\nid")).Delay(welcome, 1, "en")
	b.Must(err)
	b.Must(b.q.Periodic().Set(bg, delayed.Entry{Name: "daily", Spec: "@daily", Task: delayed.Call(welcome, 1, "en")}))
	for _, c := range []struct {
		args string // the last word is begun; _ is the empty one
		want string // the words, in their order
	}{
		{"pause _", "mail"},
		{"queue show m", "mail"},
		{"queue show x", ""},
		{"tasks ls mail --state ar", "archived"},
		{"tasks ls mail --func cli", "cli_test.welcome"},
		{"enqueue cli", "cli_test.welcome"},
		{"enqueue x --queue _", "mail"},
		{"delete t-", "t-0 t-1"},
		{"task show --queue mail t-1", "t-1"},
		{"worker stop " + w.ID()[:4], w.ID()},
		{"cron pause d", "daily"},
		{"move t-0 --to _", "mail"},
		{"enqueue x --on-conflict s", "skip"},
		{"hist", "history"},
	} {
		words := strings.Fields(c.args)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "_", "")
			if strings.HasPrefix(c.args, "enqueue cli") || strings.Contains(c.args, "--func") {
				words[i] = strings.Fields(c.args)[i]
			}
		}
		got := b.proposals(words)
		for end := time.Now().Add(redistest.Patience); len(got) == 0 && c.want != "" && time.Now().Before(end); {
			got = b.proposals(words) // a busy machine did not come to it in the time that a shell waits
		}
		strange := strings.Contains(c.want, "t-0") && len(got) == 2 && got[0] == "t-1"
		if strings.Join(got, " ") != c.want && !strange {
			t.Errorf("delayed %s: proposes %q, expected %q", c.args, got, c.want)
		}
	}
	if out := b.ok("completion", "bash"); !strings.Contains(out, "__start_delayed") {
		t.Error("no script for bash")
	}
	b.env["DELAYED_URL"] = "redis://localhost:1"
	if out := b.ok("__complete", "pause", ""); !strings.HasPrefix(out, ":4") {
		t.Errorf("without Redis it proposes %s", out)
	}
}

// TestBrokenQueue shows a queue one of whose keys is another program's, and the others.
func TestBrokenQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{queueName, "other"} {
		_, err := delayed.NewQueue(name, b.rdb).Delay(welcome, 1, "en")
		b.Must(err)
	}
	b.Do("SET", b.Name+"_retry", "another program's")
	text := b.ok("queues")
	for _, want := range []string{"broken", "other ", b.Name + `_retry\" is a string, expected a zset`} {
		if !strings.Contains(strings.ReplaceAll(text, `"`, `\"`), want) {
			t.Errorf("found %s, expected %s", text, want)
		}
	}
	if r := b.run("doctor"); r.code != 1 || !strings.Contains(r.out, "error: queue mail: ") ||
		!strings.Contains(r.out, "queue other: 1 task waits, and no worker") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	if r := b.run("monitor"); r.code != 2 || !strings.Contains(r.out, "expected a zset") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	var v struct {
		Queues []struct{ Name, Error string }
	}
	b.read(&v, "queues")
	if len(v.Queues) != 2 || v.Queues[0].Error == "" || v.Queues[1].Error != "" {
		t.Errorf("found %+v", v)
	}
	b.Do("DEL", b.Name+"_retry")
}
