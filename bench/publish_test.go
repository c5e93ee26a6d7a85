package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWorse(t *testing.T) {
	r := sampleResults()
	if got := worse(r); !strings.HasPrefix(got, "None") {
		t.Errorf("ahead of asynq, behind the ceiling: %s", got)
	}
	r.add("drain", "concurrency 1", perSecond, false, "delayed", 5)
	r.add("drain", "concurrency 1", perSecond, false, "asynq", 6)
	r.add("start", "a worker", "ms", true, "delayed", 5)
	r.add("start", "a worker", "ms", true, "asynq", 6)
	if got := worse(r); got != "- concurrency 1, tasks/s: 5.00; asynq 6.00.\n" {
		t.Errorf("behind in one figure: %s", got)
	}
}

// TestPublish publishes sample figures of every table in a copy of the real page, twice.
func TestPublish(t *testing.T) {
	page, err := os.ReadFile("../docs/PERFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "PERFORMANCE.md")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	bench, peers, worst := sampleResults(), &results{Peers: []seen{{Name: "delayed"}}}, &results{}
	tables := []string{
		"enqueue", optionsTable, "outcomes", "drain", "aof", "network", latencyTable, "cost", "memory", "growth",
		"start",
	}
	for _, table := range tables {
		bench.add(table, "a row of "+table, perSecond, false, "delayed", 4711)
	}
	peers.add(peersTable, "a row of peers", perSecond, false, "delayed", 4711)
	for _, f := range []struct {
		measure string
		values  []float64
	}{
		{tookMeasure, []float64{2}},
		{perSecond, []float64{4711}},
		{cpuMeasure, []float64{1}},
		{commandsMeasure, []float64{8}},
		{ageMeasure, []float64{7, 9}},
		{longestRuns + "check", []float64{0.5}},
		{longestRuns + "move", []float64{4, 3, 2, 1}},
		{longestRuns + "claim", []float64{1}},
		{pingMeasure, []float64{0.25}},
		{longestPing, []float64{5}},
	} {
		for _, v := range f.values {
			worst.add(worstTable, "a row", f.measure, true, "delayed", v)
		}
	}
	args := []string{"-docs", dir, "-published", filepath.Join(dir, "published.json")}
	for name, r := range map[string]*results{"bench.json": bench, "peers.json": peers, "worst.json": worst} {
		if err := r.write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Join(dir, name))
	}
	var last string
	for range 2 {
		if err := publishCommand(t.Context(), args); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" && last != string(b) {
			t.Error("publishing the same figures again changed the page")
		}
		last = string(b)
	}
	for _, table := range append(tables, peersTable) {
		if !strings.Contains(last, "| a row of "+table+", tasks/s | 4,711 |") {
			t.Errorf("the page has no row of %s", table)
		}
	}
	for _, text := range []string{
		"| a row | 2.00 | 4,711 | 1.00 | 8.00 | 7.00; 9.00 |",
		"| a row | move 4.00, 3.00, 2.00; claim 1.00 | 0.25 | 5.00 |",
	} {
		if !strings.Contains(last, text) {
			t.Errorf("the page lacks %s", text)
		}
	}
	published, err := readResults(filepath.Join(dir, "published.json"))
	if err != nil || published.find("drain", "concurrency 50", perSecond) == nil {
		t.Errorf("published.json: %+v, %v", published, err)
	}
	if _, err := fillPage("a page without markers", bench); err == nil {
		t.Error("a page without markers was filled")
	}
}

// TestPageShowsWhatIsPublished compares the page with the figures that are kept, and looks for lines that are too wide.
func TestPageShowsWhatIsPublished(t *testing.T) {
	page, err := os.ReadFile("../docs/PERFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	r, err := readResults(publishedFile)
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fillPage(string(page), r)
	if err != nil {
		t.Fatal(err)
	}
	if filled != string(page) {
		t.Errorf("docs/PERFORMANCE.md differs from %s: run `go run . publish %[1]s` in bench", publishedFile)
	}
	for line := range strings.Lines(filled) {
		if utf8.RuneCountInString(line) > 121 {
			t.Errorf("wider than 120 columns: %s", line)
		}
	}
}
