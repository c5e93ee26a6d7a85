package metrics

import (
	"math/bits"
	"time"
)

// Buckets is the number of buckets of a Histogram. The last one has all durations from 50 days on.
const Buckets = 168

// Histogram counts durations. Four buckets stand for each doubling, from 4 µs on, so a bucket's bounds are at most a
// quarter apart; a duration below 4 µs has a bucket for each µs.
type Histogram struct {
	Counts [Buckets]uint64
	Sum    time.Duration
}

// bucketOf returns the index of the bucket that has d. A negative d counts as 0.
func bucketOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 4 {
		return int(us)
	}
	octave := bits.Len64(us) - 3 // 0 for 4 to 7 µs
	return min(4+4*octave+int(us>>octave&3), Buckets-1)
}

// Bound returns the upper bound of a bucket: it has the durations below it.
func Bound(bucket int) time.Duration {
	if bucket < 4 {
		return time.Duration(bucket+1) * time.Microsecond
	}
	octave, part := (bucket-4)/4, (bucket-4)%4
	return time.Duration(part+5) << octave * time.Microsecond
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	h.Counts[bucketOf(d)]++
	h.Sum += max(d, 0)
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.Counts {
		h.Counts[i] += n
	}
	h.Sum += other.Sum
}

// Count returns how many durations were added.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the duration below which the share q of all durations lies, from 0 to 1. Within a bucket it takes
// them as spread evenly. It returns 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	left := q * float64(h.Count())
	low := time.Duration(0)
	for i, n := range h.Counts {
		high := Bound(i)
		if n > 0 && left <= float64(n) {
			return low + time.Duration(float64(high-low)*max(left, 0)/float64(n))
		}
		left -= float64(n)
		low = high
	}
	return 0
}

// Below returns how many durations lie below each of the limits, which rise. Within a bucket it takes them as spread
// evenly.
func (h *Histogram) Below(limits []time.Duration) []uint64 {
	counts := make([]uint64, len(limits))
	for i, limit := range limits {
		low := time.Duration(0)
		for bucket, n := range h.Counts {
			high := Bound(bucket)
			if limit < high {
				counts[i] += uint64(float64(n) * float64(max(limit-low, 0)) / float64(high-low))
				break
			}
			counts[i] += n
			low = high
		}
	}
	return counts
}
