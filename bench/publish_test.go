package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	page := "prose\n<!-- begin: a -->\nold\n<!-- end: a -->\nmore prose\n"
	once, err := fill(page, "a", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "prose\n<!-- begin: a -->\n\nnew\n\n<!-- end: a -->\nmore prose\n"
	if once != want {
		t.Errorf("%q, expected %q", once, want)
	}
	if twice, err := fill(once, "a", "new\n"); err != nil || twice != once {
		t.Errorf("filling again changed it: %q, %v", twice, err)
	}
	for _, broken := range []string{"", "<!-- begin: a -->\n", "<!-- end: a -->"} {
		if _, err := fill(broken, "a", "new"); err == nil {
			t.Errorf("%q: no error", broken)
		}
	}
}

func TestWorse(t *testing.T) {
	r := sampleResults()
	if got := worse(r); !strings.HasPrefix(got, "In none") {
		t.Errorf("ahead of asynq, behind the ceiling: %s", got)
	}
	r.add("drain", "concurrency 1", perSecond, false, "delayed", 5)
	r.add("drain", "concurrency 1", perSecond, false, "asynq", 6)
	r.add("start", "a worker", "ms", true, "delayed", 5)
	r.add("start", "a worker", "ms", true, "asynq", 6)
	if got := worse(r); got != "- Draining, concurrency 1, tasks/s: 5.00; asynq 6.00.\n" {
		t.Errorf("behind in one figure: %s", got)
	}
}

