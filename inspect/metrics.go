package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Grain is how finely Metrics divides time.
type Grain uint8

// The grains. Redis keeps seconds for an hour, minutes for a day, and days for 90 days. Total is the sum of all times;
// it begins anew when nothing has run for 90 days.
const (
	Seconds = Grain(redisstore.GrainSecond)
	Minutes = Grain(redisstore.GrainMinute)
	Days    = Grain(redisstore.GrainDay)
	Total   = Grain(redisstore.GrainTotal)
)

// reach is how far back Redis keeps samples.
var reach = [...]time.Duration{Seconds: time.Hour, Minutes: 24 * time.Hour, Days: 90 * 24 * time.Hour, Total: 0}

// Sample is what has happened to the tasks of one function in one second, minute or day. The workers that run tasks add
// to it with their heartbeats, so the latest seconds grow. What a worker has not published when it dies is missing:
// what its tasks have done since its last heartbeat, which it renews four times in WorkerConfig.HeartbeatLife. If an
// answer of Redis is lost, some of the grains may miss a part too. Nothing is counted twice. Counts, which change
// together with the tasks themselves, miss nothing. Legacy workers do not add to samples.
type Sample struct {
	At time.Time // when the second, minute or day (of UTC) began, by Redis's clock; zero for Total
	// Function is its path; "" is for all functions that found no room: there is room for 64 in each day and in Total,
	// for 60 × 64 in the seconds of a minute together, and likewise for the minutes of an hour.
	Function string

	// Runs are handlers that have returned, or were not called because the arguments do not fit. A task that was
	// snoozed, for example because a semaphore had no place for it, counts neither here nor in Wait and Run.
	Runs     uint64
	Failed   uint64 // of Runs: those that count as failures
	Archived uint64 // of Failed: those that are not tried again

	Wait Histogram // how long tasks waited for a worker, from when they could start
	Run  Histogram // how long handlers took
}

// Merge adds another sample to s, for example of another function or time.
func (s *Sample) Merge(other *Sample) {
	s.Runs += other.Runs
	s.Failed += other.Failed
	s.Archived += other.Archived
	s.Wait.h.Merge(&other.Wait.h)
	s.Run.h.Merge(&other.Run.h)
}

// Histogram counts durations. The zero value is empty.
type Histogram struct{ h metrics.Histogram }

// Count returns how many durations were counted.
func (h *Histogram) Count() uint64 { return h.h.Count() }

// Sum returns the sum of all durations.
func (h *Histogram) Sum() time.Duration { return h.h.Sum }

// Quantile returns the duration that the share q of all durations, from 0 to 1, does not exceed: 0.5 for the median. It
// is exact to a quarter, and 0 if there are no durations.
func (h *Histogram) Quantile(q float64) time.Duration { return h.h.Quantile(q) }

// Below returns how many durations lie below each of the given limits, which rise. A limit is exact if it is a power
// of two of microseconds; the durations between are taken as spread evenly.
func (h *Histogram) Below(limits ...time.Duration) []uint64 { return h.h.Below(limits) }

// Lateness returns how late due tasks of a queue became pending: those of In and At, and retries. Redis's clock has
// when a worker has moved a task and how long it was due then; how long it waited for an executor after that is in
// Sample.Wait. It counts since the first such task, and begins anew when none has become due for 90 days.
func (ins *Inspector) Lateness(ctx context.Context, queue string) (Histogram, error) {
	s, err := ins.store(ctx, queue)
	if err != nil {
		return Histogram{}, err
	}
	h, err := s.Lateness(ctx)
	return Histogram{h}, err
}

// Metrics returns what the tasks of a queue have done from one time to another, sorted by time and function. A zero
// from means as far back as Redis keeps samples, and a zero to means the present. With Total they are ignored. A time
// in which no task of a function has run has no sample: it counts as zero.
func (ins *Inspector) Metrics(ctx context.Context, queue string, g Grain, from, to time.Time) ([]Sample, error) {
	if g > Total {
		return nil, fmt.Errorf("inspect: Metrics: expected Seconds, Minutes, Days or Total, found Grain %d", g)
	}
	s, err := ins.store(ctx, queue)
	if err != nil {
		return nil, err
	}
	now, err := s.Time(ctx)
	if err != nil {
		return nil, err
	}
	if to.IsZero() || to.After(now) {
		to = now
	}
	if oldest := now.Add(-reach[g]); from.Before(oldest) {
		from = oldest
	}
	from, _ = redisstore.Grain(g).Truncate(from)
	var samples []Sample
	for {
		parts, next, err := s.Metrics(ctx, redisstore.Grain(g), from)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			if p := &parts[i]; !p.At.After(to) {
				samples = append(samples, Sample{
					p.At, p.Function, p.Sample.Runs, p.Sample.Failed, p.Sample.Archived,
					Histogram{p.Sample.Wait},
					Histogram{p.Sample.Run},
				})
			}
		}
		if from = next; g == Total || next.After(to) {
			break
		}
	}
	slices.SortFunc(samples, func(a, b Sample) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.Function, b.Function)
	})
	return samples, nil
}

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
