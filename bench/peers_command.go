package main

import (
	"context"
	"time"
)

// peersCommand runs the command `peers`: every installed peer, at the base point and with each durability.
func peersCommand(ctx context.Context, args []string) error {
	o := options{rounds: 5, axisRounds: 5, within: 28 * time.Minute}
	_ = measureFlags("peers", &o).Parse(args)
	r, err := o.runner(commandLine("peers", args), allPeers())
	if err != nil {
		return err
	}
	if err := r.run(ctx, peerScenarios()); err != nil {
		return err
	}
	for _, f := range r.results.Figures {
		if f.Table != peersTable { // keep them apart from the figures of `bench`
			f.Table = peersTable + " " + f.Table
		}
	}
	return o.output(r.results)
}

// peersTable is the table of `peers`; the names of its other tables begin with it.
const peersTable = "peers"

func peerScenarios() []scenario {
	const base = 100_000
	s := []scenario{
		{name: "enqueue 1", awake: true, take: takeEnqueue(peersTable, "enqueue, "+producersRow(1), 1, base/5)},
		{name: "enqueue 16", take: takeEnqueue(peersTable, "enqueue, "+producersRow(16), 16, base)},
		{name: "enqueue 64", take: takeEnqueue(peersTable, "enqueue, "+producersRow(64), 64, base)},
		{name: "enqueue 256", take: takeEnqueue(peersTable, "enqueue, "+producersRow(256), 256, base)},
		{name: "enqueue batch", take: takeBatch(peersTable, "enqueue, 1,000 a call", 2*base)},
		{name: "cost pending", take: takePending},
		{name: "latency idle", awake: true, take: takeWakeUp},
	}
	for _, aof := range []string{aofOff, aofEverysec, aofAlways} {
		d := drain{n: 2 * base, rows: []drainRow{{peersTable, "drain, AOF " + aof}}, cost: aof == aofEverysec}
		n := base / 2
		if aof == aofAlways {
			d.n, n = base/2, base/4
		}
		s = append(s, scenario{name: "drain " + aof, aof: aof, take: takeDrain(d)})
		if aof != aofEverysec {
			s = append(s, scenario{
				name: "enqueue 64 " + aof, aof: aof,
				take: takeEnqueue(peersTable, "enqueue, 64 producers, AOF "+aof, 64, n),
			})
		}
	}
	return s
}
