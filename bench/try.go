package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// tryCommand runs a few tasks through each peer.
func tryCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("try", flag.ExitOnError)
	n := flags.Int("n", 1000, "tasks for each figure")
	only := flags.String("only", "", "peers, separated by commas; all that are installed when empty")
	aof := flags.String("aof", aofOff, "durability: off, everysec or always")
	_ = flags.Parse(args)
	for _, p := range allPeers() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), p.name) {
			continue
		}
		version, err := p.version()
		if err != nil {
			fmt.Printf("%s is missing: %v\n", p.name, err)
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Printf("%s %s\n", p.name, version)
		if err := try(p, *n, *aof); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func try(p *peer, n int, aof string) error {
	start := startServer
	if p.start != nil {
		start = func(aof string, _ ...string) (*server, error) { return p.start(aof) }
	}
	s, err := start(aof)
	if err != nil {
		return err
	}
	defer s.stop()
	producer, err := startProgram(p, s.addr)
	if err != nil {
		return err
	}
	defer producer.close()
	pending := 0
	for _, r := range []request{
		{Op: "enqueue", N: n, Producers: 1},
		{Op: "enqueue", N: n, Producers: 16},
		{Op: "enqueue", N: n, Batch: 1000},
		{Op: "enqueue", N: n, Producers: 4, Size: 1024},
	} {
		a, err := producer.do(&r)
		if errors.Is(err, errNone) {
			fmt.Printf("  %d producers, %d a call: none\n", r.Producers, r.Batch)
			continue
		}
		if err != nil {
			return err
		}
		pending += n
		fmt.Printf("  %d producers, %d a call, text of %d: %s tasks/s\n", r.Producers, r.Batch, r.Size,
			number(float64(n)/a.Seconds))
	}
	worker, err := startProgram(p, s.addr)
	if err != nil {
		return err
	}
	defer worker.close()
	a, err := worker.do(&request{Op: "work", N: pending, Concurrency: p.executors(10)})
	if err != nil {
		return err
	}
	fmt.Printf("  drain: %s tasks/s, worker CPU %s s per 100,000\n", number(float64(pending)/a.Seconds),
		number(a.CPU/float64(pending)*1e5))
	worker.close()
	if p.polls {
		n = min(n, 5)
	}
	return tryLatency(p, s, producer, min(n, 100))
}

func tryLatency(p *peer, s *server, producer *program, n int) error {
	worker, err := startProgram(p, s.addr)
	if err != nil {
		return err
	}
	defer worker.close()
	if err := worker.begin(&request{Op: "work", N: n, Concurrency: p.executors(10), Latency: true}); err != nil {
		return err
	}
	time.Sleep(time.Second)
	if _, err := producer.do(&request{Op: "enqueue", N: n, Rate: 100, Producers: 1}); err != nil {
		return err
	}
	a, err := worker.receive()
	if err != nil {
		return err
	}
	if len(a.Latencies) != n {
		return fmt.Errorf("expected %d latencies, found %d", n, len(a.Latencies))
	}
	slices.Sort(a.Latencies)
	fmt.Printf("  latency of %d tasks, 100 a second: p50 %s ms\n", n, number(a.Latencies[n/2]/1000))
	return nil
}
