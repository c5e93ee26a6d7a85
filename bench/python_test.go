package main

import (
	"strings"
	"testing"
)

func samplePython() *results {
	r := &results{Peers: []seen{
		{Name: "godelayed"},
		{Name: "godelayed-processes"},
		{Name: "keakon"},
		{Name: "rq"},
		{Name: "rq-fork"},
	}}
	for i, ours := range []float64{100, 125, 120} {
		r.add(pythonTable, pythonInside, perSecond, false, "godelayed", ours)
		r.add(pythonTable, pythonInside, perSecond, false, "keakon", []float64{110, 100, 80}[i])
		r.add(pythonTable, pythonInside, perSecond, false, "rq", ours/12.3)
	}
	r.add(pythonTable, pythonProcesses, perSecond, false, "rq-fork", 5)
	r.add(pythonTable, pythonProcesses, perSecond, false, "godelayed-processes", 100)
	r.add(pythonTable, pythonBulk, perSecond, false, "godelayed", 99)
	r.add(pythonTable, pythonOneByOne, perSecond, false, "keakon", 10)
	return r
}

func TestPythonReport(t *testing.T) {
	text := report(samplePython())
	for _, want := range []string{
		"| bulk producer: at least 10 times keakon's, which has no call for many | 9.90 | **no** |",
		"| worker: not slower than keakon's | **1.25** (0.91–1.50) | yes |",
		"| worker: at least 10 times RQ's SimpleWorker | **12** (12–12) | yes |",
		"| tasks/s | enqueue, one by one | enqueue, 1,000 a call | drain, in the worker's process | drain, in " +
			"processes |",
		"| rq-fork | – | – | – | 5.00; × 20 |",
		"| keakon | 10 | – | 100 (80–110); × 1.25 (0.91–1.50) | – |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Celery") {
		t.Errorf("an aim beside a peer that was not measured:\n%s", text)
	}
}

// TestPythonScenarios checks that the scenarios name only existing peers, and runs those that CI has with few tasks.
func TestPythonScenarios(t *testing.T) {
	known := map[string]bool{}
	for _, p := range pythonPeers {
		known[p.name] = true
	}
	o := options{
		rounds: 1, axisRounds: 1, scale: 0.01, quiet: true, among: pythonPeers,
		peers: "godelayed,godelayed-processes,keakon",
	}
	r, err := o.runner("test", pythonPeers)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.results.Peers {
		if p.Missing != "" {
			t.Fatalf("%s is missing: %s", p.Name, p.Missing)
		}
	}
	for _, s := range pythonScenarios() {
		for _, name := range s.peers {
			if !known[name] {
				t.Errorf("%s: there is no peer %s", s.name, name)
			}
		}
		if err := r.turn(t.Context(), &s, 0); err != nil {
			t.Fatal(err)
		}
	}
	for row, peers := range map[string][]string{
		pythonOneByOne: {"godelayed", "keakon"}, pythonBulk: {"godelayed"}, pythonInside: {"godelayed", "keakon"},
		pythonProcesses: {"godelayed-processes"},
	} {
		f := r.results.find(pythonTable, row, perSecond)
		for _, name := range peers {
			if f == nil || len(f.Values[name]) != 1 || f.Values[name][0] <= 0 {
				t.Errorf("%s of %s was not measured: %+v", row, name, f)
			}
		}
	}
}
