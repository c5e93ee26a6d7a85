package main

import (
	"context"
	"time"
)

// benchCommand runs the command `bench`: delayed, asynq and the ceiling on every axis.
func benchCommand(ctx context.Context, args []string) error {
	r := &runner{rounds: 7, within: 12 * time.Minute}
	if err := parse("bench", args, r, benchPeers, nil); err != nil {
		return err
	}
	if err := r.run(ctx, benchScenarios()); err != nil {
		return err
	}
	return r.output()
}

// The peers of commands and scenarios.
var (
	benchPeers = []string{"delayed", "asynq", "ceiling"}
	twoPeers   = []string{"delayed", "asynq"}
	self       = []string{"delayed"}
)

// few is the number of rounds of what takes long, or whose figures hardly differ between rounds.
const few = 3

// benchScenarios returns the scenarios of `bench`: one axis at a time from the base point, which is AOF everysec,
// concurrency 50, 20 bytes, a handler that only counts, no network.
func benchScenarios() []scenario {
	const base = 400_000
	network := scenario{delay: time.Millisecond / 2, rounds: few} // in each direction
	s := []scenario{
		{name: "enqueue 1", awake: true, take: takeEnqueue("enqueue", producersRow(1), 1, 20_000)},
		{name: "enqueue 16", rounds: few, take: takeEnqueue("enqueue", producersRow(16), 16, 100_000)},
		{name: "enqueue 64", take: takeEnqueue("enqueue", producersRow(64), 64, 200_000)},
		{name: "enqueue 256", take: takeEnqueue("enqueue", producersRow(256), 256, 200_000)},
		{name: "enqueue batch", take: takeBatch("enqueue", "1,000 a call", 500_000)},
		{name: "cost pending", rounds: few, take: takePending},
		{name: "start", awake: true, rounds: few, take: takeStart},
	}
	for aof, n := range durabilities(200_000, 50_000) {
		s = append(s,
			scenario{name: "aof " + aof + " drain", aof: aof, take: takeDrain(drain{
				n: 2 * n, table: "aof", row: "drain, AOF " + aof,
			})},
			scenario{
				name: "aof " + aof + " enqueue 64", aof: aof, rounds: few,
				take: takeEnqueue("aof", "enqueue, 64 producers, AOF "+aof, 64, n),
			},
			scenario{
				name: "aof " + aof + " enqueue batch", aof: aof, rounds: few,
				take: takeBatch("aof", "enqueue, 1,000 a call, AOF "+aof, 4*n),
			})
	}
	for _, form := range forms {
		for _, n := range []int{64, 256} {
			name := "options " + form + " " + count(n)
			s = append(s, scenario{name: name, rounds: few, peers: twoPeers, take: takeForm(form, n, 60_000)})
		}
	}
	add := func(like scenario, name string, take func(*bed)) {
		like.name, like.take = name, take
		s = append(s, like)
	}
	draining := func(name string, rounds int, peers []string, d drain) {
		d.table = "drain"
		add(scenario{rounds: rounds, peers: peers}, "drain "+name, takeDrain(d))
	}
	draining("50", 0, nil, drain{n: base, row: concurrencyRow(baseConcurrency), cost: true})
	for _, n := range []int{1, 10, 200} {
		draining(count(n), few, twoPeers, drain{n: base / 2, row: concurrencyRow(n), concurrency: n})
	}
	draining("1 KiB", few, nil, drain{n: base / 4, row: "payload 1 KiB", size: 1 << 10})
	draining("10 KiB", 0, nil, drain{n: base / 16, row: "payload 10 KiB", size: 10 << 10})
	draining("1 ms", few, twoPeers, drain{n: base / 8, row: "handler 1 ms", sleep: time.Millisecond})
	both := scenario{rounds: few, peers: twoPeers}
	add(both, "outcome retried", takeRetried("fails once, then succeeds", 60_000))
	add(both, "outcome failing", takeFailing("fails and is archived", 60_000))
	for _, n := range []int{1_000, 100_000, 10_000_000} {
		add(scenario{rounds: few, peers: self}, "growth "+count(n), takeGrowth(n, 200_000))
	}
	mine := scenario{awake: true, peers: []string{"delayed", "ceiling"}}
	add(mine, "latency idle", takeWakeUp(latencyTable))
	theirs := scenario{awake: true, rounds: few, peers: []string{"asynq"}} // it polls, so it takes long
	add(theirs, "latency idle asynq", takeWakeUp(latencyTable))
	add(scenario{rounds: few}, "latency capacity", takeCapacity(200_000))
	both.rounds = 1
	add(both, "late burst", takeLateness("scheduled, after it is due, 100,000 in one second", 100_000, 1))
	add(both, "memory pending", takeMemory("1,000,000 pending", "", 1_000_000))
	add(both, "memory scheduled", takeMemory("100,000 scheduled", "scheduled", 100_000))
	add(both, "memory unique", takeMemory("100,000 unique", "unique", 100_000))
	both.awake = true
	add(both, "late idle", takeLateness("scheduled, after it is due, idle", 200, 2))
	add(network, "network enqueue 64", takeEnqueue("network", "enqueue, 64 producers, +1 ms", 64, 50_000))
	add(network, "network enqueue batch", takeBatch("network", "enqueue, 1,000 a call, +1 ms", 200_000))
	add(network, "network drain", takeDrain(drain{n: 20_000, table: "network", row: "drain, +1 ms"}))
	network.awake = true
	add(network, "network enqueue 1", takeEnqueue("network", "enqueue, 1 producer, +1 ms", 1, 1000))
	return s
}

