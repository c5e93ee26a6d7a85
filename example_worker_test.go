package delayed_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
)

// Sum is generic; all its instances have the same path, so each needs a name.
func Sum[T int | float64](values ...T) {
	var sum T
	for _, v := range values {
		sum += v
	}
	fmt.Println("sum", sum)
	called <- struct{}{}
}

// SumInts is used by both producer and worker.
var SumInts = delayed.Func(Sum[int], delayed.Name("sum.int"), delayed.Alias("old/path.SumInts"), delayed.MaxRetry(5))

func ExampleFunc() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-func", rdb)
	if _, err := q.Delay(SumInts, 1, 2, 3); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-func"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(SumInts); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: sum 6
}

// Mailer is a handler with a dependency.
type Mailer struct{ from string }

// Send is delayed as (*Mailer).Send; the worker provides the receiver.
func (m *Mailer) Send(_ context.Context, userID int64) error {
	fmt.Println("mail from", m.from, "to", userID)
	called <- struct{}{}
	return nil
}

func ExampleWorker_RegisterMethods() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-methods", rdb)
	if _, err := q.Delay((*Mailer).Send, 42); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-methods"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.RegisterMethods(&Mailer{from: "shop"}); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: mail from shop to 42
}

// While both queues have tasks, the worker takes three mails for each report.
func ExampleWeighted() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	_, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Weighted{"mail": 3, "reports": 1}})
	fmt.Println(err)
	// Output: <nil>
}

// A sweeper without a worker gives back the tasks of dead workers where no worker of this package runs.
func ExampleNewSweeper() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	s, err := delayed.NewSweeper(rdb, delayed.SweeperConfig{
		Queues: []string{"example-legacy"}, Interval: time.Second, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(s.Run(ctx))
	// Output: <nil>
}

// Logs go to a handler of log/slog.
func ExampleSlogLogger() {
	h := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	delayed.SlogLogger(h).WithField("queue", "mail").Warn("task parked")
	// Output: level=WARN msg="task parked" queue=mail
}

// Greet greets.
func Greet(name string) {
	fmt.Println("hello", name)
	called <- struct{}{}
}

// A queue is paused, for example while the mail server is down. Its tasks wait.
func ExampleQueue_Pause() {
	ctx := context.Background()
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-pause", rdb)
	if err := q.Pause(ctx); err != nil {
		panic(err)
	}
	if _, err := q.Delay(Greet, "gopher"); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-pause"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Greet); err != nil {
		panic(err)
	}
	go func() {
		for !w.Status().Connected {
			time.Sleep(time.Millisecond)
		}
		paused, _ := q.Paused(ctx)
		pending, _ := q.Len(ctx)
		fmt.Println("paused:", paused, "pending:", pending)
		if err := q.Resume(ctx); err != nil {
			panic(err)
		}
	}()
	runOne(w)
	// Output:
	// paused: true pending: 1
	// hello gopher
}

// A new version of the program is installed: every worker finishes its tasks and ends, and a process manager starts the
// new version.
func ExampleQueue_Restart() {
	ctx := context.Background()
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	mail := delayed.NewQueue("example-restart-mail", rdb)
	thumbnails := delayed.NewQueue("example-restart-thumbnails", rdb)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Weighted{mail.Name(): 3, thumbnails.Name(): 1},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	for !w.Status().Connected {
		time.Sleep(time.Millisecond)
	}
	if err := thumbnails.SetWeight(ctx, 10); err != nil { // there are many thumbnails to make today
		panic(err)
	}
	for _, q := range []*delayed.Queue{mail, thumbnails} {
		if err := q.Restart(ctx); err != nil {
			panic(err)
		}
	}
	fmt.Println(<-ended, w.Status().StopReason)
	// Output: <nil> restart
}

// A function has moved to another package and takes a second argument now. Its worker runs the tasks of both versions,
// so producers and workers can be replaced in any order.
func ExampleOptional() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-optional", rdb)

	before := delayed.Func(func(userID int64) {}, delayed.Name("mail.Welcome"))
	now := delayed.Func(func(userID int64, lang string) { fmt.Printf("welcome %d in %q\n", userID, lang) },
		delayed.Name("letters.Welcome"), delayed.Alias("mail.Welcome"), delayed.Optional(1))

	if _, err := q.Delay(before, 1); err != nil { // by a producer of the old version
		panic(err)
	}
	if _, err := q.Delay(now, 2, "de"); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-optional"}, Concurrency: 1, Limits: delayed.WorkerLimits{StopWhenEmpty: true},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(now); err != nil {
		panic(err)
	}
	if err := w.Run(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// welcome 1 in ""
	// welcome 2 in "de"
}

