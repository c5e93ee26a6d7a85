package main

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBenchSmoke takes every scenario of `bench` once, with few tasks, to see that the program works.
func TestBenchSmoke(t *testing.T) {
	t.Parallel()
	r := smoke(t, 0.005, "delayed", "asynq", "ceiling")
	for _, s := range benchScenarios() {
		switch {
		case strings.HasPrefix(s.name, "late ") || s.name == "latency idle asynq":
			s.peers = self // asynq polls: it would take seconds
		case strings.HasPrefix(s.name, "drain ") && s.name != "drain 50":
			s.peers = self // the code of other peers is that of drain 50
		}
		if err := r.turn(t.Context(), &s, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range r.results.Figures {
		for peer, values := range f.Values {
			for _, v := range values {
				if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || (v == 0 && !strings.Contains(f.Measure, "CPU")) {
					t.Errorf("%s, %s, %s: %s: %v", f.Table, f.Row, f.Measure, peer, v)
				}
			}
		}
	}
	measured(t, r, [][4]string{
		{"drain", "concurrency 50", perSecond, "asynq"},
		{"aof", "drain, AOF always", perSecond, "delayed"},
		{"enqueue", "1,000 a call", perSecond, "ceiling"},
		{"cost", "draining", "EVALSHA per task", "delayed"},
		{latencyTable, "idle", "p99 [ms]", "ceiling"},
		{"outcomes", "fails and is archived", perSecond, "asynq"},
		{"network", "drain, +1 ms", perSecond, "delayed"},
	})
	if text := report(r.results); !strings.Contains(text, "| concurrency 50, tasks/s | ") {
		t.Errorf("the report lacks a row:\n%s", text)
	}
}

// TestWorstSmoke takes each case of `worst` once, with few tasks.
func TestWorstSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s, most of it waiting")
	}
	t.Parallel()
	r := smoke(t, 0.005, "delayed")
	if err := r.run(t.Context(), worstScenarios(false)); err != nil {
		t.Fatal(err)
	}
	measured(t, r, [][4]string{
		{worstTable, "10 queues, wake-up", ageMeasure, "delayed"},
		{worstTable, "10 queues, drain", perSecond, "delayed"},
		{worstTable, "100 workers, idle", commandsMeasure, "delayed"},
		{worstTable, "100 workers, all die at once", tookMeasure, "delayed"},
		{worstTable, "5,000 scheduled, due in one second", longestPing, "delayed"},
		{worstTable, "2,100 tasks fail, archive full", perSecond, "delayed"},
		{worstTable, "1,000 calls in a group, combined and run", tookMeasure, "delayed"},
	})
	if text := report(r.results); !strings.Contains(text, "\n| 10 queues, drain | ") {
		t.Errorf("the report lacks a row:\n%s", text)
	}
}

// TestInspectorSmoke looks into a small queue.
func TestInspectorSmoke(t *testing.T) {
	t.Parallel()
	if err := inspectorCommand(t.Context(), []string{"-n", "2000", "-rounds", "1"}); err != nil {
		t.Fatal(err)
	}
}

// TestPeersSmoke takes every scenario of `peers` once, with few tasks. make bench-peers-setup runs it; make bench-smoke
// does not, because the stores of the peers need not be installed everywhere.
func TestPeersSmoke(t *testing.T) {
	t.Parallel()
	names := []string{"river", "jetstream"}
	r := smoke(t, 0.005, names...)
	r.only = regexp.MustCompile("batch|idle|drain") // each measurement of river makes a cluster, which takes a second
	if err := r.run(t.Context(), peerScenarios()); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		measured(t, r, [][4]string{
			{peersTable, "drain, AOF always", perSecond, name},
			{peersTable, "idle", "p50 [ms]", name},
			{"cost", "draining", "server CPU [s per 100,000]", name},
		})
	}
	if _, err := startPostgres("sometimes"); err == nil {
		t.Error("an unknown durability was accepted")
	}
}

// smoke returns a runner of one round.
func smoke(t *testing.T, scale float64, names ...string) *runner {
	t.Helper()
	var peers []*peer
	for _, name := range names {
		p, err := peerNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		// A test binary does not know the versions of its modules.
		known := *p
		known.version = func() (string, error) { return "0", nil }
		peers = append(peers, &known)
	}
	results, peers, err := newResults("test", peers)
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("")
	return &runner{results: results, peers: peers, rounds: 1, scale: scale, only: all, log: t.Output()}
}

func measured(t *testing.T, r *runner, figures [][4]string) {
	t.Helper()
	for _, want := range figures {
		if f := r.results.find(want[0], want[1], want[2]); f == nil || len(f.Values[want[3]]) == 0 {
			t.Errorf("%q was not measured", want)
		}
	}
}

// TestRounds: peers that are missing are named, later rounds are left out when time is over, and errors end the run.
func TestRounds(t *testing.T) {
	missing := &peer{name: "gone", version: func() (string, error) { return "", errors.New("install it with x") }}
	results, installed, err := newResults("test", []*peer{missing})
	if err != nil || len(installed) != 0 ||
		!strings.Contains(legend(results), "gone: not measured: install it with x") {
		t.Errorf("%v, %v, %v, %s", installed, results.Peers, err, legend(results))
	}
	r := smoke(t, 1, "delayed")
	r.rounds, r.within = 3, time.Nanosecond
	var taken []string
	take := func(name string) func(*bed) {
		return func(b *bed) {
			taken = append(taken, name)
			b.record("a", name, perSecond, false, 1)
		}
	}
	failing := func(*bed) { check(errors.New("no luck")) }
	none := func(*bed) { check(errNone) }
	if err := r.run(t.Context(), []scenario{
		{name: "one", take: take("one")}, {name: "none", take: none}, {name: "two", rounds: 1, take: take("two")},
	}); err != nil || !slices.Equal(taken, []string{"one", "two"}) {
		t.Errorf("expected a round of one and two, found %q, %v", taken, err)
	}
	if err := r.run(t.Context(), []scenario{{name: "bad", take: failing}}); err == nil ||
		err.Error() != "bad: delayed: no luck" {
		t.Errorf("expected the error of the measurement, found %v", err)
	}
}
