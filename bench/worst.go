package main

import (
	"cmp"
	"context"
	"crypto/sha1"
	"flag"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/lua"
)

// worstCommand runs the command `worst`: it brings delayed to sizes at which a script might keep Redis busy for long,
// and measures how long the scripts take and how long others wait for Redis.
func worstCommand(ctx context.Context, args []string) error {
	r := &runner{rounds: 1}
	var first bool
	if err := parse("worst", args, r, self, func(f *flag.FlagSet) {
		f.BoolVar(&first, "first", false, "give redis-server the highest priority, so that the times of its scripts "+
			"do not count other programs that use the processors; needs root")
	}); err != nil {
		return err
	}
	if err := r.run(ctx, worstScenarios(first)); err != nil {
		return err
	}
	return r.output()
}

// worstScenarios returns a scenario for each case. With first, their servers run at the highest priority.
func worstScenarios(first bool) []scenario {
	all := []scenario{
		{name: "queues", take: worstQueues},
		{name: "workers", take: worstWorkers},
		{name: "scheduled", take: worstScheduled},
		{name: "archive", take: worstArchive},
		{name: "group", take: worstGroup},
	}
	for i, s := range all {
		all[i].take = func(b *bed) {
			if first {
				check(syscall.Setpriority(syscall.PRIO_PROCESS, b.server.cmd.Process.Pid, -20))
			}
			s.take(b)
		}
	}
	return all
}

// worstQueues lets one worker serve 1,000 queues: its start, its cost while idle, its wake-up, and a drain.
func worstQueues(b *bed) {
	queues, woken, drained := b.tasks(1000, 10), b.tasks(400, 20), b.tasks(100_000, 2000)
	of := count(queues) + " queues, "
	worker, producer := b.driver(), b.driver()
	b.watched(of+"start", 0, func() {
		worker.begin(&request{Op: "work", N: woken, Concurrency: baseConcurrency, Queues: queues, Latency: true})
		b.untilRegistered(queues)
	})
	b.watchIdle(of+"idle", 5*time.Second)
	row := of + "wake-up"
	b.watched(row, woken, func() {
		producer.do(&request{Op: "enqueue", N: woken, Rate: 100, Queues: queues})
		b.recordAges(row, worker.receive())
	})
	worker.close()
	b.do("FLUSHALL")
	worker = b.driver()
	worker.begin(&request{Op: "work", N: drained, Concurrency: baseConcurrency, Queues: queues})
	b.untilRegistered(queues)
	b.watched(of+"drain", drained, func() {
		producer.do(&request{Op: "enqueue", N: drained, Producers: manyProducers, Queues: queues})
		worker.receive()
	})
}

// untilRegistered waits until each queue has a worker.
func (b *bed) untilRegistered(queues int) {
	keys := make([]any, queues)
	for i := range keys {
		keys[i] = fmt.Sprintf("bench%d_workers", i)
	}
	until("the worker was registered with each queue", func() bool { return b.do("EXISTS", keys...) == int64(queues) })
}

// watchIdle watches the server for d, or less at a smaller scale.
func (b *bed) watchIdle(row string, d time.Duration) {
	b.watched(row, 0, func() { time.Sleep(max(time.Duration(float64(d)*min(b.scale, 1)), d/10)) })
}

// worstWorkers lets 10,000 pretended workers register at once, beat, and end at once without a word, beside a real
// worker, which sweeps.
func worstWorkers(b *bed) {
	n, life := b.tasks(10_000, 100), 15.0 // the default
	if b.scale < 1 {
		life = 2
	}
	of := count(n) + " workers, "
	b.do("CONFIG", "SET", "maxclients", n+100) // fails if the limit of open files is lower: see ulimit -n
	untilAlone := func(what string) {
		until(what, func() bool { return b.do("SCARD", queueName+"_workers") == int64(1) })
	}
	b.driver().begin(&request{Op: "work", N: 1, Concurrency: baseConcurrency})
	untilAlone("the worker was registered")
	others := b.driver()
	b.watched(of+"start", 0, func() { others.do(&request{Op: "pretend", N: n, Life: life}) })
	b.watchIdle(of+"idle", 15*time.Second)
	b.watched(of+"all die at once", 0, func() {
		others.close()
		untilAlone("the dead workers were forgotten")
	})
}

