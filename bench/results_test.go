package main

import (
	"math"
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

func TestTables(t *testing.T) {
	r := sampleResults()
	r.add("drain", "concurrency 1", perSecond, false, "ceiling", 7)
	r.add("drain", "concurrency 50", "p50 [ms]", true, "delayed", 1)
	text := report(r)
	for _, want := range []string{
		"| | delayed | asynq | ceiling |\n|---|---:|---:|---:|\n" +
			"| concurrency 50, tasks/s | 100 | 2.50; × 40 | 125; × 0.80 |\n" +
			"| concurrency 50, p50 [ms] | 1.00 | – | – |\n" +
			"| concurrency 1, tasks/s | – | – | 7.00 |\n",
		"\n| a pending task, bytes | 100 (90–110) |\n",
		"at commit `abc`, 2 minutes.\n2 cores",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	r.find("drain", "concurrency 50", perSecond).Values["asynq"] = []float64{1, 1, 1}
	if text := report(r); !strings.Contains(text, "| 1.00; × 100 (90–110) |") {
		t.Errorf("expected the range of the ratios in\n%s", text)
	}
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{3, 1, 2}, spread{2, 1, 3}},
		{[]float64{4, 1, 2, 3}, spread{2.5, 1, 4}},
		{[]float64{7}, spread{7, 7, 7}},
	} {
		if got := spreadOf(tt.values); got != tt.want {
			t.Errorf("%v: %v, expected %v", tt.values, got, tt.want)
		}
	}
	if got := spreadOf(nil); !math.IsNaN(got.Middle) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		if got := quantile(hundred, q); got != want {
			t.Errorf("%v: %v, expected %v", q, got, want)
		}
	}
	if got := quantile([]float64{5}, 0.99); got != 5 {
		t.Errorf("of one value: %v", got)
	}
}

func TestRatio(t *testing.T) {
	f := &figure{Values: map[string][]float64{"delayed": {100, 200, 300, 1}, "asynq": {10, 10, 20}}}
	if s, ok := f.better("asynq"); !ok || s != (spread{15, 10, 20}) {
		t.Errorf("%v, %v: expected the median and the range of the rounds' ratios", s, ok)
	}
	f.Less = true
	if s, ok := f.better("asynq"); !ok || math.Abs(s.Middle-1.0/15) > 1e-9 {
		t.Errorf("where less is better: %v, %v", s, ok)
	}
	if _, ok := f.better("nobody"); ok {
		t.Error("a ratio to nobody")
	}
	f.Less, f.Values["asynq"] = false, []float64{0, 0, 0}
	if s, ok := f.better("asynq"); ok {
		t.Errorf("a ratio to nothing: %v", s)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 0.0123: "0.012", 0.123: "0.12", 9.96: "10", 12.3: "12", 999: "999", 999.7: "1,000", 1234: "1,234",
		1234567: "1,234,567",
	} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, expected %s", v, got, want)
		}
	}
	if got := count(1000); got != "1,000" {
		t.Error(got)
	}
}

func TestParseInfo(t *testing.T) {
	const text = "# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_memory:1000\r\nused_memory_rss:3000\r\n# " +
		"Commandstats\r\n" +
		"cmdstat_evalsha:calls=10,usec=500,usec_per_call=50.00\r\n" +
		"cmdstat_rpush:calls=7,usec=9,usec_per_call=1\r\ncmdstat_info:calls=3,usec=1\r\n"
	s := parseInfo(text)
	if s.cpu != 3.75 || s.memory != 1000 {
		t.Errorf("%+v", s)
	}
	before := &snapshot{
		cpu: 1.75, memory: 400, calls: map[string]float64{"evalsha": 4},
		micros: map[string]float64{"evalsha": 100},
	}
	d := s.since(before)
	calls, micros := d.scripts()
	if d.cpu != 2 || d.memory != 600 || d.commands() != 13 || calls != 6 || micros != 400 {
		t.Errorf("%+v: %v commands, %v scripts of %v µs", d, d.commands(), calls, micros)
	}
}
