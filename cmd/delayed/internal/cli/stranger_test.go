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
	} {
		b.fails(c.code, c.text, strings.Fields(c.args)...)
	}
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
