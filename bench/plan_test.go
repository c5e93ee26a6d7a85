package main

import (
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	scenarios := []scenario{{name: "aimed", rounds: aimed}, {name: "axis"}, {name: "once", rounds: 1}}
	r := &runner{rounds: 5, axisRounds: 3, within: 100 * time.Second}
	p := newPlan(r, scenarios)
	for i := range scenarios {
		p.took(i, 10*time.Second)
	}
	expect := func(i int, elapsed time.Duration, want bool) {
		t.Helper()
		if got := p.fits(i, elapsed); got != want {
			t.Errorf("%s after %v: %v, expected %v", scenarios[i].name, elapsed, got, want)
		}
	}
	expect(1, 50*time.Second, true) // 50 + 10 + 4 · 10
	expect(1, 51*time.Second, false)
	p.took(0, 10*time.Second)
	expect(1, 60*time.Second, true) // 60 + 10 + 3 · 10
	expect(0, 90*time.Second, true)
	expect(0, 91*time.Second, false) // leaves two to come
	expect(1, 71*time.Second, false)
	expect(1, 70*time.Second, true)
	if r.within = 0; !newPlan(r, scenarios).fits(1, time.Hour) {
		t.Error("without a bound something is left out")
	}
}
