// Command bench measures delayed together with other task queues and with a bare prototype of what Redis allows.
//
//	go run . bench     delayed, asynq and the ceiling, on every axis
//	go run . help      the other commands
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// command is one of the program's commands.
type command struct {
	name  string
	about string
	run   func(ctx context.Context, args []string) error
}

var commands = []command{
	{"bench", "delayed, asynq and the ceiling, on every axis (13 min)", benchCommand},
	{"peers", "delayed, asynq, river and JetStream, at the base point and with each durability (10 min)", peersCommand},
	{"guard", "whether the ratios to asynq and the ceiling are still the published ones (2 to 5 min)", guardCommand},
	{"worst", "how long scripts take at sizes that might keep Redis busy for long (3 min)", worstCommand},
	{"inspector", "what it costs to look into a full queue (2 min)", inspectorCommand},
	{"dashboard", "how long pages take with a full queue, and what open pages cost (4 min)", dashboardCommand},
	{"profile", "write the CPU and allocation profiles of a drain or of a producer (15 s)", profileCommand},
	{"publish", "write the tables of docs/PERFORMANCE.md from files that -json wrote", publishCommand},
	{"driver", "produce or work for a peer (bench starts it itself)", driverCommand},
	{"dashboard-server", "serve the dashboard (bench starts it itself)", dashboardServer},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string, usage io.Writer) error {
	if len(args) > 0 {
		for _, c := range commands {
			if c.name == args[0] {
				return c.run(ctx, args[1:])
			}
		}
	}
	fmt.Fprintln(usage, "usage: bench command [flags]; bench command -h lists the flags")
	for _, c := range commands {
		fmt.Fprintf(usage, "  %-9s %s\n", c.name, c.about)
	}
	if len(args) > 0 && args[0] == "help" {
		return nil
	}
	return fmt.Errorf("expected a command, found %q", args)
}
