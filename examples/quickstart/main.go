// Quickstart shows what delayed does. It takes a few seconds and needs nothing but Go:
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -stay    goes on until Ctrl-C, to be looked at
//
// A small web site (site.go) delays calls of three ordinary functions (package photos). Two worker processes
// (worker.go), which are this program started again, run them. One of the two is killed in the middle of a task, and
// nothing is lost.
//
// With REDIS_URL set it uses that Redis, and leaves nothing behind.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/examples/quickstart/photos"
)

// limit is how long all of it may take, on a machine with other work too. It takes 8 s alone.
const limit = time.Minute

func main() {
	run := func() error { return quickstart(false) }
	switch {
	case len(os.Args) == 3 && os.Args[1] == "worker":
		run = func() error { return work(os.Args[2]) }
	case len(os.Args) == 2 && strings.TrimLeft(os.Args[1], "-") == "stay":
		run = func() error { return quickstart(true) }
	case len(os.Args) > 1:
		run = func() error { return fmt.Errorf("expected no argument or -stay, found %q", os.Args[1:]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func quickstart(stays bool) error {
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(interrupted, limit,
		errors.New("not all tasks were done in time; is the machine very busy?"))
	defer cancel()

	redis, url, cleanUp, err := openRedis(ctx)
	if err != nil {
		return err
	}
	queue := delayed.NewQueue("quickstart-"+rand.Text()[:8], redis) // a new name, so that nobody else has this queue
	defer cleanUp(queue.Name())

	site := openSite(queue)
	defer site.close()

	crew, err := startCrew(url, queue.Name(), "A", "B")
	if err != nil {
		return err
	}
	defer crew.stop()

	// This is all it takes to delay a call: a function and its arguments. What follows from it is delayed in site.go.
	for _, name := range names {
		if _, err := queue.Delay(photos.Fetch, site.url+"/camera/"+name, site.url+"/photos/"+name); err != nil {
			return err
		}
	}
	fmt.Printf("Delayed %d calls of photos.Fetch. Two worker processes run them.\n\n", len(names))

	story := newStory()
	for !story.over() {
		select {
		case visit := <-site.visits:
			worker := crew.find(visit.pid)
			if worker == nil {
				continue
			}
			story.tell(worker, visit.what)
			if visit.what == "half /camera/"+slow && story.victim == nil {
				if err := story.kill(worker); err != nil {
					return err
				}
			}
		case err := <-crew.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	story.summary(site.file("/report"))
	if stays {
		return stay(interrupted, queue, site, crew, url)
	}
	fmt.Print("To look into a queue while it works: go run ./examples/quickstart -stay\n")
	return nil
}
