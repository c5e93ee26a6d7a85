package main

import (
	"math"
	"slices"
)

// spread is the middle of some values, and the smallest and the largest.
type spread struct{ Middle, Low, High float64 }

// spreadOf returns NaNs when there are no values.
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

// quantile returns the value that a part q of sorted values does not exceed.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(len(sorted)-1, max(0, int(math.Ceil(q*float64(len(sorted))))-1))]
}

// ratio compares two peers: the ratio of their medians, and the range of the ratios of single rounds, in which both took turns.
func (f *figure) ratio(peer, other string) (spread, bool) {
	a, b := f.Values[peer], f.Values[other]
	if len(a) == 0 || len(b) == 0 {
		return spread{}, false
	}
	s := spread{spreadOf(a).Middle / spreadOf(b).Middle, math.Inf(1), math.Inf(-1)}
	for i := range min(len(a), len(b)) {
		r := a[i] / b[i]
		s.Low, s.High = min(s.Low, r), max(s.High, r)
	}
	if math.IsNaN(s.Middle) || math.IsInf(s.Middle, 0) {
		return spread{}, false
	}
	return s, true
}

// better compares delayed with another peer, so that more than 1 always says that delayed is ahead.
func (f *figure) better(other string) (spread, bool) {
	if f.Less {
		return f.ratio(other, "delayed")
	}
	return f.ratio("delayed", other)
}
