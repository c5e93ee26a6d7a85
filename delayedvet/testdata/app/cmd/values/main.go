// Command values registers functions through a function value.
package main

import (
	"log"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

func each(do func(...any) error, fns ...any) error { return do(fns...) }

func main() {
	rdb, err := delayed.Dial("redis://localhost")
	if err != nil {
		log.Fatal(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Weighted{"mail": 1}})
	if err != nil {
		log.Fatal(err)
	}
	if err := each(w.Register, mail.Level); err != nil {
		log.Fatal(err)
	}
	if _, err := delayed.NewQueue("mail", rdb).Delay(mail.Level, 1); err != nil {
		log.Fatal(err)
	}
}
