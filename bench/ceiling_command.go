package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ceilingCommand runs the command `ceiling`: how fast Redis lists are when a program does only the necessary work, in
// tables that show where the limits are. Client and worker are one process here; in `bench` the ceiling's worker is a
// process of its own.
func ceilingCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("ceiling", flag.ExitOnError)
	c := &ceilingRun{ctx: ctx, out: os.Stdout}
	tables := flags.String("tables", "abcdg",
		"which: a redis-benchmark, b claim and call, c enqueue, d wake-up, g acknowledge and claim in one script")
	flags.StringVar(&c.aof, "aof", aofOff, "durability: off, everysec or always")
	flags.IntVar(&c.rounds, "rounds", 3, "repeats of each figure; medians are printed")
	flags.IntVar(&c.n, "n", 200_000, "tasks for a figure")
	listpack := flags.Int("listpack", -1, "hash-max-listpack-entries of the servers; -1: their default")
	_ = flags.Parse(args)
	if c.rounds < 1 || c.n < 1000 {
		return fmt.Errorf("expected at least 1 round and 1,000 tasks, found %d and %d", c.rounds, c.n)
	}
	if *listpack >= 0 {
		c.options = []string{"--hash-max-listpack-entries", strconv.Itoa(*listpack)}
	}
	m, err := thisMachine()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s UTC, `%s`. %s. AOF %s, medians of %d with ranges.\n",
		time.Now().UTC().Format("2006-01-02 15:04"), commandLine("ceiling", args), m, c.aof, c.rounds)
	take := map[rune]func() error{'a': c.tableA, 'b': c.tableB, 'c': c.tableC, 'd': c.tableD, 'g': c.tableG}
	for _, table := range *tables {
		f := take[table]
		if f == nil {
			return fmt.Errorf("there is no table %c; expected some of a, b, c, d and g", table)
		}
		if err := c.onServer(f); err != nil {
			return fmt.Errorf("table %c: %w", table, err)
		}
	}
	return nil
}

// ceilingRun is one run of the command.
type ceilingRun struct {
	ctx     context.Context //nolint:containedctx // of the whole run
	out     io.Writer
	aof     string
	rounds  int
	n       int
	options []string

	server *server // of the current table
	ctl    redis.Conn
}

// onServer gives one table a fresh server.
func (c *ceilingRun) onServer(table func() error) error {
	s, err := startServer(c.aof, c.options...)
	if err != nil {
		return err
	}
	defer s.stop()
	c.server = s
	if c.ctl, err = redis.Dial("tcp", s.addr); err != nil {
		return err
	}
	defer c.ctl.Close()
	return table()
}

func (c *ceilingRun) head(title string, columns ...string) {
	fmt.Fprintf(c.out, "\n### %s\n\n| | %s |\n|---|%s\n", title, strings.Join(columns, " | "),
		strings.Repeat("---:|", len(columns)))
}

// bareRun is the result of one repeat of a figure.
type bareRun struct{ perSecond, server, worker float64 } // CPU in seconds per 100,000 tasks

// row repeats a figure and prints it.
func (c *ceilingRun) row(name string, columns int, f func() (bareRun, error)) error {
	var rates, servers, workers []float64
	for range c.rounds {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		r, err := f()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rates, servers, workers = append(rates, r.perSecond), append(servers, r.server), append(workers, r.worker)
	}
	cells := []string{spreadText(rates), number(spreadOf(servers).Middle), number(spreadOf(workers).Middle)}
	fmt.Fprintf(c.out, "| %s | %s |\n", name, strings.Join(cells[:columns], " | "))
	return nil
}

// timed empties the server, lets prepare fill it, and measures f, which handles n tasks.
func (c *ceilingRun) timed(prepare func() error, f func() (n int, err error)) (bareRun, error) {
	if _, err := c.ctl.Do("FLUSHALL"); err != nil {
		return bareRun{}, err
	}
	if prepare != nil {
		if err := prepare(); err != nil {
			return bareRun{}, err
		}
	}
	before, err := takeSnapshot(c.server.addr)
	if err != nil {
		return bareRun{}, err
	}
	cpu, start := processCPU(), time.Now()
	n, err := f()
	if err != nil {
		return bareRun{}, err
	}
	took, cpu := time.Since(start).Seconds(), processCPU()-cpu
	after, err := takeSnapshot(c.server.addr)
	if err != nil {
		return bareRun{}, err
	}
	per100k := 1e5 / float64(n)
	return bareRun{float64(n) / took, after.since(before).cpu * per100k, cpu * per100k}, nil
}

// fill makes n tasks pending, without notifications.
func (c *ceilingRun) fill(n int) error {
	task := encodeBare(baseNumber, baseText)
	for n > 0 {
		k := min(n, 1000)
		args := make([]any, 0, k+1)
		args = append(args, ceilingList)
		for range k {
			args = append(args, task)
		}
		if _, err := c.ctl.Do("RPUSH", args...); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// slow returns n, or n divided by part where every command waits for the disk.
func (c *ceilingRun) slow(n, part int) int {
	if c.aof == aofAlways {
		return n / part
	}
	return n
}
