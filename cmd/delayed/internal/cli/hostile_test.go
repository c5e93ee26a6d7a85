package cli_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// sgr are the sequences of colours that a Page writes.
var sgr = regexp.MustCompile("\x1b\\[[0-9]*m")

// checkPrintable fails the test if a text has what only attackers write.
func checkPrintable(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range sgr.ReplaceAllString(text, "") {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%s has %U: %.1000q", what, r, text)
			return
		}
	}
}

// TestHostileTexts shows tasks whose ids, arguments, headers, errors, groups and progress are hostile.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.columns = 100
	w := b.work(fails)
	ids := []string{"id" + hostile, "scheduled" + hostile}
	_, err := b.q.With(delayed.TaskID(ids[0]), delayed.Header("k"+hostile, hostile), delayed.MaxRetry(0)).
		Delay(fails, 1)
	b.Must(err)
	later := b.q.With(delayed.In(time.Hour))
	_, err = later.With(delayed.TaskID(ids[1]), delayed.UniqueKey(hostile, time.Hour)).
		Enqueue(bg, delayed.NewGoTask("x/"+strings.Repeat("long", 100), hostile, strings.Repeat("\u0301", 10_000)))
	b.Must(err)
	_, err = later.Enqueue(bg, delayed.NewPyTask("mod:func", nil, map[string]any{"k" + hostile: hostile}))
	b.Must(err)
	_, err = b.q.With(delayed.Group(hostile)).Enqueue(bg, delayed.NewGoTask("x.Y", []string{hostile}))
	b.Must(err)
	b.Until("the task is archived", func() bool { return b.size(queueName, state.Archived) == 1 })
	b.Do("RPUSH", b.Name, hostile) // no message at all
	b.Do("RPUSH", b.Name+"_noti", "1")
	b.Until("it is archived", func() bool { return b.size(queueName, state.Archived) == 2 })
	ins, err := inspect.New(b.rdb, inspect.Config{Actor: "who" + hostile})
	b.Must(err)
	_, err = ins.Do(bg, queueName, inspect.Archive(), ids[1])
	b.Must(err)
	for _, args := range [][]string{
		{"queues"},
		{"queue", queueName},
		{"tasks"},
		{"tasks", "ls", queueName, "--header", "k" + hostile},
		{"task", ids[0]},
		{"task", ids[1]},
		{"workers"},
		{"groups"},
		{"audit"},
		{"doctor"},
		{"stats"},
		{"monitor"},
		{"retry", ids[0] + "x"},
		{"queue", "x" + hostile},
		{"tasks", "--state", hostile},
		{"worker", "stop", hostile},
		{hostile},
		{"queues", "--" + hostile},
		{"cron", "run", hostile},
		{"enqueue", hostile},
		{"-u", hostile, "queues"},
		{"enqueue", "mod:f", hostile, "-q", queueName},
		{"-p", hostile, "queues"},
		{"__complete", "task", ""},
		{"run-now", ids[1]},
		{"delete", "--all", "-q", queueName, "-s", "archived", "--func", hostile},
		{"import", "/nonexistent" + hostile},
		{"export"},
		{"weight", queueName, hostile},
		{"audit", "--json"},
		{"version"},
	} {
		r := b.run(args...)
		if args[0] == "__complete" {
			r.out = strings.ReplaceAll(r.out, "\t", " ") // between a word and what it means
		}
		checkPrintable(t, strings.Join(args, " "), r.out)
		checkPrintable(t, "the error of "+strings.Join(args, " "), r.err)
		for line := range strings.SplitSeq(r.out+r.err, "\n") {
			if len(line) > 20_000 && args[0] != "export" {
				t.Errorf("%v prints a line of %d bytes", args, len(line))
			}
		}
	}
	if out := b.ok("task", ids[0]); !strings.Contains(out, `\x1b[31m red\u202e`) {
		t.Errorf("the task is shown as %s", out)
	}
	w.Quiet()
}

func TestMegabyteNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.columns = 80
	long := strings.Repeat("x", 1<<20)
	b.fails(3, "", "task", long)
	b.fails(2, "", "queue", long+" ", "y")
	for _, args := range [][]string{
		{"task", long}, {"pause", long}, {long}, {"enqueue", long}, {"-p", long, "queues"},
	} {
		if r := b.run(args...); len(r.err) > 5000 || r.code == 0 {
			t.Errorf("%s: code %d and %d bytes of error", args[0][:4], r.code, len(r.err))
		}
	}
}

// TestTextsOfStrangers looks at a queue whose keys somebody has filled with hostile texts, also of 1 MiB.
func TestTextsOfStrangers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := redistest.Start(t) // the texts are large
	b.Bench = redistest.NewBench(t, server)
	b.env = map[string]string{"DELAYED_URL": server.URL()}
	redistest.FillHostile(b.Do, "", queueName)
	for _, message := range redistest.HostileMessages() {
		b.Do("RPUSH", queueName, message)
	}
	var commands [][]string
	for line := range strings.SplitSeq("queues|queue mail|history mail|tasks|workers|worker show worker|functions|"+
		"functions mail|groups|groups mail|cron|audit|stats|stats mail|stats --per minute|monitor|doctor|scale mail|"+
		"export mail -s archived|task m0-1", "|") {
		commands = append(commands, strings.Fields(line))
	}
	for _, words := range [][]string{
		{"cron", "history"}, {"cron", "run"}, {"enqueue", "-q", queueName},
	} {
		commands = append(commands, append(words, redistest.HostileText))
	}
	for _, id := range []string{"archived", "done"} {
		commands = append(commands, []string{"task", id + redistest.HostileText})
	}
	commands = append(commands, []string{"worker", "pause", "worker" + redistest.HostileText})
	for _, words := range []string{"task", "queue show", "worker show", "enqueue", "cron run"} {
		commands = append(commands, append(strings.Fields("__complete "+words), ""))
	}
	for _, s := range inspect.States {
		commands = append(commands, []string{"tasks", "ls", queueName, "-s", s.String()})
	}
	for i := range len(redistest.HostileMessages()) / 2 {
		commands = append(commands, []string{"task", fmt.Sprintf("m1-%d", i)})
	}
	for _, args := range commands {
		for _, format := range [][]string{nil, {"--json"}} {
			if format != nil && (len(args) > 1 || args[0] == "export") { // one of each noun
				continue
			}
			args := append(slices.Clone(args), format...)
			what := strings.Join(args, " ")
			what = what[:min(len(what), 60)]
			r := b.run(args...)
			if args[0] == "__complete" {
				r.out = strings.ReplaceAll(r.out, "\t", " ") // between a word and what it means
			}
			checkPrintable(t, what, r.out)
			checkPrintable(t, "the error of "+what, r.err)
			lines := r.err
			if format == nil && args[0] != "export" {
				lines += r.out
			}
			for line := range strings.SplitSeq(lines, "\n") {
				if len(line) > 20_000 {
					t.Errorf("%s prints a line of %d bytes", what, len(line))
				}
			}
			if r.code > 1 && !slices.Contains([]string{"cron", "enqueue", "monitor", "worker"}, args[0]) {
				t.Errorf("%s: exit code %d: %.300s", what, r.code, r.err)
			}
		}
	}
}
