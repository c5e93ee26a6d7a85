package main

import (
	"slices"
	"strings"
	"testing"
)

// guardSample has one ratio to asynq and one to the ceiling.
func guardSample(asynq, ceiling float64) *results {
	r := &results{Date: "2026-01-02 03:04"}
	for peer, value := range map[string]float64{"delayed": 300, "asynq": 300 / asynq, "ceiling": 300 / ceiling} {
		r.add("aof", "drain, AOF off", perSecond, false, peer, value)
	}
	r.add("cost", "draining", "EVALSHA per task", true, "delayed", 0.02)
	return r
}

func TestGuard(t *testing.T) {
	published := guardSample(30, 0.7)
	for _, tt := range []struct {
		asynq, ceiling float64
		behind         []bool
	}{
		{30, 0.7, []bool{false, false}},
		{25.6, 0.6, []bool{false, false}}, // by less than 15 %
		{25.4, 0.7, []bool{true, false}},
		{30, 0.59, []bool{false, true}},
		{90, 0.1, []bool{false, true}}, // faster in one respect does not make up for another
	} {
		lines, behind := compare(published, guardSample(tt.asynq, tt.ceiling))
		if len(lines) != 3 {
			t.Fatalf("%v: expected a head, the ratio to asynq and the one to the ceiling", lines)
		}
		var want []string
		for i, line := range lines[1:] {
			if tt.behind[i] {
				want = append(want, line[0])
			}
			if (line[3] == "**behind**") != tt.behind[i] {
				t.Errorf("%v: expected behind %v", line, tt.behind[i])
			}
		}
		if !slices.Equal(behind, want) {
			t.Errorf("expected %q behind, found %q", want, behind)
		}
	}
	if lines, _ := compare(&results{}, guardSample(30, 0.7)); len(lines) != 1 {
		t.Errorf("%v was compared with nothing", lines)
	}
}

// TestGuardTakesWhatIsPublished checks that the scenarios that guard takes exist, and that their figures are published.
func TestGuardTakesWhatIsPublished(t *testing.T) {
	scenarios := benchScenarios()
	for _, name := range guarded {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			t.Errorf("there is no scenario %q", name)
		}
	}
	published, err := readResults(publishedFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range [][2]string{
		{"enqueue", producersRow(64)},
		{"enqueue", producersRow(256)},
		{"enqueue", "1,000 a call"},
		{"drain", concurrencyRow(baseConcurrency)},
		{"aof", "drain, AOF off"},
	} {
		if published.find(f[0], f[1], perSecond) == nil {
			t.Errorf("%s lacks %s, %s", publishedFile, f[0], f[1])
		}
	}
	err = guardCommand(t.Context(), []string{"-published", t.TempDir() + "/none.json", "-peers", "delayed"})
	if err == nil || !strings.Contains(err.Error(), "publish") {
		t.Errorf("without published figures: %v", err)
	}
}
