package main

import (
	"math"
	"slices"
)

// spread is the median of some values, and the smallest and the largest.
type spread struct{ Middle, Low, High float64 }

// spreadOf returns the spread of values, which is NaN if there are none.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	middle := sorted[n/2]
	if n%2 == 0 {
		middle = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return spread{middle, sorted[0], sorted[n-1]}
}

// quantile returns the value that a part q of the sorted values does not exceed.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(len(sorted)-1, max(0, int(math.Ceil(q*float64(len(sorted))))-1))]
}

// ratio compares two peers: the median and the range of the ratios of single rounds. Both peers took turns in each
// round, so changes of the machine's speed between rounds do not affect the ratios.
func (f *figure) ratio(peer, other string) (spread, bool) {
	a, b := f.Values[peer], f.Values[other]
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return spreadOf(ratios), len(ratios) > 0
}

// better compares delayed with another peer, so that more than 1 always means that delayed is ahead.
func (f *figure) better(other string) (spread, bool) {
	if f.Less {
		return f.ratio(other, "delayed")
	}
	return f.ratio("delayed", other)
}
