// Command bench measures delayed beside hibiken/asynq: enqueueing, draining and waking up. Each figure of each round has a
// fresh redis-server; the peers take turns within a round, so that a change of the machine's speed meets both. It prints
// medians with their ranges, and ratios of medians.
//
//	go run . -rounds 5
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 5, "rounds; medians are printed")
	tasks := flag.Int("n", 100_000, "tasks to drain and to enqueue in batches; fewer are enqueued one by one")
	concurrency := flag.Int("concurrency", 50, "executors of a worker")
	jsonFile := flag.String("json", "", "file for all figures of all rounds")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *tasks < 1000 || *concurrency < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*rounds, *tasks, *concurrency, *jsonFile); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds, tasks, concurrency int, jsonFile string) error {
	version, err := serverVersion()
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d cores, %s, redis-server %s, %d rounds, %s\n\n",
		runtime.Version(), runtime.NumCPU(), runtime.GOOS+"/"+runtime.GOARCH, version, rounds, time.Now().UTC().Format(time.DateOnly))
	figures := figuresOf(tasks, concurrency)
	results := newResults()
	for round := range rounds {
		for _, f := range figures {
			for _, p := range peers {
				value, ok, err := measure(f, p)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", p.name, f.name, err)
				}
				if ok {
					results.add(f.name, p.name, value)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done\n", round+1, rounds)
	}
	results.print(os.Stdout, figures)
	if jsonFile == "" {
		return nil
	}
	return results.write(jsonFile)
}

// measure takes one figure of one peer on a fresh server.
func measure(f figure, p peer) (value float64, ok bool, err error) {
	s, err := startServer()
	if err != nil {
		return 0, false, err
	}
	defer s.stop()
	q, err := p.open(s.addr)
	if err != nil {
		return 0, false, err
	}
	defer q.close()
	return f.take(q)
}
