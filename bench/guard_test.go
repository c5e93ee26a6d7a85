package main

import (
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
		checks := guardChecks(published, guardSample(tt.asynq, tt.ceiling))
		if len(checks) != 2 {
			t.Fatalf("%d checks, expected the ratio to asynq and the one to the ceiling", len(checks))
		}
		for i, c := range checks {
			if c.behind() != tt.behind[i] {
				t.Errorf("%s: published %v, now %v: behind is %v", c.name, c.published, c.now, c.behind())
			}
		}
		text := guardText(published, checks)
		if strings.Contains(text, "**behind**") != (tt.behind[0] || tt.behind[1]) {
			t.Errorf("verdict missing in\n%s", text)
		}
	}
	if checks := guardChecks(&results{}, guardSample(30, 0.7)); len(checks) != 0 {
		t.Errorf("%v was compared with nothing", checks)
	}
}

// TestGuardTakesWhatIsPublished checks that the names of scenarios for which guard looks exist.
func TestGuardTakesWhatIsPublished(t *testing.T) {
	if got := len(guardScenarios()); got != 5 {
		t.Errorf("%d scenarios, expected 5", got)
	}
	err := guardCommand(t.Context(), []string{"-published", t.TempDir() + "/none.json"})
	if err == nil || !strings.Contains(err.Error(), "publish") {
		t.Errorf("without published figures: %v", err)
	}
}
