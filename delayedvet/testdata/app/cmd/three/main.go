// Command three is a worker that delays what it does not know.
package main

import (
	"context"
	"log"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/workermain"

	"example.com/app/mail"
)

func main() {
	rdb, err := delayed.Dial("redis://localhost")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := delayed.NewQueue("mail", rdb).Enqueue(context.Background(), delayed.Call(mail.Level, 1)); err != nil { // want `mail.Level: expected the worker of this program`
		log.Fatal(err)
	}
	workermain.Main(mail.Welcome, mail.Digest)
}
