// Command worker runs the calls that service.py, a Python program, has delayed.
//
//	REDIS_URL=redis://localhost:6379/0 go run ./python-producer/worker
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/godelayed/delayed"
)

// Size receives the dict {'Width': 320, 'Height': 200} of Python.
type Size struct {
	Width, Height int
}

func resize(_ context.Context, photo string, size Size) error {
	fmt.Printf("go: resize %s to %d x %d\n", photo, size.Width, size.Height)
	return nil
}

func tag(photo string, tags ...string) {
	fmt.Printf("go: tag %s as %s\n", photo, strings.Join(tags, ", "))
}

func forget(photo string) { fmt.Println("go: forget", photo) }

func tidy() { fmt.Println("go: tidy up") }

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	rdb, err := delayed.Dial(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379/0"))
	if err != nil {
		return err
	}
	defer rdb.Close()

	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"go-jobs"},
		// A Python task that was put on the wrong queue goes to the right one.
		PythonQueue: "py-jobs",
	})
	if err != nil {
		return err
	}
	// The functions have names of their own, so that Python programs need not change when a Go package is renamed.
	err = w.Register(
		delayed.Func(resize, delayed.Name("images.Resize")),
		delayed.Func(tag, delayed.Name("images.Tag")),
		delayed.Func(forget, delayed.Name("images.Forget")),
		delayed.Func(tidy, delayed.Name("images.Tidy")),
	)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return w.Run(ctx)
}
