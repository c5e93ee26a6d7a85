package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// dashboardServer runs the command `dashboard-server`: it serves the dashboard of a Redis server to anybody on this
// machine, as an administrator, until it is told to end, and prints its address.
func dashboardServer(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dashboard-server", flag.ExitOnError)
	_ = flags.Parse(args)
	rdb, err := delayed.Dial("redis://" + flags.Arg(0))
	if err != nil {
		return err
	}
	defer rdb.Close()
	page, err := web.New(rdb, web.Config{
		Authorize: func(*http.Request) (web.User, error) { return web.User{Name: "bench", Role: web.Admin}, nil },
		APIRate:   -1,
	})
	if err != nil {
		return err
	}
	defer page.Close()
	var network net.ListenConfig
	listener, err := network.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: page, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
