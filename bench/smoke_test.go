package main

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
)

// TestBenchSmoke takes every scenario of `bench` once, with few tasks, to see that the program works. Those that take
// long by their nature are reduced or left to TestSlowScenarios.
func TestBenchSmoke(t *testing.T) {
	t.Parallel()
	r := smoke(t, "delayed", "asynq", "ceiling")
	for _, s := range benchScenarios() {
		switch {
		case strings.HasPrefix(s.name, "growth "), strings.HasPrefix(s.name, "memory "), s.name == "fairness",
			strings.HasPrefix(s.name, "late "), s.name == "drain mixed":
			continue
		case strings.Contains(s.name, "asynq") && strings.Contains(s.name, "latency"), strings.Contains(s.name, "10 %"),
			strings.Contains(s.name, "90 %"):
			continue // the same code as at 50 %
		case strings.Contains(s.name, "latency"):
			s.peers = []string{"delayed", "ceiling"} // asynq polls: it would take seconds
		}
		if strings.HasPrefix(s.name, "drain ") && s.name != "drain 50" || strings.HasPrefix(s.name, "network 1 ms") {
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
	for _, want := range []struct{ table, row, measure, peer string }{
		{"drain", "concurrency 50", perSecond, "asynq"},
		{"aof", "drain, AOF always", perSecond, "delayed"},
		{"enqueue", "1,000 a call", perSecond, "ceiling"},
		{"cost", "draining", "EVALSHA per task", "delayed"},
		{latencyTable, "50 % of capacity", "p99 [ms]", "ceiling"},
	} {
		if f := r.results.find(want.table, want.row, want.measure); f == nil || len(f.Values[want.peer]) == 0 {
			t.Errorf("%v was not measured", want)
		}
	}
	if text := report(r.results); !strings.Contains(text, "| concurrency 50 | ") ||
		!strings.Contains(text, "drain, AOF always: at least") {
		t.Errorf("the report lacks a row:\n%s", text)
	}
}

// TestSlowScenarios runs the scenarios that TestBenchSmoke leaves out.
func TestSlowScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	t.Parallel()
	r := smoke(t, "delayed", "asynq")
	for _, s := range []scenario{
		{name: "memory", take: takeMemory(20_000, "pending")},
		{name: "scheduled", take: takeWaiting("scheduled", 20_000, "scheduled")},
		{name: "fairness", peers: self, take: takeFairness(1)},
		{name: "late", take: takeLateness("late", 400, 1)},
		{name: "pending", peers: self, take: takePendingGrowth(1000, 200_000)},
		{name: "more pending", peers: self, take: takePendingGrowth(100_000, 200_000)},
		{name: "workers", peers: self, take: takeWorkersGrowth(10, 200_000)},
		{name: "queues", peers: self, take: takeQueuesGrowth(10, 200_000)},
	} {
		if err := r.turn(t.Context(), &s, 0); err != nil {
			t.Fatal(err)
		}
	}
	f := r.results.find("fairness", fairnessRow, "wait while an executor is free, max [ms]")
	if f == nil || f.Values["delayed"][0] > 10_000 {
		t.Errorf("fairness: %+v", f)
	}
	if _, ok := flatness(r.results); !ok {
		t.Error("growth with pending tasks was not measured")
	}
}

// TestWorstSmoke takes each case of `worst` once, with few tasks.
func TestWorstSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s, most of it waiting")
	}
	t.Parallel()
	r := smoke(t, "delayed")
	t.Run("cases", func(t *testing.T) {
		var mu sync.Mutex // protects r
		for _, s := range worstScenarios(false) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				one := smoke(t, "delayed")
				if err := one.turn(t.Context(), &s, 0); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				r.results.merge(one.results)
			})
		}
	})
	for _, want := range []struct{ row, measure string }{
		{"10 queues, wake-up", ageMeasure},
		{"10 queues, drain", perSecond},
		{"100 workers, idle", commandsMeasure},
		{"100 workers, all die at once", tookMeasure},
		{"5,000 scheduled, due in one second", longestPing},
		{"2,100 tasks fail, archive full", perSecond},
		{"1,000 lapsed locks, swept", cpuMeasure},
		{"1,000 calls in a group, combined and run", runsMeasure},
	} {
		f := r.results.find(worstTable, want.row, want.measure)
		if f == nil || len(f.Values["delayed"]) == 0 {
			t.Errorf("%v was not measured", want)
		}
	}
	if text := report(r.results); !strings.Contains(text, "\n| 10 queues, drain | ") {
		t.Errorf("the report lacks a row:\n%s", text)
	}
}

func smoke(t *testing.T, names ...string) *runner {
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
	return &runner{results: results, peers: peers, rounds: 1, axisRounds: 1, scale: 0.005, log: t.Output()}
}

// TestMissingPeer: the run names what is missing and goes on with the other peers.
func TestMissingPeer(t *testing.T) {
	missing := &peer{name: "gone", version: func() (string, error) { return "", errors.New("install it with x") }}
	r, installed, err := newResults("test", []*peer{missing})
	if err != nil || len(installed) != 0 || !strings.Contains(legend(r), "gone: not measured: install it with x") {
		t.Errorf("%v, %v, %v, %s", installed, r.Peers, err, legend(r))
	}
}

// TestDriverEnds checks the error for a driver that ends without an answer.
func TestDriverEnds(t *testing.T) {
	p := &peer{name: "ends", driver: func() ([]string, error) { return []string{"true"}, nil }}
	d, err := startProgram(p, "nowhere")
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if _, err := d.receive(); err == nil || !strings.Contains(err.Error(), "without an answer") {
		t.Error(err)
	}
}

// TestDriverSpeaks runs the protocol with a driver that is not a Go package.
func TestDriverSpeaks(t *testing.T) {
	script := `while read -r line; do case $line in
		*work*) echo '{"ready":true}'; echo '{"seconds":2,"cpu":1}';;
		*batch*) echo '{"none":true}';;
		*bad*) echo '{"error":"no luck"}';;
		*) echo '{"seconds":1}';;
		esac; done`
	p := &peer{name: "sh", driver: func() ([]string, error) { return []string{"sh", "-c", script}, nil }}
	d, err := startProgram(p, "nowhere")
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if a, err := d.do(&request{Op: "work", N: 1}); err != nil || a.Seconds != 2 || a.CPU != 1 {
		t.Errorf("work: %+v, %v", a, err)
	}
	if err := d.begin(&request{Op: "work", N: 1}); err != nil {
		t.Errorf("begin: %v", err)
	}
	if a, err := d.receive(); err != nil || a.Seconds != 2 {
		t.Errorf("receive: %+v, %v", a, err)
	}
	if _, err := d.do(&request{Op: "enqueue", Batch: 10}); !errors.Is(err, errNone) {
		t.Errorf("batch: %v", err)
	}
	if _, err := d.do(&request{Op: "bad"}); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("bad: %v", err)
	}
	if err := d.begin(&request{Op: "enqueue", N: 1}); err == nil {
		t.Error("an answer without ready was accepted")
	}
}
