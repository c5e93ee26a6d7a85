// Migrate moves an application from asynq to delayed, step by step, while it runs. docs/MIGRATION.md says when to do
// what. The first command runs tasks of both; the second moves asynq's waiting tasks and deletes asynq's queue.
//
//	go run ./asynq -redis redis://localhost:6379/0 -queue mail
//	go run ./asynq -redis redis://localhost:6379/0 -queue mail -drain
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"github.com/hibiken/asynq"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/itest/asynq/mail"
)

func main() {
	url := flag.String("redis", "redis://localhost:6379/0", "URL of the Redis that holds both queues")
	queue := flag.String("queue", "mail", "name of the queue, in asynq and in delayed")
	drain := flag.Bool("drain", false, "move what waits in asynq, and delete its queue")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *url, *queue, *drain)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, queue string, drain bool) error {
	opt, err := asynq.ParseRedisURI(url)
	if err != nil {
		return err
	}
	rdb, err := delayed.Dial(url)
	if err != nil {
		return err
	}
	defer rdb.Close()
	f := &forwarder{inspector: asynq.NewInspector(opt), queue: delayed.NewQueue(queue, rdb)}
	defer f.inspector.Close()
	if drain {
		moved, err := f.drain(ctx)
		fmt.Println("moved:", moved)
		return err
	}

	// asynq's server only forwards. Its Run would handle signals by itself, so Start.
	old := asynq.NewServer(opt, asynq.Config{Queues: map[string]int{queue: 1}})
	if err := old.Start(f); err != nil {
		return err
	}
	defer old.Shutdown()

	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}})
	if err != nil {
		return err
	}
	if err := w.Register(mail.Welcome); err != nil {
		return err
	}
	return w.Run(ctx)
}
