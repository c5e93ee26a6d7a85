package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Measures of worstTable.
const (
	tookMeasure     = "took [s]"
	cpuMeasure      = "Redis CPU [s]"
	commandsMeasure = "commands/s"
	ageMeasure      = "until it runs: median, p99, longest [ms]" // three values
	runsMeasure     = "scripts over 5 ms"
	pingMeasure     = "PING, p99 [ms]"
	longestPing     = "PING, longest [ms]"
	longestRuns     = "longest runs: " // before the name of a script or command; up to three values
)

// slowMicros is how long a command or script must take to be recorded, in µs.
const slowMicros = 500

// watched records as a row of worstTable what do costs the server, and how long others wait for it meanwhile. n is how
// many tasks do is about, 0 for none.
func (b *bed) watched(row string, n int, do func() error) error {
	conn, err := redis.Dial("tcp", b.server.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := recordSlow(conn, slowMicros); err != nil {
		return err
	}
	ping, err := startPing(b.server.addr)
	if err != nil {
		return err
	}
	before, err := b.state()
	if err != nil {
		return errors.Join(err, ping.close())
	}
	start := time.Now()
	err = do()
	took := time.Since(start).Seconds()
	if err := errors.Join(err, ping.close()); err != nil {
		return err
	}
	after, err := b.state()
	if err != nil {
		return err
	}
	b.record(worstTable, row, tookMeasure, true, took)
	if n > 0 {
		b.record(worstTable, row, perSecond, false, float64(n)/took)
	}
	spent := after.since(before)
	b.record(worstTable, row, cpuMeasure, true, spent.cpu)
	b.record(worstTable, row, commandsMeasure, true, spent.commands()/took)
	slices.Sort(ping.waits)
	b.record(worstTable, row, pingMeasure, true, quantile(ping.waits, 0.99))
	b.record(worstTable, row, longestPing, true, quantile(ping.waits, 1))
	return b.recordRuns(row, conn)
}

// recordRuns records the three longest runs of each script and command, those first that took longest.
func (b *bed) recordRuns(row string, conn redis.Conn) error {
	times, err := slowRuns(conn)
	if err != nil {
		return err
	}
	var names []string
	over := 0
	for name, runs := range times {
		if slices.Contains([]string{"INFO", "CONFIG", "SLOWLOG"}, strings.ToUpper(name)) {
			continue // our own
		}
		names = append(names, name)
		for _, ms := range runs {
			// Commands within a script are recorded too.
			if ms > 5 && strings.HasPrefix(name, "script ") {
				over++
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if slices.Max(times[a]) > slices.Max(times[b]) {
			return -1
		}
		return 1
	})
	b.record(worstTable, row, runsMeasure, true, float64(over))
	for _, name := range names {
		runs := slices.Sorted(slices.Values(times[name]))
		slices.Reverse(runs)
		short := strings.TrimSuffix(strings.TrimPrefix(name, "script "), ".lua")
		for _, ms := range runs[:min(len(runs), 3)] {
			b.record(worstTable, row, longestRuns+short, true, ms)
		}
	}
	return nil
}

// ping sends PING each millisecond on a connection of its own, as another user of the server would.
type ping struct {
	conn  redis.Conn
	stop  chan struct{}
	done  chan error
	waits []float64 // ms, for each answer
}

func startPing(addr string) (*ping, error) {
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &ping{conn: conn, stop: make(chan struct{}), done: make(chan error, 1)}
	go func() { p.done <- p.run() }()
	return p, nil
}

func (p *ping) run() error {
	for {
		select {
		case <-p.stop:
			return nil
		case <-time.After(time.Millisecond):
		}
		start := time.Now()
		if _, err := p.conn.Do("PING"); err != nil {
			return err
		}
		p.waits = append(p.waits, time.Since(start).Seconds()*1000)
	}
}

// close ends it; waits may be read then.
func (p *ping) close() error {
	close(p.stop)
	err := <-p.done
	return errors.Join(err, p.conn.Close())
}

// until calls done again and again, with 5 ms between, until it reports true.
func until(what string, done func() (bool, error)) error {
	for deadline := time.Now().Add(workLimit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
	return errors.New("it took more than " + workLimit.String() + " until " + what)
}
