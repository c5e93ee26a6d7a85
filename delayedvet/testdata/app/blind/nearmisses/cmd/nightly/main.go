// Command nightly works at night, and leaves to the desks what is theirs.
package main

import (
	"context"
	"log"
	"os"

	"github.com/godelayed/delayed"

	"example.com/app/blind/nearmisses/exec"
	"example.com/app/blind/nearmisses/jobs"
	"example.com/app/blind/nearmisses/loans"
)

func main() {
	rdb, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Weighted{"night": 1}, Limits: delayed.WorkerLimits{StopWhenEmpty: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := jobs.Night(w); err != nil {
		log.Fatal(err)
	}
	night, desk := delayed.NewQueue("night", rdb), delayed.NewQueue("desk", rdb)
	if _, err := night.Delay(exec.Label, 17); err != nil { // right: registered in a loop
		log.Fatal(err)
	}
	if _, err := desk.Delay(loans.Prolong, 17, 1); err != nil { // right: the queue of other workers
		log.Fatal(err)
	}
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
