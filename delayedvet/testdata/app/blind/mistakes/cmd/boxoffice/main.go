// Command boxoffice is the site and the worker of the ticket office.
package main

import (
	"context"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/mistakes/mail"
	"example.com/app/blind/mistakes/media"
	"example.com/app/blind/mistakes/search"
	"example.com/app/blind/mistakes/typed"
)

var poster = delayed.Func(media.Poster, delayed.Name("poster"), delayed.Optional(3)) // want `poster: expected Optional of 0 to 2`

func entries() []delayed.Entry {
	return []delayed.Entry{{
		Name: "digest", Spec: "@daily", Zone: "Europe/Berlin",
		Task: delayed.Call(mail.Digest, "berlin"), // want `mail.Digest: expected 2 arguments .string, string., found 1`
	}, {
		Name: "boost", Spec: "@every 10m",
		Task:    delayed.Call(search.Boost, 1, 1),
		Options: []delayed.Option{delayed.MaxRetry(1), delayed.In(time.Minute)}, // want `periodic entry: expected options that hold for every tick, found In: the entry says when its tasks run`
	}}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	rdb, err := delayed.Dial("redis://localhost:6379")
	if err != nil {
		return err
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues:     delayed.Strict{"office"},
		Schedulers: []delayed.SchedulerConfig{{Queue: "office", Owner: "boxoffice", Entries: entries()}},
	})
	if err != nil {
		return err
	}
	w.Register(mail.Digest, search.Boost) // want `expected the error of Register to be read`
	if err := w.Register(mail.Confirm, poster); err != nil {
		return err
	}
	if err := w.Register(exec.Command); err != nil { // want `os/exec.Command: expected a function that is safe`
		return err
	}
	w.RegisterMethods(&mail.Mailer{Service: "smtp"}) // want `expected the error of RegisterMethods to be read`
	q := delayed.NewQueue("office", rdb)
	if _, err := q.Delay(mail.Confirm, 1, "en"); err != nil {
		return err
	}
	if _, err := q.Delay(mail.Hold, 1, 10); err != nil { // want `mail.Hold: expected the worker of this program to have it registered`
		return err
	}
	if _, err := typed.Remind.Delay(q, 1, time.Hour); err != nil { // want `mail.Remind: expected the worker of this program to have it registered`
		return err
	}
	return w.Run(ctx)
}
