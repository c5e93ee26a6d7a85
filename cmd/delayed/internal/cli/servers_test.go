package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
)

// on lets a bench use a server of its own, without a prefix.
func (b *bench) on(server *redistest.Server, url string) {
	b.T.Helper()
	rdb, err := delayed.Dial(server.URL())
	b.Must(err)
	b.T.Cleanup(func() { rdb.Close() })
	b.rdb, b.q = rdb, delayed.NewQueue(queueName, rdb)
	b.env = map[string]string{"REDIS_URL": url}
}

// TestObserver runs commands as the user of SECURITY.md that may only look.
func TestObserver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := redistest.Start(t)
	b.on(server, strings.Replace(server.URL(), "//", "//observer:observer-password@", 1))
	page, err := os.ReadFile("../../../../docs/SECURITY.md")
	b.Must(err)
	_, rest, ok := strings.Cut(string(page), "ACL SETUSER observer on ")
	rules, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("SECURITY.md has no user observer")
	}
	words := []any{"SETUSER", "observer", "on"}
	for w := range strings.FieldsSeq(rules) {
		words = append(words, w)
	}
	server.Do(t, "ACL", words...)
	w := b.work(welcome)
	_, err = b.q.With(delayed.TaskID("later"), delayed.In(time.Hour)).Delay(welcome, 1, "en")
	b.Must(err)
	for _, args := range []string{
		"queues", "queue mail", "tasks", "tasks mail --state scheduled --func welcome", "task later", "workers",
		"worker show " + w.ID(), "functions", "cron ls", "groups", "stats", "stats --per minute",
		"history mail", "audit",
		"monitor", "scale", "scale mail --print wanted", "export mail", "archive --all -q mail -s scheduled --dry-run",
	} {
		if r := b.run(strings.Fields(args)...); r.code != 0 || strings.Contains(r.err, "NOPERM") {
			t.Errorf("delayed %s as observer: exit code %d: %s", args, r.code, r.err)
		}
	}
	out, errs, end := b.following("tail", queueName)
	b.delayUntil("the observer sees an event", delayed.Call(welcome, 1, "en"), func() bool {
		return strings.Contains(out.String(), "task done")
	})
	if code := end(); code != 0 || errs.String() != "" {
		t.Errorf("tail as observer: exit code %d: %s", code, errs)
	}
	for _, args := range []string{
		"pause mail", "weight mail 3", "delete later", "archive later", "run-now later", "move later --to other",
		"delete --all -q mail -s scheduled --yes", "worker stop " + w.ID(),
		"enqueue welcome 1 \"en\" -q mail", "bench --tasks 1",
	} {
		r := b.run(strings.Fields(args)...)
		if r.code != 1 || !strings.Contains(r.err, "the user of Redis may not do that") {
			t.Errorf("delayed %s as observer: exit code %d: %s%s", args, r.code, r.out, r.err)
		}
	}
	if names, ok := server.Do(t, "KEYS", "*bench*").([]any); !ok || len(names) > 0 {
		t.Errorf("the observer has left %q", names)
	}
}

// TestTLS looks at a server that wants a client certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := redistest.NewTLS(t)
	server, addr := c.Start(t)
	b.on(server, "rediss://"+addr+"/0?"+c.Query().Encode())
	_, err := b.q.With(delayed.In(time.Hour)).Delay(welcome, 1, "en")
	b.Must(err)
	if out := b.ok("tasks", queueName); !strings.Contains(out, `welcome(1, "en")`) {
		t.Errorf("tasks prints %s", out)
	}
	b.fails(1, "certificate", "queues", "-u", "rediss://"+addr+"/0?"+c.Query("ca").Encode())
	r := b.run("bench", "--tasks", "50", "--concurrency", "2")
	if r.code != 0 || !strings.Contains(r.out, "drain") {
		t.Errorf("bench: exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// TestSentinel asks a Sentinel for the server.
func TestSentinel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := redistest.Start(t)
	addr := startSentinel(t, b, server.Addr())
	b.on(server, "redis://"+addr+"/0?master=main")
	_, err := b.q.With(delayed.In(time.Hour)).Delay(welcome, 1, "en")
	b.Must(err)
	if out := b.ok("tasks", queueName); !strings.Contains(out, `welcome(1, "en")`) {
		t.Errorf("tasks prints %s", out)
	}
	b.fails(1, "other", "queues", "-u", "redis://"+addr+"/0?master=other")
}

// startSentinel starts a Sentinel that watches a master as main, and returns its address.
func startSentinel(t *testing.T, b *bench, master string) string {
	t.Helper()
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	for range 20 {
		port := 21000 + rand.IntN(10000) // below the range that systems use for outgoing connections
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		b.Must(os.WriteFile(file, fmt.Appendf(nil, "bind 127.0.0.1\nport %d\nsentinel monitor main %s 1\n", port,
			strings.Replace(master, ":", " ", 1)), 0o600))
		proc, err := childproc.Start(exec.Command(program, file, "--sentinel"))
		b.Must(err)
		t.Cleanup(proc.Kill)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		b.Until("the Sentinel answers, or has ended", func() bool {
			return b.run("queues", "-u", "redis://"+addr+"/0?master=main").code == 0 || !proc.Running()
		})
		if proc.Running() {
			return addr
		}
		if out := proc.Output(); !strings.Contains(out, "Address already in use") {
			t.Fatalf("the Sentinel has ended: %s", out)
		}
	}
	t.Fatal("no free port for a Sentinel")
	return ""
}
