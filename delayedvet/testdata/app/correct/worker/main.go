// Command worker has ten calls that look like mistakes.
package main

import (
	"context"
	"log"
	"os/exec"

	"github.com/godelayed/delayed"

	"example.com/app/handlers"
)

type job struct{ name string }

// Run has an accepted signature; Skip has not, and is left out.
func (j *job) Run(ctx context.Context, n int) error { return exec.CommandContext(ctx, j.name).Run() }

func (j *job) Skip(done chan int) {}

func local(int) {}

var sum = func(s *handlers.Store) *delayed.Function { return delayed.Func(s.Sum, delayed.Name("store.sum")) }

func start(w *delayed.Worker, s *handlers.Store) error {
	if err := w.Register(handlers.Confirm, handlers.Ship, handlers.MergeIDs); err != nil {
		return err
	}
	total := delayed.Func(s.Sum, delayed.Name("store.total"))
	if err := w.Register(total, delayed.Func(local, delayed.Name("local"))); err != nil {
		return err
	}
	if err := w.RegisterMethods(s); err != nil {
		return err
	}
	if err := w.RegisterMethods(&job{}); err != nil {
		return err
	}
	return w.Register(handlers.Look, handlers.Single)
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
	q, elsewhere := delayed.NewQueue("shop", rdb), delayed.NewQueue("media", rdb)
	if _, err := q.Delay(handlers.Reindex, "berlin", 1); err != nil { // registered as Single
		log.Fatal(err)
	}
	if _, err := q.Delay((*job).Run, 1); err != nil { //delayed:allow there is one program only
		log.Fatal(err)
	}
	if _, err := q.Delay(delayed.Func(local, delayed.Name("local")), 1); err != nil {
		log.Fatal(err)
	}
	if _, err := elsewhere.Delay(handlers.Thumbnail, "a.png", 1, 1); err != nil {
		log.Fatal(err)
	}
	many := []handlers.OrderID{1, 2}
	if _, err := q.With(delayed.Group("index")).Delay(handlers.Reindex, "berlin", many); err != nil {
		log.Fatal(err)
	}
	log.Print(w.Run(context.Background()))
}
