package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/redistest"
)

// sampleOf returns a sample of n runs.
func sampleOf(n uint64) metrics.Sample {
	s := metrics.Sample{Runs: n}
	s.Run.Add(time.Duration(n) * time.Millisecond)
	return s
}

func encodedSample(s ...metrics.Sample) string {
	var sum metrics.Sample
	for i := range s {
		sum.Merge(&s[i])
	}
	return string(sum.Append(nil))
}

// metricsTime is 2025-01-02 23:59:58.
var metricsTime = time.Date(2025, 1, 2, 23, 59, 58, 5e6, time.UTC)

func addSamples(parts ...MetricsPart) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		_, err := s.AddMetrics(bg, parts)
		return nil, err
	}
}

var metricsCases = storeTable{script: "metrics", refused: true, cases: []storeCase{
	{
		name: "a second",
		do:   addSamples(MetricsPart{GrainSecond, metricsTime, "a.B", sampleOf(3)}),
		want: redistest.State{"_metrics:s28931039": redistest.Expiring{
			Value: redistest.Hash{"58 a.B": encodedSample(sampleOf(3))}, For: 61 * time.Minute,
		}},
	},
	{
		name: "a minute, of two functions", seed: redistest.State{"_metrics:m482183": redistest.Expiring{
			Value: redistest.Hash{"59 a.B": encodedSample(sampleOf(3)), "58 a.B": "x"}, For: time.Minute,
		}},
		do: addSamples(
			MetricsPart{GrainMinute, metricsTime, "a.B", sampleOf(4)},
			MetricsPart{GrainMinute, metricsTime, "c:d", sampleOf(1)},
		),
		want: redistest.State{"_metrics:m482183": redistest.Expiring{
			Value: redistest.Hash{
				"59 a.B": encodedSample(sampleOf(3), sampleOf(4)), "58 a.B": "x",
				"59 c:d": encodedSample(sampleOf(1)),
			}, For: 25 * time.Hour,
		}},
	},
	{
		name: "a day", do: addSamples(MetricsPart{GrainDay, metricsTime, "a.B", sampleOf(3)}),
		want: redistest.State{"_metrics:d20090": redistest.Expiring{
			Value: redistest.Hash{"0 a.B": encodedSample(sampleOf(3))}, For: 90 * 24 * time.Hour,
		}},
	},
	{
		name: "all, in place of what is no sample",
		seed: redistest.State{"_metrics:total": totals(redistest.Hash{"0 a.B": "bad"})},
		do:   addSamples(MetricsPart{Grain: GrainTotal, Function: "a.B", Sample: sampleOf(3)}),
		want: redistest.State{"_metrics:total": totals(redistest.Hash{"0 a.B": encodedSample(sampleOf(3))})},
	},
	{
		name: "functions without room share one place",
		seed: redistest.State{"_metrics:total": totals(manyFunctions(63))},
		do: addSamples(
			MetricsPart{Grain: GrainTotal, Function: "new", Sample: sampleOf(1)},
			MetricsPart{Grain: GrainTotal, Function: "f1", Sample: sampleOf(2)},
			MetricsPart{Grain: GrainTotal, Function: "newer", Sample: sampleOf(3)},
			MetricsPart{Grain: GrainTotal, Function: "newest", Sample: sampleOf(4)},
		),
		want: redistest.State{"_metrics:total": totals(func() redistest.Hash {
			h := manyFunctions(63)
			h["0 new"] = encodedSample(sampleOf(1))
			h["0 f1"] = encodedSample(sampleOf(1), sampleOf(2))
			h["0 "] = encodedSample(sampleOf(3), sampleOf(4))
			return h
		}())},
	},
	{
		name: "others have taken the last room meanwhile",
		seed: redistest.State{"_metrics:total": totals(manyFunctions(63))},
		do: func(s *Store) (any, error) {
			one := encodedSample(sampleOf(1))
			reply, err := s.eval(bg, "metrics", []string{s.keys.metricsKey(GrainTotal, time.Time{})}, statsLife,
				metricsRoom(GrainTotal), "0 new", "", one, "0 newer", "", one, "0 ", "", one, "0 f1", one, one)
			return fmt.Sprint(reply), err
		},
		result: "[1 0 1 1]",
		want: redistest.State{"_metrics:total": totals(func() redistest.Hash {
			h := manyFunctions(63)
			h["0 new"], h["0 "] = encodedSample(sampleOf(1)), encodedSample(sampleOf(1))
			return h
		}())},
	},
}}

// totals returns the value of the key that has all times.
func totals(h redistest.Hash) redistest.Expiring {
	return redistest.Expiring{Value: h, For: 90 * 24 * time.Hour}
}

// manyFunctions has one run of each of n functions.
func manyFunctions(n int) redistest.Hash {
	h := redistest.Hash{}
	for i := range n {
		h[fmt.Sprint("0 f", i)] = encodedSample(sampleOf(1))
	}
	return h
}

