package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// startProfile writes prefix.cpu.pprof and, when the returned function is called, prefix.allocs.pprof. An empty prefix
// does nothing.
func startProfile(prefix string) (stop func() error, err error) {
	if prefix == "" {
		return func() error { return nil }, nil
	}
	runtime.MemProfileRate = 4096
	f, err := os.Create(prefix + ".cpu.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		g, err := os.Create(prefix + ".allocs.pprof")
		if err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(f.Close(), pprof.Lookup("allocs").WriteTo(g, 0), g.Close())
	}, nil
}

// profileCommand runs the command `profile`: it writes profiles of a drain's worker or of a producer, and prints what
// the driver and the server needed.
func profileCommand(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("profile", flag.ExitOnError)
	what := flags.String("what", "drain", "drain, enqueue (256 producers) or batch (1,000 a call)")
	n := flags.Int("n", 1_000_000, "tasks")
	_ = flags.Parse(args)
	r := map[string]*request{
		"drain":   {Op: "work", N: *n, Concurrency: baseConcurrency},
		"enqueue": {Op: "enqueue", N: *n, Producers: manyProducers},
		"batch":   {Op: "enqueue", N: *n, Batch: 1000},
	}[*what]
	if r == nil {
		return fmt.Errorf("-what: expected drain, enqueue or batch, found %q", *what)
	}
	b, err := makeBed(ctx, delayedPeer, aofEverysec, 0)
	if err != nil {
		return err
	}
	defer b.close()
	defer recoverFailure(&err)
	if r.Profile, err = filepath.Abs("delayed-" + *what); err != nil {
		return err
	}
	if *what == "drain" {
		b.fill(b.driver(), *n, 0)
	}
	before := b.state()
	a := b.driver().do(r)
	server, per := b.state().since(before), float64(*n)
	calls, micros := server.scripts()
	fmt.Printf("%s: %s tasks/s; CPU per 100,000 tasks: client %s s, server %s s; allocations per task: %s; "+
		"scripts per task: %s, %s µs\n\ngo tool pprof -http=: %s.cpu.pprof\n", *what, number(per/a.Seconds),
		number(a.CPU/per*1e5), number(server.cpu/per*1e5), number(float64(a.Mallocs)/per), number(calls/per),
		number(micros/per), r.Profile)
	return nil
}
