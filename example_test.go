package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
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
	cfg.Limits.StopWhenEmpty = true
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

// exampleTB lets examples, which have no testing.T, use the tests' server.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// redisURL stands for the address of a Redis server.
func redisURL() string { return redistest.Shared(exampleTB{}).URL() }

// quietLog keeps the worker's log out of the examples' output.
func quietLog() slog.Handler { return slog.NewTextHandler(io.Discard, nil) }

// called receives an element from each function of the examples.
var called = make(chan struct{}, 10)

// runOne runs a worker until a function was called. A real program calls w.Run(ctx) with a context that ends with its
// signals.
func runOne(w *delayed.Worker) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		<-called
	}()
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
}

// Welcome is an ordinary function.
func Welcome(_ context.Context, userID int64, lang string) error {
	fmt.Println("welcome", userID, "in", lang)
	called <- struct{}{}
	return nil
}

// A function is delayed by one process and run by another. Here both are one.
func Example() {
	rdb, err := delayed.Dial(redisURL())
	if err != nil {
		panic(err)
	}
	defer rdb.Close()

	q := delayed.NewQueue("example-mail", rdb)
	if _, err := q.Delay(Welcome, 42, "en"); err != nil {
		panic(err)
	}

	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-mail"},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Welcome); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: welcome 42 in en
}

// Arguments are checked where Delay is called.
func ExampleArgumentError() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	_, err := delayed.NewQueue("example-checked", rdb).Delay(Welcome, "forty-two", "en")
	var misfit *delayed.ArgumentError
	if errors.As(err, &misfit) {
		fmt.Printf("argument %d: expected %s, found %s\n", misfit.Index+1, misfit.Want, misfit.Got)
	}
	// Output: argument 1: expected int64, found string
}

// Options come before the call, so that they do not mix with the function's arguments.
func ExampleQueue_With() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-options", rdb)
	ref, err := q.With(delayed.In(time.Hour), delayed.MaxRetry(5), delayed.TaskID("welcome-42")).Delay(Welcome, 42,
		"en")
	fmt.Println(ref, err)
	pending, _ := q.Len(context.Background())
	fmt.Println(pending, "pending")
	// Output:
	// example-options/welcome-42 <nil>
	// 0 pending
}

// Many calls cost little more than one.
func ExampleQueue_DelayMany() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-many", rdb)
	refs, err := q.DelayMany(context.Background(), delayed.Call(Welcome, 1, "en"), delayed.Call(Welcome, 2, "de"))
	fmt.Println(len(refs), err)
	// Output: 2 <nil>
}

// A function that this program does not link is named by its path.
func ExampleNewGoTask() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-path", rdb)
	_, err := q.Enqueue(context.Background(), delayed.NewGoTask("example.com/app/mail.Welcome", 42, "en"))
	fmt.Println(err)
	// Output: <nil>
}

// A Python worker, such as that of keakon's package delayed, runs mail/tasks.py's function welcome.
func ExampleNewPyTask() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-python", rdb)
	task := delayed.NewPyTask("mail.tasks:welcome", []any{42}, map[string]any{"lang": "en"})
	_, err := q.With(delayed.MaxRetry(3)).Enqueue(context.Background(), task)
	fmt.Println(err)
	// Output: <nil>
}

// While a call waits or runs, the same call is refused, unless the caller asks for the existing task.
func ExampleUnique() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-unique", rdb).With(delayed.Unique(time.Hour))
	first, _ := q.Delay(Welcome, 42, "en")
	_, err := q.Delay(Welcome, 42, "en")
	var duplicate *delayed.DuplicateError
	fmt.Println(errors.As(err, &duplicate) && duplicate.ID == first.ID())

	again, err := q.With(delayed.OnConflict(delayed.ConflictSkip)).Delay(Welcome, 42, "en")
	fmt.Println(again.ID() == first.ID(), err)

	_, err = q.Delay(Welcome, 43, "en") // another call
	fmt.Println(err)
	// Output:
	// true
	// true <nil>
	// <nil>
}

// The tasks of one invoice run one after the other, and the last call counts.
func ExampleUniqueKey() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-key", rdb)
	invoice := q.With(delayed.UniqueKey("invoice:17", time.Hour), delayed.In(time.Minute),
		delayed.OnConflict(delayed.ConflictReplace))
	for _, lang := range []string{"en", "de", "fr"} {
		if _, err := invoice.Delay(Welcome, 17, lang); err != nil {
			panic(err)
		}
	}
	_, err := q.With(delayed.UniqueKey("invoice:17", time.Hour)).Delay(Welcome, 17, "it")
	fmt.Println(errors.Is(err, delayed.ErrDuplicate))
	// Output: true
}

