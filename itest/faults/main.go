// Command faults checks the tests: it breaks the code in one small way at a time and expects a test to fail.
//
// The ways that are kept here break promises of docs/RELIABILITY.md: a file for each promise, with entries such as
//
//	[[fault]]
//	breaks = "a second task with the same lock is enqueued"
//	in = "lua/enlist.lua"
//	old = 'if holder and holder ~= id then'
//	new = 'if false then'
//	test = "./internal/redisstore TestStore/enlist"
//
// The text old must stand exactly once in the Go and Lua files below the path in, or below the root of the repository
// without in. The test is a package, the name of a test function and, if it is to run alone, that of a subtest.
// TestFaults, which is part of make test, checks all of this without running the tests.
//
// With -since, the command instead changes what differs from a revision: it negates conditions, swaps operators, leaves
// out statements and so on, in each changed line, and runs the tests of the changed packages.
//
// In both cases it hands a changed copy of one file to the compiler by go test -overlay, so the tree stays as it is.
//
//	go run ./faults                      # in itest: all faults
//	go run ./faults lock cancel          # those with one of the words in their file name or sentence
//	go run ./faults -since main -for 20m # what has changed since main, for 20 minutes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	root := flags.String("dir", "..", "root of the repository")
	since := flags.String("since", "", "revision: change what differs from it, in place of the faults kept here")
	limit := flags.Duration("for", 10*time.Minute, "with -since: how long to go on; 0: to the end")
	atATime := flags.Int("j", min(runtime.NumCPU(), 4), "how many to try at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	if *since != "" {
		return tryChanges(ctx, out, dir, *since, *limit, *atATime)
	}
	return tryFaults(ctx, out, dir, *atATime, flags.Args())
}

// tryFaults fails if a fault is not caught by its test.
func tryFaults(ctx context.Context, out io.Writer, root string, atATime int, words []string) error {
	faults, err := readFaults(filepath.Join(root, "itest", "faults"))
	if err != nil {
		return err
	}
	files, err := readTree(root)
	if err != nil {
		return err
	}
	start := time.Now()
	var trials []trial
	for _, f := range faults {
		if !f.matches(words) {
			continue
		}
		t, err := f.trial(files)
		if err != nil {
			return err
		}
		trials = append(trials, t)
	}
	if len(trials) == 0 {
		return fmt.Errorf("expected faults with one of %q in their file name or sentence, found none", words)
	}
	if err := unbroken(ctx, root, trials); err != nil {
		return err
	}
	fmt.Fprintf(out, "The tests pass without a fault (%.1f s).\n", time.Since(start).Seconds())
	counts := tryAll(ctx, root, trials, atATime, func(t trial, r result, took time.Duration) {
		fmt.Fprintf(out, "%-9s %5.1f s  %s\n", r.outcome, took.Seconds(), t.name)
		if r.outcome != caught {
			fmt.Fprintf(out, "          tests: %s\n%s", t.tests[0], r.output)
		}
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	if missed := len(trials) - counts[caught]; missed > 0 {
		return fmt.Errorf("expected a test to fail for each of %d faults, found %d without: "+
			"make the test stricter, or mend the entry in itest/faults (%.1f s)", len(trials), missed, took)
	}
	fmt.Fprintf(out, "%d faults, each caught by its test (%.1f s)\n", len(trials), took)
	return nil
}

// tryChanges prints the mutants that no test notices. That is no error: some do not change what the program does.
func tryChanges(ctx context.Context, out io.Writer, root, since string, limit time.Duration, atATime int) error {
	trials, err := mutants(ctx, root, since)
	if err != nil {
		return err
	}
	// So that a run that ends early has seen something of each file.
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	fmt.Fprintf(out, "%d mutants of the lines that have changed since %s\n", len(trials), since)
	start := time.Now()
	if limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	counts := tryAll(ctx, root, trials, atATime, func(t trial, r result, took time.Duration) {
		if r.outcome == survived {
			fmt.Fprintf(out, "%-9s %5.1f s  %s\n", r.outcome, took.Seconds(), t.name)
		}
	})
	tried := counts[caught] + counts[survived] + counts[invalid]
	fmt.Fprintf(out, "%d caught, %d survived, %d do not compile or have no test, %d not tried (%.1f s)\n",
		counts[caught], counts[survived], counts[invalid], len(trials)-tried, time.Since(start).Seconds())
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// tryAll tries some at a time, reports each and returns how many had which outcome. It stops early with ctx.
func tryAll(
	ctx context.Context, root string, trials []trial, atATime int, report func(trial, result, time.Duration),
) map[outcome]int {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex // for report and counts
		counts = map[outcome]int{}
		todo   = make(chan trial, len(trials))
	)
	for _, t := range trials {
		todo <- t
	}
	close(todo)
	for range atATime {
		wg.Go(func() {
			for t := range todo {
				start := time.Now()
				r := t.try(ctx, root)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				report(t, r, time.Since(start))
				counts[r.outcome]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return counts
}