// worstScheduled lets 1,000,000 scheduled tasks fall due within one second.
func worstScheduled(b *bed) {
	n := b.tasks(1_000_000, 2000)
	lead := 2 + float64(n)/25_000 // until all tasks are scheduled
	worker := b.worker(&request{N: n, Latency: true})
	row, first := count(n)+" scheduled, due in one second", time.Now().Add(time.Duration(lead*float64(time.Second)))
	b.watched(count(n)+" scheduled, enqueueing", n, func() { b.scheduleAhead(n, float64(n), lead) })
	time.Sleep(time.Until(first))
	b.watched(row, n, func() { b.recordAges(row, worker.receive()) })
}

// worstArchive lets each task fail on its only run; from the 10,000th on the archive is full.
func worstArchive(b *bed) {
	n := b.tasks(210_000, 2100)
	b.fillForm("failing", n)
	b.watched(count(n)+" tasks fail, archive full", n, func() {
		b.driver().do(&request{Op: "work", N: n, Concurrency: baseConcurrency, Archive: b.tasks(10_000, 100)})
	})
}

// worstGroup gathers 100,000 calls in one group while nobody serves the queue, and then lets a worker combine them.
func worstGroup(b *bed) {
	n := b.tasks(100_000, 1000)
	of := count(n) + " calls in a group, "
	b.watched(of+"gathering", n, func() { b.fillForm("gathered", n) })
	b.watched(of+"combined and run", n, func() {
		b.driver().do(&request{Op: "work", N: n, Concurrency: baseConcurrency})
	})
}

// watched records as a row of worstTable what do costs the server, and how long others wait for it meanwhile. n is how
// many tasks do is about, 0 for none.
func (b *bed) watched(row string, n int, do func()) {
	b.recordSlow(500)
	conn, err := redis.Dial("tcp", b.server.addr)
	check(err)
	defer conn.Close()
	stop, waits := make(chan struct{}), make(chan []float64)
	go func() { waits <- pings(conn, stop) }()
	before, start := b.state(), time.Now()
	do()
	took := time.Since(start).Seconds()
	close(stop)
	waited := <-waits
	server := b.state().since(before)
	record := func(measure string, value float64) { b.record(worstTable, row, measure, true, value) }
	record(tookMeasure, took)
	if n > 0 {
		b.record(worstTable, row, perSecond, false, float64(n)/took)
	}
	record(cpuMeasure, server.cpu)
	record(commandsMeasure, server.commands()/took)
	record(pingMeasure, quantile(waited, 0.99))
	record(longestPing, quantile(waited, 1))
	for name, runs := range b.slowRuns() {
		for _, ms := range runs {
			record(longestRuns+name, ms)
		}
	}
}

// pings sends PING a millisecond after each PONG, as another user of the server would, and returns the waits in ms.
func pings(conn redis.Conn, stop <-chan struct{}) (waits []float64) {
	for {
		select {
		case <-stop:
			return waits
		case <-time.After(time.Millisecond):
		}
		start := time.Now()
		if _, err := conn.Do("PING"); err != nil {
			return waits
		}
		waits = append(waits, time.Since(start).Seconds()*1000)
	}
}

// recordAges records how old tasks were when their handlers were entered.
func (b *bed) recordAges(row string, a *response) {
	for _, q := range []float64{0.5, 0.99, 1} {
		b.record(worstTable, row, ageMeasure, true, quantile(a.Latencies, q)/1000)
	}
}

// worstTable holds what `worst` measures. Only delayed is measured.
const worstTable = "worst"

