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

// ratio compares two peers: the median and the range of the ratios of single rounds. In a round both took turns, so
// that what made the machine slower or faster from round to round is not in it.
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

// better compares delayed with another peer, so that more than 1 always says that delayed is ahead.
func (f *figure) better(other string) (spread, bool) {
	if f.Less {
		return f.ratio(other, "delayed")
	}
	return f.ratio("delayed", other)
}
