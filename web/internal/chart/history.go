package chart

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// History keeps what has run in queues together. It reads Redis block by block, the latest first, and each block that
// is over only once. A call reads for a while, and the next one goes on: of many queues and a long time, the charts
// fill up while somebody looks at them.
type History struct {
	mu     sync.Mutex
	spans  map[*Span]*historySpan
	life   time.Duration // after which the blocks that are not over are read again
	budget time.Duration // for which one call reads, if there is something to show already
}

// HistoryCache has the histories of all queues together, and of each that somebody looks at alone.
type HistoryCache struct {
	mu  sync.Mutex
	all map[string]*History // by queue; "" for all
}

// maxHistories bounds what is kept.
const maxHistories = 32

// readFor is how long one page reads what is not there yet.
const readFor = 150 * time.Millisecond

// Of returns the history of a queue, or of all for "".
func (p *HistoryCache) Of(queue string, life time.Duration) *History {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.all[queue]
	if found == nil {
		if p.all == nil || len(p.all) >= maxHistories {
			p.all = map[string]*History{}
		}
		found = &History{life: life, budget: readFor}
		p.all[queue] = found
	}
	return found
}

// historySpan is what is known of one span.
type historySpan struct {
	blocks map[int64]*historyBlock // by Unix time
	read   time.Time               // when all blocks were last there, by this host's clock
}

// historyBlock is what has run in one block.
type historyBlock struct {
	over    bool // nothing is added to it any more
	buckets []inspect.Sample
	runs    map[string][]float64 // of each queue, in each bucket
}

// Settled is how long after a block workers may add to it: they do so with their heartbeats.
const Settled = 2 * time.Minute

// blocksAtOnce are read at once at most. The first of them are those that are not over.
const blocksAtOnce = 4

// readers is how many queues are read at once.
const readers = 4

// Flow is what has run in each bucket of a span.
type Flow struct {
	Span    *Span
	from    time.Time
	now     time.Time // by Redis's clock
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
func (p *History) Get(
	ctx context.Context, ins *inspect.Inspector, names []string, s *Span, now time.Time,
) (*Flow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spans == nil {
		p.spans = map[*Span]*historySpan{}
	}
	kept := p.spans[s]
	if kept == nil {
		kept = &historySpan{blocks: map[int64]*historyBlock{}}
		p.spans[s] = kept
	}
	from := s.begin(now)
	first := from.Truncate(s.block)
	for at := range kept.blocks {
		if at < first.Unix() {
			delete(kept.blocks, at)
		}
	}
	if time.Since(kept.read) >= p.life*time.Duration(s.lives) {
		if err := p.fill(ctx, ins, names, s, kept, first, now); err != nil {
			return nil, err
		}
	}
	return kept.flow(s, from, now), nil
}

// fill reads blocks until all are there, or the time is up.
func (p *History) fill(
	ctx context.Context, ins *inspect.Inspector, names []string, s *Span, kept *historySpan, first, now time.Time,
) error {
	begun, reads := time.Now(), 0
	for at := now.UTC().Truncate(s.block); !at.Before(first); at = at.Add(-s.block) {
		if kept.over(at) {
			continue
		}
		if reads > 1 && time.Since(begun) > p.budget {
			return nil
		}
		end := at.Add(s.block)
		for n := 1; n < blocksAtOnce && !kept.over(at.Add(-s.block)) && at.After(first); n++ {
			at = at.Add(-s.block)
		}
		blocks, err := readBlocks(ctx, ins, names, s, at, end)
		if err != nil {
			return err
		}
		for i, b := range blocks {
			start := at.Add(time.Duration(i) * s.block)
			b.over = now.Sub(start.Add(s.block)) > Settled
			kept.blocks[start.Unix()] = b
		}
		reads++
	}
	kept.read = time.Now()
	return nil
}

// over reports whether all is known of a block for good.
func (k *historySpan) over(at time.Time) bool {
	b := k.blocks[at.Unix()]
	return b != nil && b.over
}

// readBlocks reads the blocks from one time to another of all queues.
func readBlocks(
	ctx context.Context, ins *inspect.Inspector, names []string, s *Span, from, to time.Time,
) ([]*historyBlock, error) {
	blocks := make([]*historyBlock, to.Sub(from)/s.block)
	for i := range blocks {
		blocks[i] = &historyBlock{buckets: make([]inspect.Sample, s.block/s.step), runs: map[string][]float64{}}
	}
	var mu sync.Mutex
	err := each(ctx, names, func(ctx context.Context, name string) error {
		samples, err := ins.Metrics(ctx, name, s.grain, from, to.Add(-time.Millisecond))
		mu.Lock()
		defer mu.Unlock()
		series, per := inspect.SeriesOf(samples, from, s.step, int(to.Sub(from)/s.step)), int(s.block/s.step)
		for i := range series.Buckets {
			b, sample := blocks[i/per], &series.Buckets[i]
			b.buckets[i%per].Merge(sample)
			if !s.calls || sample.Runs == 0 {
				continue
			}
			if b.runs[name] == nil {
				b.runs[name] = make([]float64, per)
			}
			b.runs[name][i%per] = float64(sample.Runs)
		}
		return err
	})
	return blocks, err
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

// flow puts the blocks together.
func (k *historySpan) flow(s *Span, from, now time.Time) *Flow {
	f := &Flow{
		Span: s, from: from, now: now, buckets: make([]inspect.Sample, s.n), known: make([]bool, s.n),
		runs: map[string][]float64{},
	}
	for at, b := range k.blocks {
		place := int(time.Unix(at, 0).Sub(from) / s.step)
		for i := range b.buckets {
			if j := place + i; j >= 0 && j < s.n {
				f.buckets[j], f.known[j] = b.buckets[i], true
			}
		}
		for queue, runs := range b.runs {
			if f.runs[queue] == nil {
				f.runs[queue] = make([]float64, s.n)
			}
			for i, n := range runs {
				if j := place + i; j >= 0 && j < s.n {
					f.runs[queue][j] = n
				}
			}
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
	return &Flow{Span: s, from: from, now: now, buckets: series.Buckets}, series.Functions, nil
}
