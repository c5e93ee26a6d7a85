// Command elsewhere registers functions that nobody can tell from its source.
package main

import (
	"log"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

func functions() []any { return []any{mail.Level} }

func main() {
	rdb, err := delayed.Dial("redis://localhost")
	if err != nil {
		log.Fatal(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Weighted{"mail": 1}})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Register(functions()...); err != nil {
		log.Fatal(err)
	}
	if _, err := delayed.NewQueue("mail", rdb).Delay(mail.Level, 1); err != nil {
		log.Fatal(err)
	}
}