// Workers that add many functions at the same time leave no more than there is room for, and lose none.
func TestMetricsRoomOfManyWorkers(t *testing.T) {
	t.Parallel()
	s := NewStore(dialled(t, redistest.Shared(t).URL()), "", redistest.Name(t))
	const workers, functions = 8, 30
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for f := range functions {
				part := MetricsPart{Grain: GrainTotal, Function: fmt.Sprint(w, ".", f), Sample: sampleOf(1)}
				for {
					if _, err := s.AddMetrics(bg, []MetricsPart{part}); err == nil { // else others write too fast
						break
					}
				}
			}
		})
	}
	working.Wait()
	parts, _, err := s.Metrics(bg, GrainTotal, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	runs := uint64(0)
	for i := range parts {
		runs += parts[i].Sample.Runs
	}
	if len(parts) != MaxMetricFunctions+1 || runs != workers*functions {
		t.Errorf("%d functions with %d runs, expected %d with %d", len(parts), runs, MaxMetricFunctions+1,
			workers*functions)
	}
}

// What several workers add at the same time is all there.
func TestMetricsOfManyWorkers(t *testing.T) {
	t.Parallel()
	s := NewStore(dialled(t, redistest.Shared(t).URL()), "", redistest.Name(t))
	var parts []MetricsPart
	for i := range 130 { // more than one page
		at := metricsTime.Truncate(time.Minute).Add(time.Duration(i%60) * time.Second)
		parts = append(parts, MetricsPart{GrainSecond, at, fmt.Sprint("f", i/60), sampleOf(uint64(i) + 1)})
	}
	const workers = 3
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for done := 0; done < len(parts); done += 10 {
				for {
					_, err := s.AddMetrics(bg, slices.Clone(parts[done:done+10]))
					if err == nil {
						break
					}
					if !strings.Contains(err.Error(), "too fast") {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	working.Wait()
	found, next, err := s.Metrics(bg, GrainSecond, metricsTime.Truncate(time.Minute))
	if err != nil || len(found) != len(parts) || !next.Equal(metricsTime.Truncate(time.Minute).Add(time.Minute)) {
		t.Fatalf("%d samples, next %v, %v, expected %d", len(found), next, err, len(parts))
	}
	for _, p := range found {
		var f int
		if _, err := fmt.Sscanf(p.Function, "f%d", &f); err != nil {
			t.Fatal(err)
		}
		if n := uint64(60*f+p.At.Second()) + 1; p.Sample.Runs != workers*n || p.Sample.Run.Count() != workers {
			t.Errorf("%s at %v: %d runs, expected %d", p.Function, p.At, p.Sample.Runs, workers*n)
		}
	}
	late, _, err := s.Metrics(bg, GrainSecond, metricsTime.Truncate(time.Second))
	if err != nil || len(late) != 4 {
		t.Errorf("%d samples from second 58 on, %v, expected 4", len(late), err)
	}
}

// TestLateness moves tasks that are due since different times, and reads how late that was.
func TestLateness(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	conn := server.Dial(t)
	s := NewStore(dialled(t, server.URL()), "", name)
	now := redistest.Time(t, conn)
	lates := []time.Duration{
		0, 0, time.Second, time.Second, time.Minute, time.Minute + time.Second, time.Hour, 3 * time.Hour,
		40 * 24 * time.Hour, 100 * 24 * time.Hour,
	}
	due := redistest.Zset{}
	for i, late := range lates {
		due[fmt.Sprint("x", i)] = now - late.Milliseconds()
	}
	redistest.Seed(t, conn, name, filedAs("_retry", due))
	if n, _, _, err := s.Move(bg, ShelfRetry, MoveBatch); n != len(lates) || err != nil {
		t.Fatalf("%d tasks moved, %v", n, err)
	}
	took := time.Duration(redistest.Time(t, conn)-now+1) * time.Millisecond
	h, err := s.Lateness(bg)
	if err != nil || h.Count() != uint64(len(lates)) {
		t.Fatalf("%d tasks were late (%v), expected %d", h.Count(), err, len(lates))
	}
	least := 2*time.Second + 2*time.Minute + time.Second + 4*time.Hour + 40*24*time.Hour + 1<<42*time.Microsecond
	if h.Sum < least || h.Sum > least+time.Duration(len(lates))*took {
		t.Errorf("they were %v late together, expected %v and up to %v more for each", h.Sum, least, took)
	}
	// Each is in a bucket that has its lateness, or that after the time that moving took.
	var want metrics.Histogram
	for _, late := range lates {
		for bucket := range h.Counts {
			low := time.Duration(0)
			if bucket > 0 {
				low = metrics.Bound(bucket - 1)
			}
			fits := low <= late+took && min(late, 1<<42*time.Microsecond) < metrics.Bound(bucket)
			if fits && h.Counts[bucket] > want.Counts[bucket] {
				want.Counts[bucket]++
				break
			}
		}
	}
	if !slices.Equal(h.Counts[:], want.Counts[:]) {
		t.Errorf("found the counts %v, expected %v", h.Counts, want.Counts)
	}
	for field, value := range map[string]string{"x": "1", "999": "1", "3": "-1"} {
		server.Do(t, "HSET", name+"_metrics:late", field, value)
	}
	if again, err := s.Lateness(bg); err != nil || again != h {
		t.Errorf("with fields of strangers there are %v (%v), expected %v", again, err, h)
	}
}
