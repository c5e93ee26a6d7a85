package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

var bg = context.Background()

// bench is a queue "mail" of its own, behind a prefix, so that nobody else's queues are in its registry.
type bench struct {
	*redistest.Bench
	rdb *delayed.Store
	q   *delayed.Queue
	ins *inspect.Inspector
	log *redistest.Log

	workers int // started by work
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
	b.rdb = rdb.WithPrefix(b.Name + ":")
	b.Name += ":" + queueName
	b.Log = b.log
	b.q = delayed.NewQueue(queueName, b.rdb)
	b.ins, err = inspect.New(b.rdb, inspect.Config{})
	b.Must(err)
	// A worker that stops cuts off its wait, and Redis may have served that with a notification. It is lost then, and
	// claims of other workers make up for it.
	t.Cleanup(func() { b.Check(redistest.Invariants{LessNoti: b.workers}) })
	return b
}

// work runs a worker until the test ends.
func (b *bench) work(fns ...any) *delayed.Worker {
	b.T.Helper()
	b.workers++
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
	return w
}

// tasks returns a whole list.
func (b *bench) tasks(q inspect.Query) (tasks []inspect.Task) {
	b.T.Helper()
	for t, err := range b.ins.All(bg, queueName, q) {
		b.Must(err)
		tasks = append(tasks, t)
	}
	return tasks
}

// Functions that tests delay.

// User is an argument with fields.
type User struct {
	Name string
	Age  int
}

func welcome(context.Context, int, string) error { return nil }

func digest(_ context.Context, users []User, _ map[string]int) int { return len(users) }

var errMailbox = errors.New("mailbox full:\x1b[31m red\u202e")

func gathered([]int) {}

func fails(context.Context, int) error { return errMailbox }

func path(fn string) string { return "github.com/godelayed/delayed/inspect_test." + fn }

func ids(tasks []inspect.Task) []string {
	all := []string{}
	for _, t := range tasks {
		all = append(all, t.ID)
	}
	return all
}

func id(i int) string { return fmt.Sprintf("task-%03d", i) }
