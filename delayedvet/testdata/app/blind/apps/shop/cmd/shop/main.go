// Command shop serves the site.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/shop/orders"
	"example.com/app/blind/apps/shop/site"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("shop ended", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rdb, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	pages, err := site.New(rdb.WithPrefix("shop:"), orders.NewStore(), log)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: ":8080", Handler: pages.Routes(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), <-failed)
}
