package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/examples/quickstart/photos"
)

// work is the main function of a worker process. It runs the tasks of a queue until its standard input ends: the
// quickstart closes it at the end, and if the quickstart itself were killed, the system would.
func work(queue string) error {
	redis, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer redis.Close()

	worker, err := delayed.NewWorker(redis, delayed.WorkerConfig{
		Queues:      delayed.Strict{queue},
		Concurrency: 1, // so that a killed worker has one task in hand
		// Much shorter than the defaults, so that you need not wait long until others notice a worker's death.
		HeartbeatLife: time.Second,
		SweepInterval: 250 * time.Millisecond,
		Logger:        delayed.SlogLogger(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	// The functions that tasks may call. Workers call no others.
	if err := worker.Register(photos.Fetch, photos.Thumbnail, photos.Report); err != nil {
		return err
	}

	signal.Ignore(os.Interrupt) // Ctrl-C reaches all processes, and is for the quickstart to handle
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return worker.Run(ctx)
}
