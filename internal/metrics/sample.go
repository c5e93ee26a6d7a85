// Package metrics counts what workers do, and how long tasks wait and run. A worker adds to Samples in memory; Redis
// keeps them encoded, for each second of the last hour, each minute of the last day, each day, and as a whole.
package metrics

import (
	"encoding/binary"
	"errors"
	"time"
)

// Sample is what has happened to the tasks of one function in some time.
type Sample struct {
	Runs     uint64 // handlers that have returned, or were not called because the arguments do not fit; none snoozed
	Failed   uint64 // of Runs: those that count as failures
	Archived uint64 // of Failed: those that are not tried again

	Wait Histogram // from when a task could start until it did
	Run  Histogram // how long handlers took
}

// Merge adds another sample.
func (s *Sample) Merge(other *Sample) {
	s.Runs += other.Runs
	s.Failed += other.Failed
	s.Archived += other.Archived
	s.Wait.Merge(&other.Wait)
	s.Run.Merge(&other.Run)
}

// format is the first byte of an encoded sample.
const format = 1

// Append appends the encoded sample: the format, then numbers as uvarint: runs, failed, archived, and two histograms;
// of each the sum in µs, the number of buckets that are not empty, and of each its distance from the one before and its
// count.
func (s *Sample) Append(dst []byte) []byte {
	dst = append(dst, format)
	for _, n := range [...]uint64{s.Runs, s.Failed, s.Archived} {
		dst = binary.AppendUvarint(dst, n)
	}
	for _, h := range [...]*Histogram{&s.Wait, &s.Run} {
		full := uint64(0)
		for _, n := range h.Counts {
			if n > 0 {
				full++
			}
		}
		dst = binary.AppendUvarint(dst, uint64(h.Sum.Microseconds())) //nolint:gosec // it is not negative
		dst = binary.AppendUvarint(dst, full)
		last := 0
		for i, n := range h.Counts {
			if n > 0 {
				dst = binary.AppendUvarint(dst, uint64(i-last)) //nolint:gosec // it is not negative
				dst = binary.AppendUvarint(dst, n)
				last = i
			}
		}
	}
	return dst
}

var errSample = errors.New("no sample of metrics")

// MergeEncoded adds an encoded sample. It changes nothing if that is malformed or of a later format.
func (s *Sample) MergeEncoded(raw []byte) error {
	if len(raw) == 0 || raw[0] != format {
		return errSample
	}
	d := decoder{raw: raw[1:]}
	var other Sample
	for _, n := range [...]*uint64{&other.Runs, &other.Failed, &other.Archived} {
		*n = d.next(maxCount)
	}
	for _, h := range [...]*Histogram{&other.Wait, &other.Run} {
		h.Sum = time.Duration(d.next(maxCount/1000)) * time.Microsecond //nolint:gosec // bounded
		at := uint64(0)
		for range d.next(Buckets) {
			at += d.next(Buckets - 1)
			n := d.next(maxCount)
			if at >= Buckets {
				return errSample
			}
			h.Counts[at] += n
		}
	}
	if d.bad || len(d.raw) > 0 {
		return errSample
	}
	s.Merge(&other)
	return nil
}

// maxCount bounds what one sample counts, so that sums of samples do not overflow.
const maxCount = 1 << 60

type decoder struct {
	raw []byte
	bad bool
}

// next reads a number of at most limit; 0 once something was malformed.
func (d *decoder) next(limit uint64) uint64 {
	v, n := binary.Uvarint(d.raw)
	if d.bad || n <= 0 || v > limit {
		d.bad = true
		return 0
	}
	d.raw = d.raw[n:]
	return v
}
