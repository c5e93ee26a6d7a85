package main

import (
	"context"
	"slices"
	"time"
)

// benchCommand runs the command `bench`: delayed, asynq and the ceiling on every axis.
func benchCommand(ctx context.Context, args []string) error {
	o := options{rounds: 7, axisRounds: 3, within: 14 * time.Minute}
	_ = measureFlags("bench", &o).Parse(args)
	r, err := o.runner(commandLine("bench", args), benchPeers())
	if err != nil {
		return err
	}
	if err := r.run(ctx, benchScenarios()); err != nil {
		return err
	}
	return o.output(r.results)
}

// benchPeers are the peers of `bench`.
func benchPeers() []*peer {
	return slices.DeleteFunc(allPeers(),
		func(p *peer) bool { return !slices.Contains([]string{"delayed", "asynq", "ceiling"}, p.name) })
}

// The peers that take part in a scenario.
var (
	self     = []string{"delayed"}
	twoPeers = []string{"delayed", "asynq"}
)

// benchScenarios returns the scenarios of `bench`: one axis at a time from the base point, which is AOF everysec,
// concurrency 50, 20 bytes, a handler that only counts, no network.
func benchScenarios() []scenario {
	s := append(enqueueScenarios(), optionScenarios()...)
	s = append(s, drainScenarios()...)
	s = append(s, outcomeScenarios()...)
	s = append(s, networkScenarios()...)
	s = append(s, latencyScenarios()...)
	return append(s, sizeScenarios()...)
}

func enqueueScenarios() []scenario {
	s := []scenario{
		{name: "enqueue 1", awake: true, rounds: aimed, take: takeEnqueue("enqueue", producersRow(1), 1, 20_000)},
		{name: "enqueue 16", take: takeEnqueue("enqueue", producersRow(16), 16, 100_000)},
		{name: "enqueue 64", rounds: aimed, take: takeEnqueue("enqueue", producersRow(64), 64, 200_000)},
		{name: "enqueue 256", rounds: aimed, take: takeEnqueue("enqueue", producersRow(256), 256, 200_000)},
		{name: "enqueue batch", rounds: aimed, take: takeBatch("enqueue", "1,000 a call", 500_000)},
		{name: "cost pending", take: takePending},
	}
	for _, aof := range []string{aofOff, aofAlways} {
		n := 200_000
		if aof == aofAlways {
			n = 50_000
		}
		s = append(s,
			scenario{
				name: "aof " + aof + " enqueue 64", aof: aof,
				take: takeEnqueue("aof", "enqueue, 64 producers, AOF "+aof, 64, n),
			},
			scenario{
				name: "aof " + aof + " enqueue batch", aof: aof,
				take: takeBatch("aof", "enqueue, 1,000 a call, AOF "+aof, 4*n),
			})
	}
	return s
}

func drainScenarios() []scenario {
	const base = 400_000
	one := func(table, row string) []drainRow { return []drainRow{{table, row}} }
	s := []scenario{
		{
			name: "aof off drain", aof: aofOff, rounds: aimed,
			take: takeDrain(drain{n: base, rows: one("aof", "drain, AOF off")}),
		},
		{name: "drain 50", rounds: aimed, take: takeDrain(drain{
			n: base, cost: true, rows: []drainRow{{"drain", concurrencyRow(50)}, {"aof", "drain, AOF everysec"}},
		})},
		{
			name: "aof always drain", aof: aofAlways, rounds: aimed,
			take: takeDrain(drain{n: base / 4, rows: one("aof", "drain, AOF always")}),
		},
		{
			name: "drain 1", awake: true, peers: twoPeers,
			take: takeDrain(drain{n: base / 8, concurrency: 1, rows: one("drain", concurrencyRow(1))}),
		},
	}
	for _, c := range []int{10, 200} {
		s = append(s, scenario{
			name: "drain " + count(c), peers: twoPeers,
			take: takeDrain(drain{n: base / 2, concurrency: c, rows: one("drain", concurrencyRow(c))}),
		})
	}
	return append(s,
		scenario{
			name: "drain 1 KiB",
			take: takeDrain(drain{n: base / 4, size: 1 << 10, rows: one("drain", "payload 1 KiB")}),
		},
		scenario{
			name: "drain 10 KiB", rounds: aimed,
			take: takeDrain(drain{n: base / 16, size: 10 << 10, rows: one("drain", "payload 10 KiB")}),
		},
		scenario{
			name: "drain 1 ms", peers: twoPeers,
			take: takeDrain(drain{n: base / 8, handler: "1ms", rows: one("drain", "handler 1 ms")}),
		},
		scenario{name: "drain mixed", rounds: 1, peers: twoPeers, take: takeDrain(drain{
			n: base / 40, handler: "mixed", every: 100, rows: one("drain", "handler 1 ms, and 1 s each 100th"),
		})},
		scenario{name: "start", awake: true, take: takeStart},
	)
}

