package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func sampleResults() *results {
	r := &results{
		Command: "go run . bench", Date: "2026-01-02 03:04", Minutes: 1.5,
		Machine: machine{Cores: 2, Go: "1.26", Commit: "abc"},
		Peers:   []seen{{Name: "delayed", Version: "this tree"}, {Name: "asynq", Version: "0.26.0"}, {Name: "ceiling"}},
	}
	for _, v := range []float64{100, 110, 90} {
		r.add("drain", "concurrency 50", perSecond, false, "delayed", v)
		r.add("drain", "concurrency 50", perSecond, false, "asynq", v/40)
		r.add("drain", "concurrency 50", perSecond, false, "ceiling", v*1.25)
		r.add("aof", "drain, AOF everysec", perSecond, false, "delayed", v)
		r.add("aof", "drain, AOF everysec", perSecond, false, "asynq", v/40)
		r.add("cost", "a pending task", "bytes", true, "delayed", v)
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	want := sampleResults()
	if err := want.write(file); err != nil {
		t.Fatal(err)
	}
	got, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		b, _ := os.ReadFile(file)
		t.Errorf("read %+v from\n%s", got, b)
	}
}

func TestReadResultsRefuses(t *testing.T) {
	for content, want := range map[string]string{"no": "-json", "{}": "no figures"} {
		file := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readResults(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestMerge(t *testing.T) {
	r, other := sampleResults(), &results{}
	other.add("drain", "concurrency 50", perSecond, false, "delayed", 7)
	other.add("drain", "new", perSecond, false, "delayed", 8)
	n := len(r.Figures)
	r.merge(other)
	if len(r.Figures) != n+1 || r.find("drain", "concurrency 50", perSecond).Values["delayed"][0] != 7 ||
		r.find("drain", "new", perSecond) == nil {
		t.Errorf("%+v", r.Figures)
	}
}

func TestTables(t *testing.T) {
	text := report(sampleResults())
	for _, want := range []string{
		"| tasks/s | delayed | asynq | ceiling | times asynq | times ceiling | rounds |\n|---|---:|---:|",
		"| concurrency 50 | 100 (90–110) | 2.50 (2.25–2.75) | 125 (112–138) | 40 | 0.80 | 3 |",
		"| drain, AOF everysec: at least 30 times asynq | 40",
		"| a pending task: at most 110 bytes | 100 (90–110) | yes |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
}

// TestWideTable has the ranges in a table of their own, without the lines that have none.
func TestWideTable(t *testing.T) {
	r := sampleResults()
	long := strings.Repeat("long ", 10) + "row"
	for i, v := range []float64{2_000_000, 3_000_000} {
		r.add("drain", long, perSecond, false, "delayed", v)
		r.add("drain", long, perSecond, false, "asynq", 1_000_000)
		r.add("drain", long, "p50 [ms]", true, "delayed", float64(i+1))
	}
	r.add("drain", long, "p99 [ms]", true, "delayed", 9)
	text := tableText(r, "drain")
	for _, want := range []string{
		"| | | delayed | asynq | ceiling | times asynq | times ceiling | rounds |\n|---|---|---:|",
		"| " + long + " | tasks/s | 2,500,000 | 1,000,000 | – | **2.50** | – | 2 |\n" +
			"| | p50 [ms] | 1.50 | – | – | – | – | 2 |\n" +
			"| | p99 [ms] | 9.00 | – | – | – | – | 1 |\n\nRanges of the rounds:\n\n",
		"| | | delayed | asynq | ceiling | times asynq | times ceiling |\n|---|---|---:|",
		"| " + long + " | tasks/s | 2,000,000–3,000,000 | 1,000,000–1,000,000 | – | 2.00–3.00 | – |\n" +
			"| | p50 [ms] | 1.00–2.00 | – | – | – | – |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "p99 [ms]") != 1 {
		t.Errorf("a line without ranges in\n%s", text)
	}
}

func TestWrap(t *testing.T) {
	words, table := strings.Repeat("µs ", 50)+"end\n", "| "+strings.Repeat("cell ", 50)+"|\n"
	got := wrap("- " + words + table + words)
	want := "- " + strings.Repeat("µs ", 38) + "µs\n  " + strings.Repeat("µs ", 11) + "end\n" + table +
		strings.Repeat("µs ", 39) + "µs\n" + strings.Repeat("µs ", 10) + "end\n"
	if got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if word := strings.Repeat("x", 130) + "\n"; wrap(word) != word {
		t.Errorf("a word was broken: %q", wrap(word))
	}
}

func TestManyPeers(t *testing.T) {
	r := sampleResults()
	for _, name := range []string{"other", "another"} {
		r.Peers = append(r.Peers, seen{Name: name})
		r.add("drain", "concurrency 50", perSecond, false, name, 50)
	}
	text := tableText(r, "drain")
	for _, want := range []string{
		"| | concurrency 50, tasks/s |\n", "\n| delayed | 100 (90–110) |\n", "\n| ceiling | 125 (112–138); × 0.80 |\n",
		"\n| other | 50; × 2.00 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	r.add("drain", strings.Repeat("long ", 20)+"row", perSecond, false, "other", 7)
	text = tableText(r, "drain")
	if want := "long row, tasks/s |\n|---|---:|\n| other | 7.00 |\n"; !strings.HasSuffix(text, want) {
		t.Errorf("expected a second table that ends with %q in\n%s", want, text)
	}
}

func TestAims(t *testing.T) {
	r := sampleResults()
	r.find("aof", "drain, AOF everysec", perSecond).Values["asynq"] = []float64{10, 10, 10}
	r.find("cost", "a pending task", "bytes").Values["delayed"] = []float64{111}
	for _, v := range aimsOf(r) {
		if v.reached {
			t.Errorf("%s: reached with %v", v.text, v.found)
		}
	}
	if len(aimsOf(r)) != 2 {
		t.Errorf("%d verdicts, expected those of the two aims that were measured", len(aimsOf(r)))
	}
	for pending, cost := range map[int]float64{1000: 1, 1_000_000: 1.2} {
		r.add(growthTable, count(pending)+" pending", scriptTime, true, "delayed", cost)
	}
	if v, ok := flatness(r); !ok || v.reached || v.found.Middle != 1.2 {
		t.Errorf("growth by a fifth: %+v, %v", v, ok)
	}
}
