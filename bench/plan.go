package main

import "time"

// plan makes a run end in time on a slow machine. Each scenario has its first round. Further rounds of figures without
// an aim take place only if there is time for all rounds of those with an aim.
type plan struct {
	within  time.Duration // 0: no limit
	aimed   []bool
	last    []time.Duration // how long the last turn of each scenario took
	to      []int           // turns that are still to come
	leftOut int
}

func newPlan(r *runner, scenarios []scenario) *plan {
	p := &plan{
		within: r.within, aimed: make([]bool, len(scenarios)), last: make([]time.Duration, len(scenarios)),
		to: make([]int, len(scenarios)),
	}
	for i := range scenarios {
		p.aimed[i], p.to[i] = scenarios[i].rounds == aimed, r.roundsOf(&scenarios[i])
	}
	return p
}

// took records how long a turn has taken.
func (p *plan) took(i int, d time.Duration) {
	p.last[i] = d
	p.to[i]--
}

// fits reports whether there is time for a turn of a scenario; if not, the scenario gets no more turns. elapsed is the
// time since the start.
func (p *plan) fits(i int, elapsed time.Duration) bool {
	need := elapsed + p.last[i]
	for j := range p.aimed {
		if p.aimed[j] && !p.aimed[i] {
			need += time.Duration(p.to[j]) * p.last[j]
		}
	}
	if p.within == 0 || need <= p.within {
		return true
	}
	p.to[i]--
	return false
}
