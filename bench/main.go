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
	{"peers", "every peer that is installed, at the base point and with each durability (20 min)", peersCommand},
	{"python", "the Python package of this tree beside other task queues of Python (5 min)", pythonCommand},
	{"ceiling", "what Redis lists allow when nothing but the bare work is done: five tables (2 min)", ceilingCommand},
	{"profile", "where time and allocations of a drain go, in the worker and in the server (15 s)", profileCommand},
	{"guard", "whether the ratios to asynq and to the ceiling are still those that were published (2 min, 5 when in " +
		"doubt)", guardCommand},
	{
		"inspector", "what it costs to look into a full queue, and whether that slows its workers down (4 min)",
		inspectorCommand,
	},
	{
		"dashboard", "how long pages of the dashboard take with a full queue, and what open pages cost (3 min)",
		dashboardCommand,
	},
	{
		"worst", "how long scripts take at sizes that might keep Redis busy for long (3 min)",
		worstCommand,
	},
	{
		"publish", "write docs/PERFORMANCE.md, its graphs and published.json from files of the commands above",
		publishCommand,
	},
	{
		"try", "take each figure of the base point once, with few tasks: whether a peer works here (10 s a peer)",
		tryCommand,
	},
	{"driver", "produce or work for a peer, as told on stdin (bench starts it itself)", driverCommand},
	{"dashboard-server", "serve the dashboard (dashboard starts it itself)", dashboardServer},
	{"spin", "keep the cores busy at the lowest priority (bench starts it itself)", spinCommand},
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
		fmt.Fprintf(usage, "  %-8s %s\n", c.name, c.about)
	}
	if len(args) > 0 && args[0] == "help" {
		return nil
	}
	return fmt.Errorf("expected a command, found %q", args)
}