// TestPageHasEveryMarker publishes sample figures of every table in a copy of the real page.
func TestPageHasEveryMarker(t *testing.T) {
	page, err := os.ReadFile("../docs/PERFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "PERFORMANCE.md"), page, 0o600); err != nil {
		t.Fatal(err)
	}
	bench, peers := sampleResults(), sampleResults()
	for _, table := range []string{
		"enqueue", optionsTable, outcomesTable, "drain", "aof", "network", latencyTable, "cost", "memory", growthTable,
		"start", "fairness",
	} {
		bench.add(table, "a row of "+table, perSecond, false, "delayed", 4711)
	}
	for _, table := range []string{peersTable, peersTable + " cost", peersTable + " latency"} {
		peers.add(table, "a row of "+table, perSecond, false, "delayed", 4711)
	}
	peers.Figures = peers.Figures[3:]
	worst := &results{Peers: []seen{{Name: "delayed"}}}
	for _, f := range []struct {
		measure string
		value   float64
	}{
		{tookMeasure, 2},
		{perSecond, 4711},
		{cpuMeasure, 1},
		{commandsMeasure, 8},
		{ageMeasure, 7},
		{ageMeasure, 9},
		{runsMeasure, 0},
		{longestRuns + "move", 3},
		{longestRuns + "move", 4},
		{longestRuns + "claim", 1},
		{longestRuns + "check", 0.5},
		{pingMeasure, 0.25},
		{longestPing, 5},
	} {
		worst.add(worstTable, "a row", f.measure, true, "delayed", f.value)
	}
	args := []string{
		"-docs", dir, "-published", filepath.Join(dir, "published.json"), "-published-python",
		filepath.Join(dir, "python.json"),
	}
	for name, r := range map[string]*results{
		"bench.json": bench, "peers.json": peers,
		"from-python.json": samplePython(), "worst.json": worst,
	} {
		if err := r.write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Join(dir, name))
	}
	if err := publishCommand(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	filled, err := os.ReadFile(filepath.Join(dir, "PERFORMANCE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for table := range titles {
		if !strings.Contains(string(filled), "| a row of "+table+" |") {
			t.Errorf("no row of table %s", table)
		}
	}
	published, err := readResults(filepath.Join(dir, "published.json"))
	if err != nil || published.find("drain", "concurrency 50", perSecond) == nil {
		t.Errorf("published.json: %+v, %v", published, err)
	}
	if kept, err := readResults(filepath.Join(dir, "python.json")); err != nil ||
		kept.find(pythonTable, pythonInside, perSecond) == nil {
		t.Errorf("python.json: %+v, %v", kept, err)
	}
	for _, text := range []string{
		"| worker: at least 10 times RQ's SimpleWorker | **12** (12–12) | yes |",
		"| keakon | 10 | – | 100 (80–110); × 1.25 (0.91–1.50) |",
		"| a row | 2.00 | 4,711 | 1.00 | 8.00 | 7.00; 9.00 |",
		"| a row | move 4.00, 3.00; claim 1.00 | 0 | 0.25 | 5.00 |",
	} {
		if !strings.Contains(string(filled), text) {
			t.Errorf("the page lacks %s", text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "performance", "drain.svg")); err != nil {
		t.Error(err)
	}
}

// TestPageFits publishes the figures that are kept in a copy of the real page, and looks for lines that are too wide.
func TestPageFits(t *testing.T) {
	b, err := os.ReadFile("../docs/PERFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for kind, file := range map[string]string{"bench": publishedFile, "python": "published-python.json"} {
		r, err := readResults(file)
		if err != nil {
			t.Fatal(err)
		}
		if page, err = fillPage(page, kind, r); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(page) {
		if !fits(line) {
			t.Errorf("wider than %d columns: %s", columnsOfPage, line)
		}
	}
}

// TestGraphsAreLinked finds each graph that the page shows among those that are drawn.
func TestGraphsAreLinked(t *testing.T) {
	page, err := os.ReadFile("../docs/PERFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range graphsOf(everyGraph()) {
		if !strings.Contains(string(page), "](performance/"+name+".svg)") {
			t.Errorf("docs/PERFORMANCE.md does not show performance/%s.svg", name)
		}
	}
}

// everyGraph has a figure for each graph, with names that need escaping.
func everyGraph() *results {
	r := &results{Peers: []seen{{Name: "delayed"}, {Name: `a<b&"c"`}}}
	for _, f := range [][3]string{
		{"aof", "drain, AOF off", perSecond},
		{"enqueue", "1 & 2", perSecond},
		{"drain", "x<y", perSecond},
		{"network", "n", perSecond},
		{"cost", "draining", whole},
		{latencyTable, "idle", "p99 [ms]"},
		{peersTable, "drain, AOF everysec", perSecond},
		{growthTable, "1,000 pending", scriptTime},
		{growthTable, "10,000 pending", scriptTime},
	} {
		for _, v := range []float64{10, 1000, 30} {
			r.add(f[0], f[1], f[2], false, "delayed", v)
			r.add(f[0], f[1], f[2], false, `a<b&"c"`, v/100)
		}
	}
	return r
}

func TestGraphsAreWellFormed(t *testing.T) {
	graphs := graphsOf(everyGraph())
	if len(graphs) != 8 {
		t.Errorf("%d graphs, expected 8", len(graphs))
	}
	graphs["nothing"] = drawLine("title", "x", nil)
	graphs["zero"] = drawBars("title", true, []barGroup{{"g", []bar{{"p", 0, spread{}}}}})
	for name, svg := range graphs {
		decoder := xml.NewDecoder(strings.NewReader(svg))
		elements := 0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, svg)
			}
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		if elements < 4 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: %d elements in\n%s", name, elements, svg)
		}
	}
}

func TestBarScale(t *testing.T) {
	linear, log := barScale(false, 10, 1000), barScale(true, 10, 1000)
	if linear(500) != linear(1000)/2 || linear(0) != 0 {
		t.Errorf("linear: %v, %v", linear(500), linear(1000))
	}
	if a, b := log(100)-log(10), log(1000)-log(100); a <= 0 || a-b > 1e-9 || b-a > 1e-9 || log(1000) != linear(1000) {
		t.Errorf("logarithmic: %v, %v", a, b)
	}
}
