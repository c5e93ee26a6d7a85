// Command both delays tasks and runs them.
package main

import (
	"context"
	"log"

	"github.com/godelayed/delayed"

	"example.com/app/cmd/setup"
	"example.com/app/mail"
)

func main() {
	rdb, err := delayed.Dial("redis://localhost")
	if err != nil {
		log.Fatal(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"mail"},
		Schedulers: []delayed.SchedulerConfig{
			{Queue: "mail", Owner: "x", Entries: []delayed.Entry{{
				Name: "p", Spec: "@daily",
				Task: delayed.Call(mail.Pause, 0), // want `mail.Pause: expected the worker of this program to have it`
			}}},
			{Queue: "other", Owner: "x", Entries: []delayed.Entry{{
				Name: "p", Spec: "@daily",
				Task: delayed.Call(mail.Pause, 0), // another program serves this queue
			}}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Register(mail.Welcome); err != nil {
		log.Fatal(err)
	}
	if err := setup.Register(w); err != nil {
		log.Fatal(err)
	}
	if err := produce(rdb, delayed.NewQueue("mail", rdb)); err != nil {
		log.Fatal(err)
	}
	log.Fatal(w.Run(context.Background()))
}

func own(int) {}

func produce(rdb *delayed.Store, given *delayed.Queue) (err error) {
	q, other := delayed.NewQueue("mail", rdb), delayed.NewQueue("other", rdb)
	_, err = q.Delay(mail.Welcome, 42, "en")
	_, err = q.Delay(mail.Digest)             // registered by package setup
	_, err = q.Delay((*mail.Mailer).Send, 42) // the same
	_, err = q.Delay(mail.Mailer.Copy, "x")   // the same
	_, err = q.Delay(mail.SumInts, 1, 2)      // the same
	_, err = q.Delay(mail.Level, 1)           // want `mail.Level: expected the worker of this program to have it registered, found it delayed only; give it to Register`
	_, err = given.Delay(mail.Level, 1)       // want `mail.Level: expected the worker of this program`
	_, err = other.Delay(mail.Level, 1)       // another program serves this queue
	_, err = other.With().Delay(mail.Level, 1)
	_, err = q.Delay(own, 1) // want `main.own: expected a function of a package that workers can import` `main.own: expected the worker of this program`
	return err
}