// Tasks that no worker knows wait in the queue's list of parked tasks.
func ExampleQueue_Parked() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-parked", rdb)
	ctx := context.Background()
	if _, err := q.Enqueue(ctx, delayed.NewGoTask("example.com/next/version.Greet", "Ada")); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-parked"},
		Limits: delayed.WorkerLimits{StopWhenEmpty: true}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	page, total, err := q.Parked(ctx, 0, 10)
	if err != nil {
		panic(err)
	}
	for _, t := range page {
		fmt.Println(t.Function, "waits:", t.Reason, "until", int(t.Due.Sub(t.At).Round(time.Hour).Hours()/24),
			"days after it was parked")
	}
	fmt.Println("in all:", total)
	// Output:
	// example.com/next/version.Greet waits: unknown function until 7 days after it was parked
	// in all: 1
}

// A worker that does everything there is to do and stops, as for a cron job. Other settings stop it after some tasks,
// after a while, or when the process has grown too large.
func ExampleWorkerConfig_stopWhenEmpty() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-empty", rdb)
	greet := delayed.Func(func(name string) { fmt.Println("hello", name) }, delayed.Name("greet"))
	for _, name := range []string{"Ada", "Grace"} {
		if _, err := q.Delay(greet, name); err != nil {
			panic(err)
		}
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-empty"}, Concurrency: 1, Limits: delayed.WorkerLimits{StopWhenEmpty: true},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(greet); err != nil {
		panic(err)
	}
	fmt.Println("Run:", w.Run(context.Background()), "because:", w.Status().StopReason)
	// Output:
	// hello Ada
	// hello Grace
	// Run: <nil> because: empty
}

// A listener receives events, here those of the worker itself.
func ExampleWorker_OnEvent() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-listen"},
		Limits: delayed.WorkerLimits{MaxTasks: 1, StopWhenEmpty: true}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	err = w.OnEvent(func(e delayed.Event) {
		switch e.Kind {
		case event.WorkerStarted:
			fmt.Println(e.Kind)
		case event.WorkerStopping:
			fmt.Println(e.Kind, "because:", e.Reason)
		default: // later versions may have more kinds
		}
	})
	if err != nil {
		panic(err)
	}
	if err := w.Run(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// worker started
	// worker stopping because: empty
}

// traceparent is the W3C trace context of a context: version, trace, span and flags. OpenTelemetry's propagators do the
// same to a map.
type traceparent struct{}

// inject is for QueueConfig.Inject: tasks carry the trace of the context with which they are enqueued.
func inject(ctx context.Context) map[string]string {
	parent, ok := ctx.Value(traceparent{}).(string)
	if !ok {
		return nil
	}
	return map[string]string{"traceparent": parent}
}

// traced is middleware that runs a task in a span of its own, within the trace that its headers name.
func traced(next delayed.HandlerFunc) delayed.HandlerFunc {
	span := 0
	return func(ctx context.Context, t *delayed.Task) error {
		parts := strings.Split(t.Header("traceparent"), "-")
		if len(parts) == 4 {
			span++ // one task runs at a time here; spans are random numbers elsewhere
			fmt.Printf("span %d of trace %s, child of %s\n", span, parts[1], parts[2])
			ctx = context.WithValue(ctx, traceparent{}, fmt.Sprintf("00-%s-%016x-01", parts[1], span))
		}
		return next(ctx, t)
	}
}

// A trace continues from the producer through a task into a task that this one delays.
func ExampleWorker_Use() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q, err := delayed.OpenQueue("example-traced", rdb, delayed.QueueConfig{Inject: inject})
	if err != nil {
		panic(err)
	}
	bill := delayed.Func(func(ctx context.Context, order int) {
		fmt.Println("bill for order", order)
		called <- struct{}{}
	}, delayed.Name("bill"))
	ship := delayed.Func(func(ctx context.Context, order int) error {
		fmt.Println("ship order", order)
		_, err := q.DelayContext(ctx, bill, order) // ctx brings the trace along
		return err
	}, delayed.Name("ship"))

	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-traced"}, Concurrency: 1, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Use(traced); err != nil {
		panic(err)
	}
	if err := w.Register(ship, bill); err != nil {
		panic(err)
	}
	request := context.WithValue(context.Background(), traceparent{},
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if _, err := q.DelayContext(request, ship, 42); err != nil {
		panic(err)
	}
	runOne(w)
	// Output:
	// span 1 of trace 4bf92f3577b34da6a3ce929d0e0e4736, child of 00f067aa0ba902b7
	// ship order 42
	// span 2 of trace 4bf92f3577b34da6a3ce929d0e0e4736, child of 0000000000000001
	// bill for order 42
}

