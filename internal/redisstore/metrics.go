package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/metrics"
)

// Grain is how finely metrics tell times apart.
type Grain uint8

// The grains. Redis keeps seconds for an hour, minutes for a day, and days for 90 days. A sum of
// all times ends when nothing has been added to it for 90 days.
const (
	GrainSecond Grain = iota
	GrainMinute
	GrainDay
	GrainTotal
)

// grains says for each grain in which hashes Redis keeps its samples.
var grains = [...]struct {
	mark string        // in the key
	span time.Duration // of one hash; 0: one for all times
	step time.Duration // of one sample
	life time.Duration // of the hash, after it was written to last
}{
	GrainSecond: {"s", time.Minute, time.Second, time.Hour + time.Minute},
	GrainMinute: {"m", time.Hour, time.Minute, 25 * time.Hour},
	GrainDay:    {"d", 24 * time.Hour, 24 * time.Hour, statsLife * time.Second},
	GrainTotal:  {"total", 0, 0, statsLife * time.Second},
}

const (
	// MaxMetricFunctions bounds the functions of a queue that have metrics of their own: all others share those of "".
	MaxMetricFunctions = 64
	// metricsPage bounds the samples that one script writes.
	metricsPage = 100
	// metricsTries is how often a sample is written that others write at the same time.
	metricsTries = 5
)

// MetricsPart is one sample with its place.
type MetricsPart struct {
	Grain    Grain
	At       time.Time // start of the second, minute or day; zero for GrainTotal
	Function string    // path; "" for all functions that have no place of their own
	Sample   metrics.Sample
}

// Truncate returns the start of the second, minute or day in which t is, and the number of the hash that has it.
func (g Grain) Truncate(t time.Time) (start time.Time, hash int64) {
	if grains[g].span == 0 {
		return time.Time{}, 0
	}
	ms, step := t.UnixMilli(), grains[g].step.Milliseconds()
	return time.UnixMilli(ms / step * step).UTC(), ms / grains[g].span.Milliseconds()
}

// metricsKey returns the hash that has the samples of a grain at a time.
func (k *keys) metricsKey(g Grain, at time.Time) string {
	span := grains[g].span
	if span == 0 {
		return k.metrics + grains[g].mark
	}
	return k.metrics + grains[g].mark + strconv.FormatInt(at.UnixMilli()/span.Milliseconds(), 10)
}

// metricsField returns the field of a sample: the number of its step within the hash, and the function.
func metricsField(g Grain, at time.Time, function string) string {
	n := int64(0)
	if span := grains[g].span; span > 0 {
		n = at.UnixMilli() % span.Milliseconds() / grains[g].step.Milliseconds()
	}
	return strconv.FormatInt(n, 10) + " " + function
}

// metricsRoom is how many samples a hash may have before further functions share one.
func metricsRoom(g Grain) int {
	if grains[g].span == 0 {
		return MaxMetricFunctions
	}
	return MaxMetricFunctions * int(grains[g].span/grains[g].step)
}

// AddMetrics adds samples of one grain and one hash to those that Redis has. What others write at the same time is not
// lost. With an error it returns the samples that were not added for sure; those of which nobody knows are not among
// them.
func (s *Store) AddMetrics(ctx context.Context, parts []MetricsPart) (rest []MetricsPart, err error) {
	for tries := 0; len(parts) > 0; tries++ {
		if tries == metricsTries {
			return parts, fmt.Errorf("delayed: metrics of queue %s: others write them too fast", s.Name)
		}
		page := parts[:min(len(parts), metricsPage)]
		later := parts[len(page):]
		again, err := s.addMetricsPage(ctx, page)
		if errors.Is(err, ErrUnknown) {
			return later, err
		} else if err != nil {
			return parts, err
		}
		if len(again) == 0 {
			tries = -1
		}
		parts = slices.Concat(again, later)
	}
	return nil, nil
}

// addMetricsPage adds samples, and returns those that others have changed meanwhile, or for which others have left no
// room.
func (s *Store) addMetricsPage(ctx context.Context, page []MetricsPart) (again []MetricsPart, err error) {
	g := page[0].Grain
	key := s.keys.metricsKey(g, page[0].At)
	page, err = s.fitMetrics(ctx, key, page)
	if err != nil {
		return nil, fmt.Errorf("delayed: metrics: %w", err)
	}
	fields := make([]any, len(page))
	for i, p := range page {
		fields[i] = metricsField(p.Grain, p.At, p.Function)
	}
	olds, err := redis.ByteSlices(s.do(ctx, "HMGET", append([]any{key}, fields...)...))
	if err != nil {
		return nil, fmt.Errorf("delayed: metrics: %w", err)
	}
	args := redis.Args{int64(grains[g].life / time.Second), metricsRoom(g)}
	for i := range page {
		sum := page[i].Sample
		_ = sum.MergeEncoded(olds[i]) // what is no sample is replaced
		args = args.Add(fields[i], olds[i], sum.Append(nil))
	}
	reply, err := s.eval(ctx, "metrics", []string{key}, args...)
	done, err := ints(reply, err, len(page))
	if err != nil {
		return nil, err
	}
	for i, ok := range done {
		if ok == 0 {
			again = append(again, page[i])
		}
	}
	return again, nil
}

