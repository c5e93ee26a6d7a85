package delayed_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/semaphore"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/typed"
)

// The examples that README.md shows in a few lines; there, the functions are in a package mail.

// tenantKey is the key of the tenant in contexts.
type tenantKey struct{}

func withTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// Digest prints the tenant.
func Digest(ctx context.Context) {
	fmt.Println("digest for", ctx.Value(tenantKey{}))
	called <- struct{}{}
}

// Render returns a text.
func Render(userID int64) (string, error) { return fmt.Sprint("Dear user ", userID), nil }

// readmeConfig is the configuration of a worker of one queue.
func readmeConfig(queue string) delayed.WorkerConfig {
	return delayed.WorkerConfig{Queues: delayed.Strict{queue}, Logger: delayed.SlogLogger(quietLog())}
}

func Example_middleware() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, readmeConfig("example-readme"))
	if err != nil {
		panic(err)
	}
	err = w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
			return next(withTenant(ctx, t.Header("tenant")), t)
		}
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Digest); err != nil {
		panic(err)
	}
	q := delayed.NewQueue("example-readme", rdb)
	if _, err := q.With(delayed.Header("tenant", "shop")).Delay(Digest); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: digest for shop
}

func Example_periodic() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	cfg := readmeConfig("example-readme")
	digest := delayed.Entry{
		Name: "digest", Spec: "30 7 * * mon-fri", Zone: "Europe/Berlin", Task: delayed.Call(Digest),
	}
	cfg.Schedulers = []delayed.SchedulerConfig{{Queue: "mail", Owner: "shop", Entries: []delayed.Entry{digest}}}
	_, err := delayed.NewWorker(rdb, cfg)
	fmt.Println(err)
	// Output: <nil>
}

func Example_results() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, readmeConfig("example-readme-results"))
	if err != nil {
		panic(err)
	}
	if err := w.Register(Render); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()
	q := delayed.NewQueue("example-readme-results", rdb)

	ref, err := q.With(delayed.KeepResult(time.Hour)).Delay(Render, 42) // Render(userID int64) (string, error)
	if err != nil {
		panic(err)
	}
	id := ref.ID()                                     // another process needs no more
	text, err := delayed.Await[string](ctx, q.Ref(id)) // wakes up when the task has ended
	fmt.Println(text, err)
	stop()
	if err := <-stopped; err != nil {
		panic(err)
	}
	// Output: Dear user 42 <nil>
}

func Example_priorities() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	var cfg delayed.WorkerConfig
	cfg.Queues = delayed.Weighted{"critical": 6, "mail": 3} // critical is looked at first twice as often as mail
	fmt.Println(cfg.Queues)
	cfg.Queues = delayed.Strict{"critical", "mail"} // the worker serves mail only while critical is empty
	fmt.Println(cfg.Queues)
	q := delayed.NewQueue("example-readme-front", rdb)
	ref, err := q.With(delayed.Front()).Delay(Render, 42) // before all other tasks of its queue
	fmt.Println(ref != nil, err)
	// Output:
	// map[critical:6 mail:3]
	// [critical mail]
	// true <nil>
}

func Example_semaphore() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	cfg := delayed.WorkerConfig{Queues: delayed.Strict{"example-payments"}}
	w, _ := delayed.NewWorker(rdb, cfg)
	payments := struct{ Charge any }{Charge}

	sem, err := semaphore.New(rdb, semaphore.Config{Name: "payments", Places: 10})
	fmt.Println(err)
	err = w.Register(delayed.Func(payments.Charge, delayed.Middleware(sem.Middleware)))
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
}

func Add(_ context.Context, a, b int) (int, error) { return a + b, nil }

func Example_typed() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	cfg := readmeConfig("example-readme-typed")
	cfg.StopWhenEmpty = true
	w, err := delayed.NewWorker(rdb, cfg)
	if err != nil {
		panic(err)
	}
	q, ctx := delayed.NewQueue("example-readme-typed", rdb), context.Background()

	sum := typed.ResultFunc2(Add, delayed.KeepResult(time.Hour)) // Add(ctx context.Context, a, b int) (int, error)
	if err := w.Register(sum); err != nil {
		panic(err)
	}
	ref, err := sum.Delay(q, 1, 2) // sum.Delay(q, 1, "2") does not compile
	fmt.Println(err)
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	n, err := sum.Await(ctx, ref) // n is an int
	fmt.Println(n, err)
	// Output:
	// <nil>
	// 3 <nil>
}

func Example_isolation() {
	newWorker := func() (*delayed.Worker, error) { return nil, nil } // makes the worker; only children call it
	var cfg delayed.WorkerConfig

	delayed.ChildMain(newWorker) // first in main: in a child, it runs the parent's tasks and never returns
	convert := delayed.Func(Render, delayed.Name("render"), delayed.Isolated(), delayed.Timeout(time.Minute))
	cfg.Isolation = delayed.Isolation{Memory: 512 << 20, CPU: 30 * time.Second} // for each child, and each task
	fmt.Println(convert != nil, cfg.Isolation.CPU)
	// Output: true 30s
}

func Example_inspector() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	rdb, ctx := rdb.WithPrefix("example-readme:"), context.Background()
	ref, _ := delayed.NewQueue("mail", rdb).Delay(Render, 42)

	ins, err := inspect.New(rdb, inspect.Config{})
	fmt.Println(ins != nil, err)
	queues, err := ins.Queues(ctx) // what waits, for how long, what has failed, who works
	fmt.Println(len(queues), queues[0].Name, queues[0].Pending, err)
	_, err = ins.Do(ctx, "mail", inspect.Archive(), ref.ID())
	fmt.Println(err)
	bad := inspect.Query{State: state.Archived, Filter: inspect.Filter{Function: "Render"}}
	report, err := ins.DoAll(ctx, "mail", inspect.RunNow(), bad, nil)
	fmt.Println(report.Done, err)
	// Output:
	// true <nil>
	// 1 mail 1 <nil>
	// <nil>
	// 1 <nil>
}

// TestReadmeLines: each line of code in README.md's section of short examples is in one of the examples above.
func TestReadmeLines(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := func(line string) string { // without its comment and alignment
		line, _, _ = strings.Cut(line, " // ")
		return strings.TrimSpace(strings.ReplaceAll(line, "mail.", ""))
	}
	compiled := map[string]bool{}
	for line := range strings.Lines(string(source)) {
		compiled[code(line)] = true
	}
	_, section, _ := strings.Cut(string(page), "\n## In a few lines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	checked := 0
	for i, block := range strings.Split(section, "```") {
		for line := range strings.Lines(strings.TrimPrefix(block, "go\n")) {
			if i%2 == 1 && code(line) != "" {
				checked++
				if !compiled[code(line)] {
					t.Errorf("README.md shows a line that no example has: %s", line)
				}
			}
		}
	}
	if checked < 12 {
		t.Errorf("found %d lines of code: has the section of README.md another form?", checked)
	}
}