// Measures of worstTable.
const (
	tookMeasure     = "took [s]"
	cpuMeasure      = "Redis CPU [s]"
	commandsMeasure = "commands/s"
	ageMeasure      = "until it runs: median, p99, longest [ms]" // three values
	pingMeasure     = "PING, p99 [ms]"
	longestPing     = "PING, longest [ms]"
	longestRuns     = "longest runs: " // before the name of a script or command; the longest first
	withinRedis     = "longest runs within Redis [ms]"
)

// worstText writes two tables with a line for each step of a case: what was reached, and who waited for how long.
func worstText(r *results) string {
	rates := [][]string{{"", tookMeasure, perSecond, cpuMeasure, commandsMeasure, ageMeasure}}
	waits := [][]string{{"", withinRedis, pingMeasure, longestPing}}
	var row string
	for _, f := range r.Figures {
		if f.Row == row {
			continue
		}
		row = f.Row
		for _, table := range []*[][]string{&rates, &waits} {
			line := []string{row}
			for _, measure := range (*table)[0][1:] {
				line = append(line, worstCell(r, row, measure))
			}
			*table = append(*table, line)
		}
	}
	return tableOf(rates, 1) + "\n" + tableOf(waits, 2)
}

// worstCell writes what a column of worstText has in a row: of the runs within Redis, the three longest of the two
// scripts or commands that took longest.
func worstCell(r *results, row, measure string) string {
	if measure != withinRedis {
		f := r.find(worstTable, row, measure)
		if f == nil {
			return none
		}
		return join("; ", f.Values["delayed"])
	}
	var slow []*figure
	for _, f := range r.Figures {
		if f.Row == row && strings.HasPrefix(f.Measure, longestRuns) {
			slow = append(slow, f)
		}
	}
	slices.SortFunc(slow, func(a, b *figure) int { return cmp.Compare(b.Values["delayed"][0], a.Values["delayed"][0]) })
	var texts []string
	for _, f := range slow[:min(len(slow), 2)] {
		values := f.Values["delayed"]
		texts = append(texts, strings.TrimPrefix(f.Measure, longestRuns)+" "+join(", ", values[:min(len(values), 3)]))
	}
	if len(texts) == 0 {
		return "each below 0.5"
	}
	return strings.Join(texts, "; ")
}

func join(separator string, values []float64) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, number(v))
	}
	return strings.Join(texts, separator)
}

// recordSlow makes the server record what takes longer than so many µs, and forget what it has recorded.
func (b *bed) recordSlow(micros int) {
	b.do("CONFIG", "SET", "slowlog-log-slower-than", micros, "slowlog-max-len", "100000")
	b.do("SLOWLOG", "RESET")
}

// slowRuns returns the times, in ms, the longest first, of the scripts and commands that the server has recorded, by
// name. Commands within scripts are recorded too.
func (b *bed) slowRuns() map[string][]float64 {
	names := map[string]string{} // of scripts, by the digests that EVALSHA gets
	for _, name := range lua.Names() {
		names[fmt.Sprintf("%x", sha1.Sum([]byte(lua.Source(name))))] = name
	}
	entries, err := redis.Values(b.do("SLOWLOG", "GET", "100000"), nil)
	check(err)
	times := map[string][]float64{}
	for _, e := range entries {
		var id, at, micros int64
		var command []string
		fields, err := redis.Values(e, nil)
		check(err)
		_, err = redis.Scan(fields, &id, &at, &micros, &command)
		check(err)
		name := strings.ToUpper(command[0])
		if strings.HasPrefix(name, "EVAL") && len(command) > 1 {
			name = cmp.Or(names[command[1]], names[fmt.Sprintf("%x", sha1.Sum([]byte(command[1])))], name)
		}
		if !slices.Contains([]string{"INFO", "CONFIG", "SLOWLOG"}, name) { // those are our own
			times[name] = append(times[name], float64(micros)/1000)
		}
	}
	for _, runs := range times {
		slices.SortFunc(runs, func(a, b float64) int { return cmp.Compare(b, a) })
	}
	return times
}