// fitMetrics returns the samples of a page with those functions in the place of all others that the hash has no room
// for.
func (s *Store) fitMetrics(ctx context.Context, key string, page []MetricsPart) ([]MetricsPart, error) {
	used, err := redis.Int(s.do(ctx, "HLEN", key))
	if err != nil || used+len(page) <= metricsRoom(page[0].Grain) {
		return page, err
	}
	known, err := redis.Strings(s.do(ctx, "HKEYS", key))
	if err != nil {
		return nil, err
	}
	var fitting []MetricsPart
	at := map[string]int{}
	for _, p := range page {
		field := metricsField(p.Grain, p.At, p.Function)
		if !slices.Contains(known, field) {
			if used++; used > metricsRoom(p.Grain) {
				p.Function = ""
				field = metricsField(p.Grain, p.At, "")
			}
		}
		if i, ok := at[field]; ok {
			fitting[i].Sample.Merge(&p.Sample)
			continue
		}
		at[field] = len(fitting)
		fitting = append(fitting, p)
	}
	return fitting, nil
}

// Metrics reads the samples of one grain from a time on, in the one hash that has that time. It returns the time from
// which the next hash goes on.
func (s *Store) Metrics(ctx context.Context, g Grain, from time.Time) (parts []MetricsPart, next time.Time, err error) {
	all, err := redis.StringMap(s.do(ctx, "HGETALL", s.keys.metricsKey(g, from)))
	if err != nil {
		return nil, from, err
	}
	parts, next = metricsOf(all, g, from)
	return parts, next, nil
}

// MetricsEach reads the samples of one grain from a time to another of each of the stores, which are of one handle.
func MetricsEach(ctx context.Context, stores []*Store, g Grain, from, to time.Time) ([][]MetricsPart, error) {
	all := make([][]MetricsPart, len(stores))
	for len(stores) > 0 && !from.After(to) {
		_, next := metricsOf(nil, g, from)
		err := readEach(ctx, stores, func(s *Store) (string, []any) {
			return "HGETALL", []any{s.keys.metricsKey(g, from)}
		}, func(i int, reply any) error {
			fields, err := redis.StringMap(reply, nil)
			parts, _ := metricsOf(fields, g, from)
			all[i] = append(all[i], parts...)
			return err
		})
		if err != nil {
			return nil, err
		}
		from = next
	}
	return all, nil
}

// metricsOf reads the samples from a time on in the hash that has that time, and returns the time from which the next
// hash goes on.
func metricsOf(fields map[string]string, g Grain, from time.Time) (parts []MetricsPart, next time.Time) {
	begin := time.Time{}
	if span := grains[g].span; span > 0 {
		ms := span.Milliseconds()
		begin = time.UnixMilli(from.UnixMilli() / ms * ms).UTC()
		next = begin.Add(span)
	}
	for field, raw := range fields {
		number, function, _ := strings.Cut(field, " ")
		n, err := strconv.Atoi(number)
		p := MetricsPart{Grain: g, At: begin.Add(time.Duration(n) * grains[g].step), Function: function}
		if err != nil || p.At.Before(from) && grains[g].span > 0 || p.Sample.MergeEncoded([]byte(raw)) != nil {
			continue
		}
		parts = append(parts, p)
	}
	return parts, next
}

// latenessMark is in the key of the hash in which move counts how late due tasks became pending.
const latenessMark = "late"

// Lateness reads how late due tasks became pending, of all times. The counts end when no task has become due for 90
// days. It leaves out what is no count.
func (s *Store) Lateness(ctx context.Context) (h metrics.Histogram, err error) {
	fields, err := redis.StringMap(s.do(ctx, "HGETALL", s.keys.metrics+latenessMark))
	if err != nil {
		return h, err
	}
	for field, value := range fields {
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			continue
		}
		if field == "sum" {
			h.Sum = time.Duration(min(n, maxSum)) * time.Microsecond
		} else if bucket, err := strconv.ParseUint(field, 10, 16); err == nil && bucket < metrics.Buckets {
			h.Counts[bucket] = n
		}
	}
	return h, nil
}

// maxSum is the longest sum that a Duration holds, in us.
const maxSum = 1 << 53
