// Graceful-shutdown shows what becomes of running tasks when a program of your own, rather than workermain, must stop.
// It needs Redis on localhost, or REDIS_URL set. In directory examples:
//
//	go run ./graceful-shutdown
//
// Press Ctrl-C once it has begun, and see how each task ends; a second Ctrl-C would end the program at once. Started
// again, it goes on with the film. With the argument deaf it also runs a task that does not care.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/godelayed/delayed"
)

// The functions have names of their own, since functions of package main are called main.something in every program.
var (
	sendMail = delayed.Func(mail, delayed.Name("example.SendMail"))
	cutFilm  = delayed.Func(film, delayed.Name("example.CutFilm"))
	dream    = delayed.Func(deaf, delayed.Name("example.Dream"))
)

// mail takes a moment: it is done well within the worker's Grace.
func mail(to string) {
	fmt.Println("mail to", to, "begins")
	time.Sleep(time.Second)
	fmt.Println("mail to", to, "is sent")
}

// film takes long, so it watches its context, which is canceled when Grace is over. It must then return soon; whatever
// it returns, the task is given back, costs no retry, and runs again elsewhere or later.
func film(ctx context.Context, title string) error {
	fmt.Println("film", title, "begins")
	select {
	case <-time.After(time.Hour):
		return nil
	case <-ctx.Done():
		fmt.Println("film", title, "is given back:", context.Cause(ctx))
		return context.Cause(ctx)
	}
}

// deaf does not watch a context, and nothing within its process can stop it.
func deaf() {
	fmt.Println("dream begins")
	time.Sleep(time.Hour)
}

func main() {
	err := run()
	var running *delayed.StillRunningError
	switch {
	case errors.As(err, &running):
		// Their tasks stay claimed. Once this process has ended and its heartbeat has expired, other workers run them
		// again.
		fmt.Println("still running:", running.Funcs)
		os.Exit(3)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println("stopped cleanly")
}

func run() error {
	redis, err := delayed.Dial(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379/0"))
	if err != nil {
		return err
	}
	defer redis.Close()

	worker, err := delayed.NewWorker(redis, delayed.WorkerConfig{
		Queues:      delayed.Strict{"example-shutdown"},
		Grace:       2 * time.Second, // for handlers to end by themselves; 25 s by default
		CancelGrace: time.Second,     // for handlers whose contexts were canceled then; 3 s by default
		Logger:      delayed.SlogLogger(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	if err := worker.Register(sendMail, cutFilm, dream); err != nil {
		return err
	}
	if err := produce(delayed.NewQueue("example-shutdown", redis)); err != nil {
		return err
	}

	// The library leaves signals to the program. This context ends with the first; then stop brings back the usual
	// effect of signals, so that a second one ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	return worker.Run(ctx)
}

// produce delays tasks. A film that an earlier run has given back is still in the queue.
func produce(queue *delayed.Queue) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	left, err := queue.Len(ctx)
	if err != nil {
		return err
	}
	if left == 0 {
		if _, err := queue.DelayContext(ctx, cutFilm, "Metropolis"); err != nil {
			return err
		}
	}
	if len(os.Args) > 1 && os.Args[1] == "deaf" {
		if _, err := queue.DelayContext(ctx, dream); err != nil {
			return err
		}
	}
	_, err = queue.DelayContext(ctx, sendMail, "ann@example.com")
	return err
}
