package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// render has the name that docs/OPERATING.md speaks of.
var render = delayed.Func(func(int) {}, delayed.Name("app/mail.Render"))

// TestOperatingPage runs each command of docs/OPERATING.md, in order, in a situation in which it makes sense.
func TestOperatingPage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	page, err := os.ReadFile("../../../../docs/OPERATING.md")
	b.Must(err)
	dir := t.TempDir()
	b.env["XDG_CONFIG_HOME"] = dir
	b.Must(os.MkdirAll(filepath.Join(dir, "delayed"), 0o700))
	b.Must(os.WriteFile(filepath.Join(dir, "delayed", "config.yaml"), fmt.Appendf(nil,
		"profiles: {new: {url: %q, prefix: %q}}\n", b.env["DELAYED_URL"], b.env["DELAYED_PREFIX"]+"new:"), 0o600))
	commands := commandsOf(string(page))
	if len(commands) < 60 {
		t.Fatalf("found %d commands: the page was read in a wrong way", len(commands))
	}
	for i, line := range commands {
		b.situation(i, line)
		words := strings.Fields(line)[1:]
		output := ""
		if at := slices.Index(words, ">"); at >= 0 {
			words, output = words[:at], filepath.Join(dir, words[at+1])
		}
		for j, word := range words {
			switch word = strings.Trim(word, "'"); word {
			case "TASK":
				words[j] = fmt.Sprintf("%s-%d", queueName, i)
			case "WORKER":
				words[j] = b.lastWorker.ID()
			case "ENTRY":
				words[j] = "daily"
			case "mail.ndjson":
				words[j] = filepath.Join(dir, word)
			default:
				words[j] = word
			}
		}
		noun := strings.Join(words[:min(2, len(words))], " ")
		if slices.Contains(words, "--all") && !slices.Contains(words, "--dry-run") || noun == "queues empty" ||
			noun == "queues rm" {
			words = append(words, "--yes")
		}
		if slices.Contains(words, "new") {
			delete(b.env, "DELAYED_URL") // as on a machine where only profiles are used
		}
		r := b.run(words...)
		b.env["DELAYED_URL"] = b.Server.URL()
		looks := words[0] == "monitor" || words[0] == "doctor" // their codes tell what they have found
		if r.code != 0 && (!looks || r.code == 2 && r.out == "" || r.code == 3) {
			t.Errorf("%s: exit code %d, %s", line, r.code, r.err)
		}
		if noun == "worker stop" || noun == "queues restart" {
			b.awaitStop()
		}
		if output != "" {
			b.Must(os.WriteFile(output, []byte(r.out), 0o600))
		}
	}
}

// commandsOf returns the commands of a page, without their comments.
func commandsOf(page string) (commands []string) {
	inside := false
	for line := range strings.Lines(page) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && strings.HasPrefix(line, "delayed "):
			commands = append(commands, line)
		}
	}
	return commands
}

// situation makes a situation in which command i makes sense: tasks wait, an entry is there, and a worker lives, unless
// the queue is to be deleted.
func (b *bench) situation(i int, command string) {
	b.T.Helper()
	if strings.Contains(command, "queues rm mail") {
		b.ok("worker", "stop", b.lastWorker.ID())
		b.awaitStop()
		return
	}
	if b.lastWorker == nil {
		b.lastWorker = b.work(render)
	}
	for _, name := range []string{queueName, "urgent", "post", "old"} {
		id := fmt.Sprintf("%s-%d", name, i)
		_, err := delayed.NewQueue(name, b.rdb).With(delayed.In(time.Hour), delayed.TaskID(id)).Delay(render, 42)
		b.Must(err)
	}
	b.Must(b.q.Periodic().Set(bg, delayed.Entry{Name: "daily", Spec: "@daily", Task: delayed.Call(render, 1)}))
}

// awaitStop waits until the worker, which was told to stop, is gone.
func (b *bench) awaitStop() {
	b.T.Helper()
	b.Until("the worker has stopped", func() bool {
		return b.lastWorker.Status().State == state.Stopped && b.run("worker", "show", b.lastWorker.ID()).code != 0
	})
	b.lastWorker = nil
}

// TestCommandsOfPages looks whether there is each command that a page names in its text.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spans := regexp.MustCompile("`delayed ([a-z][a-z0-9 =-]*)")
	pages, err := filepath.Glob("../../../../docs/*.md")
	b.Must(err)
	n := 0
	for _, page := range append(pages, "../../../../README.md") {
		text, err := os.ReadFile(page)
		b.Must(err)
		for _, m := range spans.FindAllStringSubmatch(string(text), -1) {
			words, _, _ := strings.Cut(m[1], " -")
			n++
			if r := b.run(append(strings.Fields(words), "--no-such-flag")...); !strings.Contains(r.err, "unknown flag") {
				t.Errorf("%s: delayed %s: %s", page, words, r.err)
			}
		}
	}
	if n < 40 {
		t.Errorf("found %d commands, expected 40 at least", n)
	}
}