// A handler that must not charge twice passes the task's key on to the payment service.
func ExampleTaskFromContext() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-task", rdb)
	charge := delayed.Func(func(ctx context.Context, cents int) {
		t := delayed.TaskFromContext(ctx)
		fmt.Println("charge", cents, "under the key", t.IdempotencyKey(), "for", t.Header("tenant"))
		fmt.Println("attempt", t.Attempt(), "of at most", t.MaxRetry()+1)
		called <- struct{}{}
	}, delayed.Name("charge"), delayed.MaxRetry(3))
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-task"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(charge); err != nil {
		panic(err)
	}
	if _, err := q.With(delayed.TaskID("order-42"), delayed.Header("tenant", "shop")).Delay(charge, 995); err != nil {
		panic(err)
	}
	runOne(w)
	// Output:
	// charge 995 under the key order-42 for shop
	// attempt 1 of at most 4
}

// Middleware of one function: here it reports that the last attempt has failed.
func ExampleMiddleware() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-middleware", rdb)
	onLast := func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
			err := next(ctx, t)
			if err != nil && t.Attempt() > t.MaxRetry() {
				fmt.Println("given up:", err)
				called <- struct{}{}
			}
			return err
		}
	}
	fetch := delayed.Func(func(url string) error { return fmt.Errorf("cannot fetch %s", url) },
		delayed.Name("fetch"), delayed.MaxRetry(0), delayed.Middleware(onLast))
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-middleware"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(fetch); err != nil {
		panic(err)
	}
	if _, err := q.Delay(fetch, "https://example.com"); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: given up: cannot fetch https://example.com
}

// Summary is enqueued again and again.
func Summary(kind string) {
	fmt.Println("summary:", kind)
	called <- struct{}{}
}

// Entries that the code declares run together with the worker. Any number of workers may declare the same entries: each
// tick becomes one task.
func ExampleSchedulerConfig() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-periodic"},
		Schedulers: []delayed.SchedulerConfig{{
			Queue: "example-periodic",
			Owner: "shop",
			Entries: []delayed.Entry{
				{Name: "heartbeat", Spec: "@every 1s", Task: delayed.Call(Summary, "heartbeat")},
				{
					Name: "daily", Spec: "30 2 * * *", Zone: "Europe/Berlin", Task: delayed.Call(Summary, "daily"),
					Overlap: delayed.OverlapSkip, Jitter: time.Minute, Options: []delayed.Option{delayed.MaxRetry(3)},
				},
			},
		}},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Summary); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: summary: heartbeat
}

// A scheduler without a worker serves the entries that others have set.
func ExampleNewScheduler() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	s, err := delayed.NewScheduler(rdb,
		delayed.SchedulerConfig{Queue: "example-scheduler", Logger: delayed.SlogLogger(quietLog())})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(s.Run(ctx))
	// Output: <nil>
}

// Entries can be changed from any process while schedulers run.
func ExampleQueue_Periodic() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	ctx := context.Background()
	p := delayed.NewQueue("example-control-periodic", rdb).Periodic()
	err := p.Set(ctx, delayed.Entry{
		Name: "weekly", Spec: "0 6 * * mon", Zone: "Asia/Kolkata",
		Task: delayed.Call(Summary, "weekly"),
	})
	fmt.Println(err)
	ref, err := p.RunNow(ctx, "weekly")
	fmt.Println(ref.ID()[:7], err)
	fmt.Println(p.Pause(ctx, "weekly"))
	entries, err := p.List(ctx)
	for _, e := range entries {
		fmt.Println(e.Name, e.Spec, e.Zone, "paused:", e.Paused, err)
	}
	history, err := p.History(ctx, "weekly")
	fmt.Println(len(history), history[0].ID == ref.ID(), err)
	fmt.Println(p.Remove(ctx, "weekly"))
	// Output:
	// <nil>
	// weekly@ <nil>
	// <nil>
	// weekly 0 6 * * mon Asia/Kolkata paused: true <nil>
	// 1 true <nil>
	// <nil>
}
