package delayedprom

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godelayed/delayed/inspect"
)

// queue shows one queue, which may be among those that are known already. It reports whether everything could be read.
func (s *scrape) queue(ctx context.Context, name string, known map[string]inspect.Queue) (all bool) {
	all = true
	try := func(what string, read func() error) (ok bool) {
		ok = s.try(ctx, what+" "+name, read)
		all = all && ok
		return ok
	}
	q, ok := known[name]
	if !ok {
		ok = try("queue", func() (err error) {
			if q, err = s.ins.Queue(ctx, name); errors.Is(err, inspect.ErrNotFound) {
				return nil // nobody has used it yet
			}
			return err
		})
	}
	if ok {
		s.holds(name, &q)
	}
	try("workers of queue", func() error {
		workers, err := s.ins.Workers(ctx, name)
		if err == nil {
			s.work(name, workers)
		}
		return err
	})
	try("functions of queue", func() error {
		samples, err := s.ins.Metrics(ctx, name, inspect.Total, time.Time{}, time.Time{})
		if err == nil {
			s.functions(name, samples)
		}
		return err
	})
	try("lateness of queue", func() error {
		late, err := s.ins.Lateness(ctx, name)
		if err == nil {
			s.ch <- histogram(s.d.lateness, &late, name)
		}
		return err
	})
	if s.cfg.Memory {
		try("memory of queue", func() error {
			bytes, err := s.ins.Memory(ctx, name)
			if err == nil {
				s.gauge(s.d.memory, float64(bytes), name)
			}
			return err
		})
	}
	return all
}

// holds shows what a queue holds.
func (s *scrape) holds(name string, q *inspect.Queue) {
	for _, st := range inspect.States {
		s.gauge(s.d.tasks, float64(q.Size(st)), name, st.String())
	}
	s.gauge(s.d.suspects, float64(q.Suspects), name)
	s.gauge(s.d.latency, q.Latency.Seconds(), name)
	s.gauge(s.d.paused, flag(!q.Paused.IsZero()), name)
	s.gauge(s.d.groups, float64(q.Groups), name)
	s.gauge(s.d.workers, float64(q.Workers), name)
	for outcome, n := range q.Today.ByName() {
		s.count(s.d.outcomes, uint64(max(n, 0)), name, outcome)
	}
}

// work shows the workers of a queue.
func (s *scrape) work(queue string, workers []inspect.Worker) {
	var slots, alive, dead, running int
	var longest time.Duration
	for i := range workers {
		w := &workers[i]
		for _, q := range w.Queues {
			if q.Alive == 0 {
				dead += q.Claims
			} else {
				alive += q.Claims
			}
		}
		if !w.Alive() {
			continue
		}
		slots += w.Concurrency
		running += len(w.Running) + w.MoreRunning
		for _, r := range w.Running {
			longest = max(longest, time.Since(r.Started))
		}
	}
	s.gauge(s.d.slots, float64(slots), queue)
	s.gauge(s.d.claims, float64(alive), queue, "alive")
	s.gauge(s.d.claims, float64(dead), queue, "dead")
	s.gauge(s.d.longRunning, float64(running), queue)
	s.gauge(s.d.longest, longest.Seconds(), queue)
}

// functions shows what the functions of a queue have done.
func (s *scrape) functions(queue string, samples []inspect.Sample) {
	byLabel := make(map[string]*inspect.Sample, len(samples))
	for i := range samples {
		label := functionLabel(samples[i].Function)
		if other := byLabel[label]; other != nil {
			other.Merge(&samples[i])
		} else {
			byLabel[label] = &samples[i]
		}
	}
	for label, sample := range byLabel {
		s.count(s.d.run, sample.Runs, queue, label)
		s.count(s.d.failed, sample.Failed, queue, label)
		s.count(s.d.archived, sample.Archived, queue, label)
		s.ch <- histogram(s.d.wait, &sample.Wait, queue, label)
		s.ch <- histogram(s.d.took, &sample.Run, queue, label)
	}
}

// longestLabel bounds labels that come from tasks, in bytes.
const longestLabel = 200

// functionLabel returns a function's path as a label.
func functionLabel(path string) string {
	label := inspect.Printable(path)
	if len(label) <= longestLabel {
		return label
	}
	end := longestLabel - len("…")
	for !utf8.RuneStart(label[end]) {
		end--
	}
	return label[:end] + "…"
}

// bounds are those of the buckets: powers of two of microseconds, at which inspect.Histogram.Below is exact.
var bounds = func() (bounds []time.Duration) {
	for exp := 10; exp <= 32; exp++ {
		bounds = append(bounds, time.Microsecond<<exp)
	}
	return bounds
}()

func histogram(d *prometheus.Desc, h *inspect.Histogram, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(bounds))
	for i, n := range h.Below(bounds...) {
		buckets[bounds[i].Seconds()] = n
	}
	return prometheus.MustNewConstHistogram(d, h.Count(), h.Sum().Seconds(), buckets, labels...)
}
