package inspect

import (
	"time"
)

// Series is what has run in a queue, in buckets of equal length.
type Series struct {
	From    time.Time // the beginning of the first bucket
	Step    time.Duration
	Buckets []Sample // of all functions together
	// Functions are the same by the paths of functions; "" stands for those that found no room of their own.
	Functions map[string]*FunctionSeries
}

// FunctionSeries is what one function has done.
type FunctionSeries struct {
	Sum          Sample
	Runs, Failed []uint64 // in each bucket
}

// SeriesOf adds up samples in n buckets. It leaves out those of other times.
func SeriesOf(samples []Sample, from time.Time, step time.Duration, n int) *Series {
	all := &Series{From: from, Step: step, Buckets: make([]Sample, n), Functions: map[string]*FunctionSeries{}}
	for i := range samples {
		s := &samples[i]
		at := int(s.At.Sub(from) / step)
		if s.At.Before(from) || at >= n {
			continue
		}
		f := all.Functions[s.Function]
		if f == nil {
			f = &FunctionSeries{Runs: make([]uint64, n), Failed: make([]uint64, n)}
			all.Functions[s.Function] = f
		}
		all.Buckets[at].Merge(s)
		f.Sum.Merge(s)
		f.Runs[at] += s.Runs
		f.Failed[at] += s.Failed
	}
	return all
}

// Sum adds up all buckets.
func (s *Series) Sum() (sum Sample) {
	for i := range s.Buckets {
		sum.Merge(&s.Buckets[i])
	}
	return sum
}
