// Custom-logger sends a worker's log to a logger of your own: a logrus.Logger, or any handler of log/slog. It brings
// its own Redis; in directory examples:
//
//	go run ./custom-logger logrus
//	go run ./custom-logger slog
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
)

// logger returns what WorkerConfig.Logger takes.
func logger(kind string) (logrus.FieldLogger, error) {
	switch kind {
	case "logrus":
		l := logrus.New()
		l.SetFormatter(&logrus.JSONFormatter{})
		l.SetLevel(logrus.DebugLevel)
		return l.WithField("service", "shop"), nil // each line carries it
	case "slog":
		h := slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})
		return delayed.SlogLogger(h.WithAttrs([]slog.Attr{slog.String("service", "shop")})), nil
	}
	return nil, fmt.Errorf("unknown logger %q: expected logrus or slog", kind)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: custom-logger logrus|slog")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(kind string) error {
	logger, err := logger(kind)
	if err != nil {
		return err
	}
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		return err
	}
	defer server.Close()

	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()

	// It fails at first, so that there is something to log.
	attempts := 0
	resize := delayed.Func(func(photo string) error {
		if attempts++; attempts == 1 {
			return errors.New("the disk is full")
		}
		fmt.Println("resized", photo, "at attempt", attempts)
		stop()
		return nil
	}, delayed.Name("photos.Resize"))

	if _, err := delayed.NewQueue("photos", server.Redis()).Delay(resize, "harbour.jpg"); err != nil {
		return err
	}
	worker, err := delayed.NewWorker(server.Redis(), delayed.WorkerConfig{
		Queues:  delayed.Strict{"photos"},
		Logger:  logger,
		Backoff: func(int) time.Duration { return 100 * time.Millisecond },
	})
	if err != nil {
		return err
	}
	if err := worker.Register(resize); err != nil {
		return err
	}
	return worker.Run(ctx)
}
