package chart

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// HistoryCache has the histories of all queues together, and of each that somebody looks at alone.
type HistoryCache struct {
	mu  sync.Mutex
	all map[historyKey]*History
}

type historyKey struct {
	queue string // "" for all
	span  *Span
}

// maxHistories bounds what is kept.
const maxHistories = 100

// readFor is how long one page reads what is not there yet.
const readFor = 150 * time.Millisecond

// Of returns the history of a queue in a span, or of all queues for "".
func (c *HistoryCache) Of(queue string, s *Span, life time.Duration) *History {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := historyKey{queue, s}
	found := c.all[key]
	if found == nil {
		if c.all == nil || len(c.all) >= maxHistories {
			c.all = map[historyKey]*History{}
		}
		found = &History{span: s, life: life, budget: readFor}
		c.all[key] = found
	}
	return found
}

// History keeps what has run in queues together. It reads Redis block by block, the latest first, and each block that
// is settled only once. A call reads for a while, and the next one goes on: of many queues and a long time, the charts
// fill up while somebody looks at them.
type History struct {
	span   *Span
	life   time.Duration // after which the blocks that are not settled are read again
	budget time.Duration // for which one call reads, if there is something to show already

	mu      sync.Mutex
	buckets map[int64]*bucket // by Unix time
	read    time.Time         // when all buckets were last there, by this host's clock
}

// bucket is what has run in one bucket of a span.
type bucket struct {
	inspect.Sample

	settled bool               // nothing is added to it any more
	runs    map[string]float64 // of each queue
}

// Settled is how long after a block workers may add to it: they do so with their heartbeats.
const Settled = 2 * time.Minute

// blocksAtOnce are read at once at most. The first of them are those that are not settled.
const blocksAtOnce = 4

// readers is how many queues are read at once.
const readers = 4

// Flow is what has run in each bucket of a span.
type Flow struct {
	Span    *Span
	from    time.Time
	buckets []inspect.Sample
	known   []bool // of each bucket: it was read
	runs    map[string][]float64
}

// Complete reports whether all buckets are known.
func (f *Flow) Complete() bool { return !slices.Contains(f.known, false) }

// Sum adds up all buckets.
func (f *Flow) Sum() (sum inspect.Sample) {
	for i := range f.buckets {
		sum.Merge(&f.buckets[i])
	}
	return sum
}

// RunsOf returns how many handlers of each queue have returned, in parts of a span.
func (f *Flow) RunsOf(parts int) map[string][]float64 {
	all := map[string][]float64{}
	for queue, runs := range f.runs {
		sums := make([]float64, parts)
		for i, n := range runs {
			sums[i*parts/len(runs)] += n
		}
		all[queue] = sums
	}
	return all
}

// Get returns what has run in queues up to now. If Redis does not answer, that is an error.
func (h *History) Get(ctx context.Context, ins *inspect.Inspector, names []string, now time.Time) (*Flow, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.buckets == nil {
		h.buckets = map[int64]*bucket{}
	}
	from := h.span.begin(now)
	first := from.Truncate(h.span.block)
	maps.DeleteFunc(h.buckets, func(at int64, _ *bucket) bool { return at < first.Unix() })
	if time.Since(h.read) >= h.life*time.Duration(h.span.lives) {
		if err := h.fill(ctx, ins, names, first, now); err != nil {
			return nil, err
		}
	}
	return h.flow(from), nil
}

// fill reads blocks until all are there, or the time is up.
func (h *History) fill(ctx context.Context, ins *inspect.Inspector, names []string, first, now time.Time) error {
	begun, reads, block := time.Now(), 0, h.span.block
	for at := now.UTC().Truncate(block); !at.Before(first); at = at.Add(-block) {
		if h.settled(at) {
			continue
		}
		if reads > 1 && time.Since(begun) > h.budget {
			return nil
		}
		end := at.Add(block)
		for n := 1; n < blocksAtOnce && !h.settled(at.Add(-block)) && at.After(first); n++ {
			at = at.Add(-block)
		}
		buckets, err := h.span.readAll(ctx, ins, names, at, end)
		if err != nil {
			return err
		}
		for i, b := range buckets {
			start := at.Add(time.Duration(i) * h.span.step)
			b.settled = now.Sub(start.Add(h.span.step)) > Settled
			h.buckets[start.Unix()] = b
		}
		reads++
	}
	h.read = time.Now()
	return nil
}

// settled reports whether all is known of a block for good: its last bucket is settled last.
func (h *History) settled(block time.Time) bool {
	b := h.buckets[block.Add(h.span.block-h.span.step).Unix()]
	return b != nil && b.settled
}

// readAll reads the buckets from one time to another of all queues.
func (s *Span) readAll(
	ctx context.Context, ins *inspect.Inspector, names []string, from, to time.Time,
) ([]*bucket, error) {
	buckets := make([]*bucket, to.Sub(from)/s.step)
	for i := range buckets {
		buckets[i] = &bucket{runs: map[string]float64{}}
	}
	var mu sync.Mutex
	err := each(ctx, names, func(ctx context.Context, name string) error {
		samples, err := ins.Metrics(ctx, name, s.grain, from, to.Add(-time.Millisecond))
		mu.Lock()
		defer mu.Unlock()
		series := inspect.SeriesOf(samples, from, s.step, len(buckets))
		for i := range series.Buckets {
			buckets[i].Merge(&series.Buckets[i])
			if runs := series.Buckets[i].Runs; s.calls && runs > 0 {
				buckets[i].runs[name] = float64(runs)
			}
		}
		return err
	})
	return buckets, err
}

// each calls a function for all names, several at once, and returns the first error.
func each(ctx context.Context, names []string, do func(context.Context, string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan string)
	var wg sync.WaitGroup
	for range min(readers, len(names)) {
		wg.Go(func() {
			for name := range next {
				if err := do(ctx, name); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		next <- name
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// flow puts the buckets together.
func (h *History) flow(from time.Time) *Flow {
	n := h.span.n
	f := &Flow{
		Span: h.span, from: from, buckets: make([]inspect.Sample, n), known: make([]bool, n),
		runs: map[string][]float64{},
	}
	for i := range n {
		b := h.buckets[from.Add(time.Duration(i)*h.span.step).Unix()]
		if b == nil {
			continue
		}
		f.buckets[i], f.known[i] = b.Sample, true
		for queue, runs := range b.runs {
			if f.runs[queue] == nil {
				f.runs[queue] = make([]float64, n)
			}
			f.runs[queue][i] = runs
		}
	}
	return f
}

// FlowOf reads what has run in one queue, also by function.
func FlowOf(
	ctx context.Context, ins *inspect.Inspector, queue string, s *Span, now time.Time,
) (*Flow, map[string]*inspect.FunctionSeries, error) {
	from := s.begin(now)
	samples, err := ins.Metrics(ctx, queue, s.grain, from, now)
	if err != nil {
		return nil, nil, err
	}
	series := inspect.SeriesOf(samples, from, s.step, s.n)
	return &Flow{Span: s, from: from, buckets: series.Buckets}, series.Functions, nil
}
