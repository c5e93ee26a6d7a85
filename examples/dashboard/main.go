// Dashboard shows the pages of package web with a shop that works behind them. It needs nothing but Go:
//
//	go run ./examples/dashboard
//
// Open the address that it prints; Ctrl-C ends it. With REDIS_URL set it uses that Redis, and leaves nothing behind.
//
// Package shop has functions that are fast, slow, fail, panic, report progress, or return something. traffic.go delays
// calls of them, and workers.go runs them.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8090", "address of the dashboard")
	flag.Parse()
	if err := run(*listen); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

func run(listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis, cleanUp, err := openRedis(ctx)
	if err != nil {
		return err
	}
	defer cleanUp()
	return errors.Join(serve(ctx, redis, listen)...)
}

// serve runs workers, traffic and pages side by side until ctx ends, or one of them fails.
func serve(ctx context.Context, redis *delayed.Store, listen string) (errs []error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error)
	parts := append(workers(redis), func(ctx context.Context) error { return traffic(ctx, redis) },
		func(ctx context.Context) error { return pages(ctx, redis, listen) })
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	for range parts {
		errs = append(errs, <-ended)
		stop() // no part ends before the others
	}
	return errs
}

// pages serves the dashboard, below a path of a program that has other pages too.
func pages(ctx context.Context, redis *delayed.Store, listen string) error {
	// A program that knows its users sets Config.Authorize instead.
	secret := rand.Text()
	dashboard, err := web.New(redis, web.Config{ //nolint:contextcheck // it lives until Close
		Tokens: []web.Token{{User: web.User{Name: "you", Role: web.Admin}, Secret: secret}},
		Title:  "demo",
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/queues/", http.StripPrefix("/queues", dashboard))
	mux.Handle("/{$}", http.RedirectHandler("/queues/", http.StatusFound))

	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(err, dashboard.Close())
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	fmt.Printf("\nThe dashboard is at http://%s/queues/login#%s\nCtrl-C ends it.\n", listener.Addr(), secret)
	select {
	case err = <-done:
		return errors.Join(err, dashboard.Close())
	case <-ctx.Done():
	}
	// Live pages end first: they would keep their connections.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(dashboard.Close(), server.Shutdown(late))
}
