package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// inspectorCommand runs the command `inspector`: it measures what it costs to look into a queue that is full while its
// tasks run, and whether looking slows them down.
func inspectorCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("inspector", flag.ExitOnError)
	n := flags.Int("n", 1_000_000, "pending tasks; a tenth as many are scheduled, and as many archived")
	rounds := flags.Int("rounds", 50, "how often each view is read")
	pairs := flags.Int("pairs", 11, "how often a drain beside an inspector is compared with one without")
	aof := flags.String("aof", aofEverysec, "durability: off, everysec or always")
	_ = flags.Parse(args)
	p, err := peerNamed("delayed")
	if err != nil {
		return err
	}
	b, err := makeBed(p, *aof, bare)
	if err != nil {
		return err
	}
	defer b.close()
	defer context.AfterFunc(ctx, b.abort)()
	site, err := openInspected(b)
	if err != nil {
		return err
	}
	defer site.close()
	if err := site.fill(*n); err != nil {
		return err
	}
	if err := site.measureViews(ctx, *n, *rounds); err != nil || *pairs == 0 {
		return err
	}
	return site.compareDrains(ctx, *n, *pairs)
}

// inspected is a queue on a bed, and the inspector of this process.
type inspected struct {
	bed      *bed
	producer *program
	rdb      *delayed.Redis
	ins      *inspect.Inspector
	conn     redis.Conn
	name     string
}

func openInspected(b *bed) (*inspected, error) {
	s := &inspected{bed: b, name: "bench0"}
	var err error
	if s.producer, err = b.driver(); err != nil {
		return nil, err
	}
	if s.rdb, err = delayed.Dial("redis://" + b.addr); err != nil {
		return nil, err
	}
	if s.ins, err = inspect.New(s.rdb, inspect.Config{}); err != nil {
		return nil, err
	}
	s.conn, err = redis.Dial("tcp", b.addr)
	return s, err
}

func (s *inspected) close() {
	s.conn.Close()
	s.rdb.Close()
}

// fill files scheduled and archived tasks, a tenth of n each.
func (s *inspected) fill(n int) error {
	if _, err := s.producer.do(&request{Op: "enqueue", N: n / 5, Producers: 256, Schedule: true}); err != nil {
		return err
	}
	// No call archives so many tasks at once: the keys are written as lua/README.md describes them.
	archive := redis.NewScript(2, `
		local ids = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)
		for i = 1, #ids do
			redis.call('ZREM', KEYS[1], ids[i])
			redis.call('ZADD', KEYS[2], ARGV[2], ids[i])
		end`)
	later := time.Now().Add(90 * 24 * time.Hour).UnixMilli()
	for left := n / 10; left > 0; left -= 1000 {
		_, err := archive.Do(s.conn, s.name+"_scheduled", s.name+"_archived", min(left, 1000), later)
		if err != nil {
			return err
		}
	}
	return nil
}

// measureViews prints how long each view takes while a worker runs tasks that sleep for a millisecond each, and which
// scripts kept the server for longer than a millisecond.
func (s *inspected) measureViews(ctx context.Context, n, rounds int) error {
	if err := s.bed.fill(s.producer, n, 0, 0); err != nil {
		return err
	}
	worker, err := s.bed.driver()
	if err != nil {
		return err
	}
	if _, err := worker.do(&request{Op: "work", Concurrency: baseConcurrency, Handler: "1ms"}); err != nil {
		return err
	}
	if err := recordSlow(s.conn, 1000); err != nil {
		return err
	}
	took := map[string][]float64{}
	all := slices.Concat(views, actions)
	for range rounds {
		for _, v := range all {
			start := time.Now()
			if err := v.read(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			took[v.name] = append(took[v.name], float64(time.Since(start))/float64(time.Millisecond))
		}
	}
	q, err := s.ins.Queue(ctx, s.name)
	if err != nil {
		return err
	}
	worker.close()
	fmt.Printf("%d pending tasks and a worker beside, at the end %d; %d scheduled, %d archived\n\n", n, q.Pending,
		q.Scheduled, q.Archived)
	fmt.Printf("| view or action | median [ms] | longest [ms] |\n|---|---:|---:|\n")
	for _, v := range all {
		times := took[v.name]
		slices.Sort(times)
		fmt.Printf("| %s | %s | %s |\n", v.name, number(quantile(times, 0.5)), number(times[len(times)-1]))
	}
	return s.printSlow()
}

// compareDrains prints the rate of drains beside an inspector that looks each second, relative to drains without.
func (s *inspected) compareDrains(ctx context.Context, n, pairs int) error {
	var ratios []float64
	fmt.Printf("\n| pair | alone [tasks/s] | beside an inspector [tasks/s] | ratio |\n|---:|---:|---:|---:|\n")
	for i := range pairs {
		var rates [2]float64
		for _, beside := range [][]int{{0, 1}, {1, 0}}[i%2] {
			rate, err := s.drain(ctx, n, beside == 1)
			if err != nil {
				return err
			}
			rates[beside] = rate
		}
		ratios = append(ratios, rates[1]/rates[0])
		fmt.Printf("| %d | %s | %s | %s |\n", i+1, number(rates[0]), number(rates[1]), number(rates[1]/rates[0]))
	}
	slices.Sort(ratios)
	fmt.Printf("\nmedian ratio %s (%s to %s)\n", number(quantile(ratios, 0.5)), number(ratios[0]),
		number(ratios[len(ratios)-1]))
	return nil
}

// drain measures a worker with n pending tasks, perhaps beside an inspector that looks when it starts and each second.
func (s *inspected) drain(ctx context.Context, n int, beside bool) (rate float64, err error) {
	if err := s.bed.fill(s.producer, n, 0, 0); err != nil {
		return 0, err
	}
	worker, err := s.bed.driver()
	if err != nil {
		return 0, err
	}
	defer worker.close()
	looking, stop := context.WithCancel(ctx)
	looked := make(chan error, 1)
	go func() { looked <- s.lookAround(looking, beside) }()
	a, err := worker.do(&request{Op: "work", N: n, Concurrency: baseConcurrency})
	stop()
	if err == nil {
		err = <-looked
	}
	if err != nil {
		return 0, err
	}
	return float64(n) / a.Seconds, nil
}

// lookAround reads everything that a page or a terminal shows of the queue, each second.
func (s *inspected) lookAround(ctx context.Context, really bool) error {
	for really {
		for _, v := range views {
			if err := v.read(ctx, s); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