// A function may be unique by default. With UntilStart, a call that comes while it runs is not lost: the function runs
// once more.
func ExampleUntilStart() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-until-start", rdb)
	refresh := delayed.Func(func() {}, delayed.Name("example.refresh"),
		delayed.Unique(time.Hour), delayed.UntilStart(), delayed.OnConflict(delayed.ConflictSkip))
	first, _ := q.Delay(refresh)
	second, _ := q.Delay(refresh)
	fmt.Println(first.ID() == second.ID())
	// Output: true
}

// However often a document is saved, it is indexed once, a while after the last change.
func ExampleDebounce() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	indexed := make(chan int, 1)
	index := delayed.Func(func(_ string, revision int) { indexed <- revision }, delayed.Name("example.index"))
	q := delayed.NewQueue("example-debounce", rdb)
	for revision := 1; revision <= 10; revision++ {
		document := q.With(delayed.Debounce(50*time.Millisecond), delayed.UniqueKey("index:readme", time.Hour))
		if _, err := document.Delay(index, "readme", revision); err != nil {
			panic(err)
		}
	}
	w, _ := delayed.NewWorker(rdb,
		delayed.WorkerConfig{Queues: delayed.Strict{"example-debounce"}, Logger: delayed.SlogLogger(quietLog())})
	if err := w.Register(index); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()
	fmt.Println("revision", <-indexed)
	stop()
	fmt.Println(<-stopped)
	// Output:
	// revision 10
	// <nil>
}

// An id can be used only once: the task of a payment runs once, however often the payment is announced.
func ExampleTaskID() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-id", rdb)
	for range 2 {
		_, err := q.With(delayed.TaskID("payment-17")).Delay(Welcome, 17, "en")
		fmt.Println(errors.Is(err, delayed.ErrDuplicate))
	}
	// Output:
	// false
	// true
}

// The urgent task goes first.
func ExampleFront() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-front", rdb)
	ran := make(chan string, 2)
	run := delayed.Func(func(name string) { ran <- name }, delayed.Name("example.run"))
	for _, queue := range []*delayed.Queue{q, q.With(delayed.Front())} {
		if _, err := queue.Delay(run, fmt.Sprint("first enqueued: ", queue == q)); err != nil {
			panic(err)
		}
	}
	w, _ := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-front"}, Concurrency: 1, Limits: delayed.WorkerLimits{StopWhenEmpty: true},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err := w.Register(run); err != nil {
		panic(err)
	}
	fmt.Println(w.Run(context.Background()))
	fmt.Println(<-ran)
	fmt.Println(<-ran)
	// Output:
	// <nil>
	// first enqueued: false
	// first enqueued: true
}

// Index takes any number of ids, so that many calls can become one.
func Index(tenant string, ids ...int) {
	fmt.Println("index", tenant, ids)
	called <- struct{}{}
}

// Calls that follow one another within the grace run as one, as soon as there are no more or there are enough of them.
func ExampleGroup() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-group", rdb).With(
		delayed.Group("search"), delayed.Gather(delayed.GatherPolicy{Grace: time.Minute, MaxSize: 3}),
	)
	_, _ = q.Delay(Index, "shop", 7, 8)
	_, _ = q.Delay(Index, "shop", 9)
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		panic(err)
	}
	groups, _ := ins.Groups(context.Background(), "example-group")
	for _, g := range groups {
		fmt.Println(g.Size, "calls wait in", g.Key)
	}
	_, _ = q.Delay(Index, "shop", 10) // the third
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-group"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Index); err != nil {
		panic(err)
	}
	runOne(w)
	// Output:
	// 2 calls wait in search
	// index shop [7 8 9 10]
}

// Charge fails for customers that it does not know.
func Charge(customer string, cents int64) error {
	if customer == "" {
		return errors.New("no customer")
	}
	fmt.Println("charged", customer, cents)
	called <- struct{}{}
	return nil
}