// durabilities yields those that are not the base point's, with a number of tasks.
func durabilities(off, always int) func(yield func(string, int) bool) {
	return func(yield func(string, int) bool) { _ = yield(aofOff, off) && yield(aofAlways, always) }
}

// peersTable is the table of `peers`.
const peersTable = "peers"

// peersCommand runs the command `peers`: every peer that people use, at the base point and with each durability.
func peersCommand(ctx context.Context, args []string) error {
	r := &runner{rounds: 5, within: 15 * time.Minute}
	if err := parse("peers", args, r, []string{"delayed", "asynq", "river", "jetstream"}, nil); err != nil {
		return err
	}
	if err := r.run(ctx, peerScenarios()); err != nil {
		return err
	}
	for _, f := range r.results.Figures {
		f.Table = peersTable // costs too
	}
	return r.output()
}

func peerScenarios() []scenario {
	const base = 100_000
	s := []scenario{
		{name: "enqueue 1", awake: true, take: takeEnqueue(peersTable, "enqueue, "+producersRow(1), 1, base/5)},
		{name: "enqueue 16", take: takeEnqueue(peersTable, "enqueue, "+producersRow(16), 16, base)},
		{name: "enqueue 64", take: takeEnqueue(peersTable, "enqueue, "+producersRow(64), 64, base)},
		{name: "enqueue 256", take: takeEnqueue(peersTable, "enqueue, "+producersRow(256), 256, base)},
		{name: "enqueue batch", take: takeBatch(peersTable, "enqueue, 1,000 a call", 2*base)},
		{name: "latency idle", awake: true, take: takeWakeUp(peersTable)},
		{name: "drain", take: takeDrain(drain{n: 2 * base, table: peersTable, row: "drain, AOF everysec", cost: true})},
	}
	for aof, n := range durabilities(2*base, base/2) {
		s = append(s,
			scenario{name: "drain " + aof, aof: aof, take: takeDrain(drain{
				n: n, table: peersTable, row: "drain, AOF " + aof,
			})},
			scenario{
				name: "enqueue 64 " + aof, aof: aof,
				take: takeEnqueue(peersTable, "enqueue, 64 producers, AOF "+aof, 64, n/2),
			})
	}
	return s
}
