package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// profileCommand runs the command `profile`: it shows where a drain spends its time and allocates, in the worker and in
// the server.
func profileCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("profile", flag.ExitOnError)
	name := flags.String("peer", "delayed", "a peer that is a Go package")
	what := flags.String("what", "drain", "drain, enqueue (256 producers) or batch (1,000 a call)")
	n := flags.Int("n", 1_000_000, "tasks")
	aof := flags.String("aof", aofEverysec, "durability: off, everysec or always")
	concurrency := flags.Int("concurrency", baseConcurrency, "of the worker")
	dir := flags.String("dir", ".", "folder for the profiles")
	top := flags.Int("top", 25, "lines to print of each profile")
	_ = flags.Parse(args)
	p, err := peerNamed(*name)
	if err != nil {
		return err
	}
	if p.open == nil || p.start != nil {
		return fmt.Errorf("%s cannot be profiled: expected a peer that is a Go package on Redis", p.name)
	}
	b, err := makeBed(p, *aof, bare)
	if err != nil {
		return err
	}
	defer b.close()
	defer context.AfterFunc(ctx, b.abort)()
	d, err := b.driver()
	if err != nil {
		return err
	}
	prefix, err := filepath.Abs(filepath.Join(*dir, p.name+"-"+*what))
	if err != nil {
		return err
	}
	requests := map[string]*request{
		"drain":   {Op: "work", N: *n, Concurrency: *concurrency},
		"enqueue": {Op: "enqueue", N: *n, Producers: paceCallers},
		"batch":   {Op: "enqueue", N: *n, Batch: 1000},
	}
	r := requests[*what]
	if r == nil {
		return fmt.Errorf("-what: expected drain, enqueue or batch, found %q", *what)
	}
	r.Profile = prefix
	if *what == "drain" {
		producer, err := b.driver()
		if err != nil {
			return err
		}
		if err := b.fill(producer, *n, 0, 0); err != nil {
			return err
		}
	}
	before, err := b.state()
	if err != nil {
		return err
	}
	a, err := d.do(r)
	if err != nil {
		return err
	}
	after, err := b.state()
	if err != nil {
		return err
	}
	per := float64(*n)
	fmt.Printf("%s of %s: %s tasks/s; CPU per 100,000 tasks: client %s s, server %s s; allocations per task: %s\n\n",
		*what, p.name, number(per/a.Seconds), number(a.CPU/per*1e5), number(after.since(before).cpu/per*1e5),
		number(float64(a.Mallocs)/per))
	printCommands(after.since(before), per)
	for _, view := range [][]string{
		{prefix + ".cpu.pprof"},
		{"-cum", prefix + ".cpu.pprof"},
		{"-sample_index=alloc_objects", prefix + ".allocs.pprof"},
	} {
		if err := printTop(*top, view...); err != nil {
			return err
		}
	}
	fmt.Printf("\ngo tool pprof -http=: %s.cpu.pprof\n", prefix)
	return nil
}

// printCommands prints what the server did, the most expensive command first. A script's time contains that of its
// commands.
func printCommands(s *snapshot, n float64) {
	fmt.Printf("%-24s %14s %16s %12s\n", "command in the server", "calls per task", "µs per 1,000", "µs a call")
	names := slices.SortedFunc(maps.Keys(s.calls),
		func(a, b string) int { return cmp.Compare(s.micros[b], s.micros[a]) })
	for _, name := range names {
		fmt.Printf("%-24s %14s %16s %12s\n", name, number(s.calls[name]/n), number(s.micros[name]/n*1000),
			number(s.micros[name]/s.calls[name]))
	}
}

// printTop prints the head of a profile.
func printTop(lines int, args ...string) error {
	fmt.Printf("\n== go tool pprof -top %s\n", args)
	cmd := exec.Command("go",
		append([]string{"tool", "pprof", "-top", fmt.Sprintf("-nodecount=%d", lines)}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go tool pprof: %w; the profiles are written, look at them by hand", err)
	}
	return nil
}