// A task that has failed for good waits in the archive, until somebody runs it again, perhaps with other arguments.
func ExampleRef_RunAgainWith() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	ctx := context.Background()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-archive"}, ArchiveMax: 1000, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Charge); err != nil {
		panic(err)
	}
	q := delayed.NewQueue("example-archive", rdb)
	ref, err := q.With(delayed.MaxRetry(0)).Delay(Charge, "", 995)
	if err != nil {
		panic(err)
	}
	go func() {
		for { // until the task is there
			tasks, _, err := q.Archived(ctx, 0, 10)
			if err != nil {
				panic(err)
			}
			for _, task := range tasks {
				fmt.Println(task.State, task.Error, task.ID == ref.ID())
				if err := q.Ref(task.ID).RunAgainWith(ctx, delayed.Call(Charge, "Ada", 995)); err != nil {
					panic(err)
				}
				return
			}
		}
	}()
	runOne(w)
	// Output:
	// archived no customer true
	// charged Ada 995
}

// Middleware notes who was charged, although it does not know the function: argument 0 is the customer.
func ExampleTask_Arg() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-arg"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	err = w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
			var customer string
			if err := t.Arg(0, &customer); err != nil {
				return err
			}
			fmt.Println("customer", customer, "with", t.Options())
			return next(ctx, t)
		}
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Charge); err != nil {
		panic(err)
	}
	q := delayed.NewQueue("example-arg", rdb)
	if _, err := q.With(delayed.MaxRetry(3), delayed.Header("tenant", "shop")).Delay(Charge, "Ada", 995); err != nil {
		panic(err)
	}
	runOne(w)
	// Output:
	// customer Ada with [MaxRetry(3) Header("tenant", "shop")]
	// charged Ada 995
}

// Remind waits for its context, as a long handler should.
func Remind(ctx context.Context, userID int64) error {
	fmt.Println("reminding", userID)
	called <- struct{}{}
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	return ctx.Err()
}

// A task is canceled by its id, which any process may have kept.
func ExampleRef_Cancel() {
	ctx := context.Background()
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-cancel", rdb).With(delayed.KeepResult(time.Hour))
	later, err := q.With(delayed.In(24*time.Hour)).Delay(Remind, 41)
	if err != nil {
		panic(err)
	}
	now, err := q.Delay(Remind, 42)
	if err != nil {
		panic(err)
	}
	if err := q.Ref(later.ID()).Cancel(ctx); err != nil { // it never runs
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-cancel"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Remind); err != nil {
		panic(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- w.Run(running) }()
	<-called
	if err := now.Cancel(ctx); err != nil {
		panic(err)
	}
	err = now.Wait(ctx)
	fmt.Println(errors.Is(err, delayed.ErrCanceled))
	stop()
	if err := <-ended; err != nil {
		panic(err)
	}
	// Output:
	// reminding 42
	// delayed: task was canceled
	// true
}

// Thumbnail returns what its caller may wait for.
func Thumbnail(path string, width int) (string, error) {
	if width <= 0 {
		return "", errors.New("no width")
	}
	return fmt.Sprintf("%s-%d.png", path, width), nil
}

// A function's result is kept for callers that wait for it, in this process or another.
func ExampleAwait() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-await"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Thumbnail); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()

	q := delayed.NewQueue("example-await", rdb).With(delayed.KeepResult(time.Hour), delayed.MaxRetry(0))
	ref, err := q.Delay(Thumbnail, "cat", 64)
	if err != nil {
		panic(err)
	}
	name, err := delayed.Await[string](ctx, ref)
	fmt.Println(name, err)

	// A caller that has only the id can wait as well, and a failure is returned as an error.
	ref, err = q.Delay(Thumbnail, "dog", 0)
	if err != nil {
		panic(err)
	}
	err = q.Ref(ref.ID()).Wait(ctx)
	var failed *delayed.TaskError
	if errors.As(err, &failed) {
		fmt.Println(failed.State, failed.Text)
	}
	stop()
	if err := <-stopped; err != nil {
		panic(err)
	}
	// Output:
	// cat-64.png <nil>
	// archived no width
}

// Import reports its progress.
func Import(ctx context.Context, rows int64) error {
	for i := range rows {
		// Others read at most ten reports a second, and the last one.
		if err := delayed.Progress(ctx, i+1, rows, "importing"); err != nil {
			return err
		}
	}
	return nil
}

