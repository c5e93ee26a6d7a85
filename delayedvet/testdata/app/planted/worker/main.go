// Command worker has ten mistakes.
package main

import (
	"context"
	"log"
	"os/exec"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/handlers"
)

type job struct{}

func (job) run(int) {}

func local(int) {}

func start(w *delayed.Worker, s *handlers.Store) error {
	if err := w.Register(handlers.Confirm, handlers.Ship, handlers.Confirm); err != nil { // want `found one that is taken already`
		return err
	}
	if err := w.Register((*handlers.Store).Sum); err != nil { // want `found a method expression, whose receiver is missing`
		return err
	}
	if err := w.Register(exec.CommandContext); err != nil { // want `exec.CommandContext: expected a function that is safe`
		return err
	}
	if err := w.Register(handlers.Visit2); err != nil { // want `func\(handlers.Order\) error cannot travel`
		return err
	}
	if err := w.Register(handlers.Login); err != nil { // want `field token of handlers.Session is not exported`
		return err
	}
	w.RegisterMethods(s)            // want `the worker does not know the methods`
	return w.RegisterMethods(job{}) // want `expected an exported method with an accepted signature, found none among 0`
}

func main() {
	rdb, err := delayed.Dial("redis://localhost")
	if err != nil {
		log.Fatal(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"shop"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := start(w, &handlers.Store{}); err != nil {
		log.Fatal(err)
	}
	q := delayed.NewQueue("shop", rdb)
	if _, err := q.Delay(handlers.Reindex, "berlin", 1); err != nil { // want `handlers.Reindex: expected the worker of this program to have it registered`
		log.Fatal(err)
	}
	if err := w.Register(local); err != nil {
		log.Fatal(err)
	}
	if _, err := q.Delay(local, 1); err != nil { // want `main.local: expected a function of a package that workers can import`
		log.Fatal(err)
	}
	if _, err := q.With(delayed.Group("ship")).Delay(handlers.Ship, 1, "dhl", 1); err != nil { // want `handlers.Ship: expected a variadic function or one whose last parameter is a slice`
		log.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Hour)
	defer stop()
	log.Print(w.Run(ctx))
}
