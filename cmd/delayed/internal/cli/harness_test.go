package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/cli"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// The flag -update writes generated files and golden outputs anew: make generate.
var _ = flag.Bool("update", false, "write schemas, docs/CLI.md and golden outputs anew")

// binaries is a folder for programs that tests build.
var binaries string

func TestMain(m *testing.M) {
	redistest.SideBySide()
	dir, err := os.MkdirTemp("", "delayed-cli-")
	if err != nil {
		panic(err)
	}
	binaries = dir
	code := redistest.Main(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

var bg = context.Background()

// bench is a Redis with a prefix of the test's own, and the command that looks at it.
type bench struct {
	*redistest.Bench
	rdb *delayed.Store
	q   *delayed.Queue
	env map[string]string
	log *redistest.Log

	in      string // the standard input
	asks    bool   // somebody can be asked
	columns int    // of the terminal; 0: it is none

	lastWorker *delayed.Worker // of TestOperatingPage
}

const queueName = "mail"

func newBench(t *testing.T) *bench {
	t.Helper()
	server := redistest.Shared(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &bench{Bench: redistest.NewBench(t, server), log: new(redistest.Log)}
	prefix := b.Name + ":"
	b.rdb = rdb.WithPrefix(prefix)
	b.Name = prefix + queueName
	b.Log = b.log
	b.q = delayed.NewQueue(queueName, b.rdb)
	b.env = map[string]string{"DELAYED_URL": server.URL(), "DELAYED_PREFIX": prefix}
	return b
}

// result is what a command has printed, and its exit code.
type result struct {
	out, err string
	code     int
}

// run runs a command line.
func (b *bench) run(args ...string) result {
	b.T.Helper()
	return b.runIn(bg, args...)
}

func (b *bench) runIn(ctx context.Context, args ...string) result {
	b.T.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(ctx, args, b.streams(&out, &errs))
	return result{out.String(), errs.String(), code}
}

func (b *bench) streams(out, errs io.Writer) *cli.Streams {
	return &cli.Streams{
		In: strings.NewReader(b.in), Out: out, Err: errs, Getenv: func(name string) string { return b.env[name] },
		Columns: func() int { return b.columns }, Asks: b.asks, Now: time.Now,
	}
}

// ok runs a command line that must succeed, and returns what it has printed.
func (b *bench) ok(args ...string) string {
	b.T.Helper()
	r := b.run(args...)
	if r.code != 0 {
		b.T.Fatalf("delayed %s: exit code %d: %s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// fails runs a command line that must fail with a code and a text.
func (b *bench) fails(code int, text string, args ...string) {
	b.T.Helper()
	r := b.run(args...)
	if r.code != code || !strings.Contains(r.err, text) {
		b.T.Errorf("delayed %s: exit code %d, error %q: expected %d and %q", strings.Join(args, " "), r.code, r.err,
			code, text)
	}
}

// read decodes the JSON that a command line prints.
func (b *bench) read(v any, args ...string) {
	b.T.Helper()
	text := b.ok(append(args, "--json")...)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		b.T.Fatalf("delayed %s --json: %v in %s", strings.Join(args, " "), err, text)
	}
}

// size returns how many tasks the queue holds in a state.
func (b *bench) size(name string, s state.Task) int {
	b.T.Helper()
	var v struct{ Queue map[string]any }
	b.read(&v, "queue", "show", name)
	n, ok := v.Queue[s.String()].(float64)
	if !ok {
		b.T.Fatalf("no size of %v tasks in %v", s, v.Queue)
	}
	return int(n)
}

// work runs a worker until the test ends.
func (b *bench) work(fns ...any) *delayed.Worker {
	b.T.Helper()
	w, err := delayed.NewWorker(b.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{queueName}, Concurrency: 2, HeartbeatLife: 10 * time.Second,
		SweepInterval: 100 * time.Millisecond, Grace: 5 * time.Second, CancelGrace: time.Second,
		Logger: b.log.Logger(), Backoff: func(int) time.Duration { return time.Hour },
	})
	b.Must(err)
	b.Must(w.Register(fns...))
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	b.T.Cleanup(func() {
		cancel()
		if err := redistest.Await(b.Bench, "the worker's end", done); err != nil {
			b.T.Error(err)
		}
	})
	b.Until("the worker has published its queue and its functions", func() bool {
		return strings.Contains(b.run("functions").out, "(")
	})
	return w
}

// Functions that tests delay.

// User is an argument with fields.
type User struct{ Name string }

func welcome(context.Context, int64, string) error { return nil }

func add(_ context.Context, numbers ...int) (sum int) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}

func fails(context.Context, int) error { return errHostile }

func types(uint8, float64, []byte, time.Time, *User, map[string][]int, bool, any) {}

// hostile is a text that no terminal should get as it is.
const hostile = "mailbox\nfull:\x1b[31m red\u202e\u009b"

var errHostile = errors.New(hostile + "\xff")