// A task's progress can be read while the task runs and, if its result is kept, afterwards.
func ExampleProgress() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-progress"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Import); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()

	q := delayed.NewQueue("example-progress", rdb)
	ref, err := q.With(delayed.KeepResult(time.Hour)).Delay(Import, 1000)
	if err != nil {
		panic(err)
	}
	if err := ref.Wait(ctx); err != nil {
		panic(err)
	}
	done, total, note, err := q.Ref(ref.ID()).Progress(ctx)
	fmt.Println(done, total, note, err)
	stop()
	if err := <-stopped; err != nil {
		panic(err)
	}
	// Output: 1000 1000 importing <nil>
}

// errNoSuchUser is permanent: trying again does not help.
var errNoSuchUser = errors.New("no such user")

// Deliver decides by its error what happens to the task.
func Deliver(_ context.Context, userID int) error {
	switch userID {
	case 1:
		return delayed.Snooze(time.Minute) // not yet
	case 2:
		return delayed.Archive(fmt.Errorf("user %d: %w", userID, errNoSuchUser)) // never
	case 3:
		return delayed.Drop(nil) // not needed any more
	case 4:
		return delayed.RetryIn(30*time.Second, errors.New("rate limit")) // as the server says
	}
	return errors.New("connection refused") // after the usual backoff
}

func handle(userID int) {
	err := Deliver(context.Background(), userID)
	fmt.Println(userID, err)
}

// A handler decides by its error.
func ExampleArchive() {
	for userID := range 5 {
		handle(userID)
	}
	fmt.Println(errors.Is(Deliver(context.Background(), 2), errNoSuchUser), delayed.Archive(nil))
	// Output:
	// 0 connection refused
	// 1 delayed: snoozed for 1m0s
	// 2 user 2: no such user
	// 3 delayed: dropped
	// 4 rate limit
	// true <nil>
}

// Retries after a minute, five minutes, and then every hour for a day.
func ExampleBackoff() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-backoff", rdb)
	patient := q.With(delayed.Backoff(time.Minute, 5*time.Minute, time.Hour),
		delayed.RetryUntil(time.Now().Add(24*time.Hour)))
	_, err := patient.Delay(Deliver, 42)
	fmt.Println(err)
	_, err = q.With(delayed.Backoff(-time.Minute)).Delay(Deliver, 42)
	fmt.Println(strings.TrimPrefix(err.Error(), delayed.ErrArguments.Error()))
	// Output:
	// <nil>
	// : option Backoff(-1m0s): expected no negative delay, found -1m0s as number 1
}

// Report has its own settings for retries.
var Report = delayed.Func(func(ctx context.Context, day string) error {
	<-ctx.Done() // it takes too long
	fmt.Println("report of", day, "ends:", context.Cause(ctx))
	called <- struct{}{}
	return ctx.Err()
}, delayed.Name("reports.Daily"), delayed.Timeout(10*time.Millisecond),
	delayed.BackoffFunc(func(retried int, err error) time.Duration {
		if errors.Is(err, delayed.ErrTimeout) {
			return time.Hour // when there is less to do
		}
		return time.Duration(retried+1) * time.Minute
	}), delayed.MaxBackoff(2*time.Hour))

func ExampleTimeout() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-timeout", rdb)
	if _, err := q.Delay(Report, "2025-01-02"); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-timeout"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Report); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: report of 2025-01-02 ends: delayed: handler takes too long
}

// A code that is valid for five minutes is not sent later.
func ExampleTTL() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-ttl", rdb).With(delayed.TTL(5*time.Minute),
		delayed.Deadline(time.Now().Add(10*time.Minute)))
	_, err := q.Delay(Deliver, 42)
	fmt.Println(err)
	// Output: <nil>
}

// A worker whose handlers do not return stops, so that its process can be restarted.
func ExampleStuckError() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	forever := make(chan struct{})
	// it takes no context, so it does not notice its timeout
	wait := delayed.Func(func() { <-forever }, delayed.Name("example.Wait"))
	if _, err := delayed.NewQueue("example-stuck", rdb).Delay(wait); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-stuck"}, Timeout: time.Millisecond, StuckAfter: 10 * time.Millisecond,
		MaxStuck: -1,
		Logger:   delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(wait); err != nil {
		panic(err)
	}
	err = w.Run(context.Background())
	var stuck *delayed.StuckError
	fmt.Println(errors.As(err, &stuck), stuck.Funcs)
	close(forever) // a program would exit now
	for w.Status().State != state.Stopped {
		runtime.Gosched()
	}
	// Output: true [example.Wait]
}
