// Dependencies shows handlers that need more than their arguments: a database, a mail server, a logger. They are
// methods: the worker registers a value that has what they need, and the producer only names the method. It brings its
// own Redis; in directory examples:
//
// \tgo run ./dependencies
//
//	go run ./dependencies
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"sync"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
	"github.com/godelayed/delayed/examples/dependencies/shop"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		return err
	}
	defer server.Close()

	// The producer has neither database nor mail server, and needs none: it uses (*shop.Mailer).Confirm only as a name.
	queue := delayed.NewQueue("shop", server.Redis())
	for _, order := range []int{1, 2} {
		if _, err := queue.Delay((*shop.Mailer).Confirm, order); err != nil {
			return err
		}
	}

	// The worker has both.
	var unsent sync.WaitGroup
	unsent.Add(2)
	mailer := &shop.Mailer{
		Orders: shop.Database{1: "ann@example.com", 2: "bob@example.com"},
		Send: func(_ context.Context, to, text string) error {
			fmt.Printf("mail to %s: %s\n", to, text)
			unsent.Done()
			return nil
		},
	}
	worker, err := delayed.NewWorker(server.Redis(), delayed.WorkerConfig{
		Queues: delayed.Strict{"shop"},
		Logger: delayed.SlogLogger(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	// Every exported method that a task can call is registered.
	if err := worker.RegisterMethods(mailer); err != nil {
		return err
	}

	// An ordinary worker runs for ever. This one ends when both mails are sent.
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	go func() {
		unsent.Wait()
		stop()
	}()
	return worker.Run(ctx)
}
