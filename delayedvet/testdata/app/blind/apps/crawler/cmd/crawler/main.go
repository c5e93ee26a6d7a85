// Command crawler crawls.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/crawler/store"
	"example.com/app/blind/apps/crawler/work"
)

func main() {
	gap := flag.Duration("gap", 2*time.Second, "between two requests to a host")
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *gap); err != nil {
		fmt.Fprintln(os.Stderr, "crawler:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, gap time.Duration) error {
	rdb, err := delayed.Dial(url)
	if err != nil {
		return err
	}
	defer rdb.Close()
	w, err := work.NewWorker(rdb, store.New(), gap)
	if err != nil {
		return err
	}
	q := delayed.NewQueue(work.Queue, rdb)
	if _, err := work.Hello.DelayContext(ctx, q); err != nil {
		return err
	}
	if _, err := q.With(delayed.In(gap)).DelayContext(ctx, work.Warm, "example.com", 3); err != nil {
		return err
	}
	if _, err := q.DelayContext(ctx, (*store.Store).Known, "https://example.com/"); err != nil {
		return err
	}
	return w.Run(ctx)
}
