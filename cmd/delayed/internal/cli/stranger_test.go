package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/godelayed/delayed/cmd/delayed/internal/cli"
	"github.com/godelayed/delayed/internal/faultnet"
)

// TestWhatPeopleMistype tries command lines that are nearly right.
func TestWhatPeopleMistype(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome)
	b.ok("enqueue", "welcome", "1", `"en"`, "--in", "1h", "--id", "held")
	for _, c := range []struct {
		code       int
		text, args string
	}{
		{2, "--limit -1: expected 1 to 1000", "tasks --limit -1"},
		{2, "--limit 5000: expected 1 to 1000", "tasks ls mail -n 5000"},
		{2, "--scan 0: expected 1 to", "tasks --scan 0"},
		{2, "--limit 0: expected 1 to 1000", "audit -n 0"},
		{2, "--skip -1: expected 0 to", "audit --skip -1"},
		{2, "weight 99999: expected 0 to 1000", "weight mail 99999"},
		{2, "write -- before arguments that begin with -", "weight mail -3"},
		{2, "write -- before arguments that begin with -", "enqueue welcome -5 x -q mail"},
		{2, "unknown shorthand flag: 'x' in -x; see", "queues -x"},
		{2, "expected at most 106751d", "enqueue welcome 1 --in 10000w2500000h"},
		{3, "nobody has enqueued a task there", "functions nosuch"},
		{3, "nobody has enqueued a task there", "groups nosuch"},
		{3, "nobody has enqueued a task there", "queue 5s"},
		{2, "--max-retry: expected a whole number, 0 or more, found", "enqueue welcome 1 --max-retry -1"},
		{2, `expected a duration that is not negative, found "-5m"`, "enqueue welcome 1 --in -5m"},
		{2, `expected a duration that is not negative, found "-5m"`, "reschedule 1 --in -5m"},
		{3, `did you mean "mail"?`, "queue show mial"},
		{3, `did you mean "mail"?`, "pause MAIL"},
		{3, `did you mean "mail"?`, "tasks ma"},
		{3, `did you mean "mail"?`, "monitor mial"},
		{3, `did you mean "mail"?`, "task show x -q mial"},
		{3, `has published "Wellcome"; did you mean "welcome"? Known: cli_test.welcome; see`, "enqueue Wellcome 1"},
		{3, `did you mean "cli_test.welcome"? Known:`, "enqueue cli_test.Welcome 1"},
		{3, "did you mean delayed tasks ls?", "tasks lst"},
		{2, `unknown command "shwo" for delayed queues; did you mean show?`, "queue shwo mail"},
		{3, "delayed tasks ls --id lists those with a beginning", "task nosuch"},
		{2, `--to "mail": expected another queue than that of the tasks`, "move held --to mail"},
		{2, `--to "mail": expected another`, "move --all -q mail -s scheduled --to mail"},
		{2, `--args: expected a JSON array, such as '[42,"en"]', found "1"`, "edit held --args 1"},
	} {
		b.fails(c.code, c.text, strings.Fields(c.args)...)
	}
	for _, args := range []string{"tasks -q mail", "task ls --queue mail", "tasks mail", "task held -q mail"} {
		if out := b.ok(strings.Fields(args)...); !strings.Contains(out, `welcome(1, "en")`) {
			t.Errorf("%s prints %s", args, out)
		}
	}
	b.fails(3, `did you mean "mail"?`, "task", "held", "-q", "mial")
	b.fails(2, `--url "": expected a value`, "queues", "--url", "")
	b.fails(2, `--profile "": expected a value`, "queues", "-p", "")
}

// TestWatchGoesOnWhenRedisComesBack cuts the connection between two looks.
func TestWatchGoesOnWhenRedisComesBack(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"stats", "--watch", "1ms", "--json"},
		{"monitor", "-w", "1ms", "--json"},
		{"doctor", "-w", "1ms", "--json"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			proxy := faultnet.NewProxy(t, b.Server.Addr())
			b.env["DELAYED_URL"] = proxy.URL()
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			var documents, errs bytes.Buffer
			looks := 0
			out := writerFunc(func(p []byte) (int, error) {
				if looks++; looks == 1 {
					proxy.Refuse()
					proxy.CutAll()
				} else {
					cancel()
				}
				return documents.Write(p)
			})
			failed := writerFunc(func(p []byte) (int, error) {
				proxy.Heal()
				return errs.Write(p)
			})
			code := cli.Run(ctx, args, b.streams(out, failed))
			if code != 0 || looks < 2 || !strings.Contains(errs.String(), "delayed: ") {
				t.Errorf("exit code %d after %d documents and the errors %q", code, looks, errs.String())
			}
		})
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
