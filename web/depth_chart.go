package web

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// depthsOf returns how many tasks were pending in queues together, at most, in each bucket of a span; gaps where nobody
// has noted it. Of several queues, one whose workers have gone counts as deep as they have noted last.
func depthsOf(
	ctx context.Context, ins *inspect.Inspector, names []string, s *span, now time.Time,
) ([]float64, error) {
	from := s.begin(now)
	sums := make([]float64, s.n)
	for i := range sums {
		sums[i] = gap
	}
	var mu sync.Mutex
	err := each(ctx, names, func(ctx context.Context, name string) error {
		noted, err := ins.Depths(ctx, name, s.grain, from, now)
		own := make([]float64, s.n)
		for i := range own {
			own[i] = gap
		}
		for _, d := range noted {
			at := int(d.At.Sub(from) / s.step)
			if at < 0 || at >= s.n || d.At.Before(from) {
				continue
			}
			if n := float64(d.Pending); !(n <= own[at]) { // nor is that a gap
				own[at] = n
			}
		}
		mu.Lock()
		defer mu.Unlock()
		last := gap
		for i, n := range own {
			if math.IsNaN(n) && len(names) > 1 {
				n = last
			}
			if last = n; !math.IsNaN(n) && math.IsNaN(sums[i]) {
				sums[i] = 0
			}
			if !math.IsNaN(n) {
				sums[i] += n
			}
		}
		return err
	})
	return sums, err
}

// depthChart returns a picture of depths in the buckets of a flow.
func (f *flow) depthChart(depths []float64) *chart {
	c := f.chart("depth", "Pending", true, "Nobody has noted how many tasks were pending in this time: workers do.")
	c.Note, c.Value, c.Steps, c.Known = "highest "+f.span.Note, writeCount, nil, nil
	c.Series = []series{{"tasks", "s1", depths}}
	most := c.most()
	c.All = "at most " + number(int64(most)) + " tasks"
	return c
}
