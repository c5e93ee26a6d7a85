package main

import (
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"

	"example.com/app/mail"
)

// The worker of a test is none of the program.
func TestWorker(t *testing.T) {
	rdb := delayedtest.NewRedis(t)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"mail"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(mail.Digest); err != nil {
		t.Fatal(err)
	}
}