// networkScenarios run behind a proxy that adds nothing, and behind one that adds 1 ms to each round trip.
func networkScenarios() []scenario {
	var s []scenario
	for _, d := range []struct {
		name  string
		delay time.Duration
		slow  int // a lone producer is slower by this factor
	}{{"0 ms", 0, 2}, {"1 ms", time.Millisecond / 2, 20}} {
		add := func(name string, take func(*bed) error) {
			s = append(s, scenario{
				name: "network " + d.name + " " + name, proxy: true, delay: d.delay,
				awake: name == "enqueue 1", take: take,
			})
		}
		row := " +" + d.name
		add("enqueue 1", takeEnqueue("network", "enqueue, 1 producer,"+row, 1, 20_000/d.slow))
		add("enqueue 64", takeEnqueue("network", "enqueue, 64 producers,"+row, 64, 50_000))
		add("enqueue batch", takeBatch("network", "enqueue, 1,000 a call,"+row, 200_000))
		add("drain", takeDrain(drain{n: 400_000 / d.slow, rows: []drainRow{{"network", "drain," + row}}}))
	}
	return s
}

func latencyScenarios() []scenario {
	mine := []string{"delayed", "ceiling"}
	return []scenario{
		{name: "latency idle", awake: true, rounds: aimed, peers: mine, take: takeWakeUp},
		{name: "latency idle asynq", awake: true, peers: []string{"asynq"}, take: takeWakeUp},
		{name: "latency capacity", rounds: aimed, peers: mine, take: takeCapacity(200_000)},
		{name: "latency capacity asynq", peers: []string{"asynq"}, take: takeCapacity(200_000)},
		{name: "latency 10 %", take: takeLoad(0.1)},
		{name: "latency 50 %", rounds: aimed, peers: mine, take: takeLoad(0.5)},
		{name: "latency 50 % asynq", peers: []string{"asynq"}, take: takeLoad(0.5)},
		{name: "latency 90 %", take: takeLoad(0.9)},
		{name: "late idle", awake: true, peers: twoPeers, take: takeLateness(latenessRow, 200, 2)},
		{name: "late burst", peers: self, take: takeLateness(burstRow, 100_000, 1)},
		{name: "late burst asynq", rounds: 1, peers: []string{"asynq"}, take: takeLateness(burstRow, 100_000, 1)},
		{name: "fairness", rounds: aimed, peers: self, take: takeFairness(5)},
	}
}

func sizeScenarios() []scenario {
	s := []scenario{
		{name: "memory pending", rounds: 1, peers: twoPeers, take: takeMemory(1_000_000, "1,000,000 pending")},
		{
			name: "memory scheduled", rounds: 1, peers: twoPeers,
			take: takeWaiting("scheduled", 100_000, "100,000 scheduled"),
		},
		{name: "memory unique", rounds: 1, peers: twoPeers, take: takeWaiting("unique", 100_000, "100,000 unique")},
	}
	for _, pending := range []int{1_000, 10_000, 100_000, 1_000_000, 10_000_000} {
		s = append(s, scenario{
			name: "growth pending " + count(pending), rounds: aimed, peers: self,
			take: takePendingGrowth(pending, 200_000),
		})
	}
	for _, n := range []int{1, 10, 100, 1000} {
		s = append(s, scenario{
			name: "growth workers " + count(n), rounds: 2, peers: self,
			take: takeWorkersGrowth(n, 100_000),
		})
	}
	for _, n := range []int{1, 10, 100, 1000} {
		s = append(s, scenario{
			name: "growth queues " + count(n), rounds: 2, peers: self,
			take: takeQueuesGrowth(n, 100_000),
		})
	}
	return s
}
