package delayed_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/godelayed/delayed"
)

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
	q, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: "example-traced", Inject: inject})
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
