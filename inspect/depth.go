package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// Depth is how many tasks of a queue were pending in ten seconds, a minute or a day.
type Depth struct {
	At time.Time // when these began, by Redis's clock
	// Pending is the largest number that was found. Workers look once in ten seconds, so a peak that is shorter may be
	// missing.
	Pending int
}

// Depths returns how many tasks of a queue were pending from one time to another, sorted by time: with Seconds in each
// ten seconds of the last hour, with Minutes in each minute of the last 24 hours, with Days on each day (of UTC) of the
// last 90. Total has none. A zero from means as far back as Redis keeps depths, and a zero to means the present. The
// last one is of a time that is not over, and may grow.
//
// The workers of a queue note its depth with their heartbeats, that of an empty queue every five minutes. What is
// missing was not noted: no worker lived, its heartbeats were rarer (with a HeartbeatLife above 40 s they are more than
// ten seconds apart), or the memory of Redis was full. Legacy workers note none.
func (ins *Inspector) Depths(ctx context.Context, queue string, g Grain, from, to time.Time) ([]Depth, error) {
	if g > Days {
		return nil, fmt.Errorf("inspect: Depths: expected Seconds, Minutes or Days, found Grain %d", g)
	}
	s, err := ins.store(queue)
	if err != nil {
		return nil, err
	}
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	kept, err := s.Depths(ctx, redisstore.Grain(g))
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
	slices.SortFunc(kept, func(a, b redisstore.Depth) int { return a.At.Compare(b.At) })
	step, stands := depthSteps[g], time.Duration(0)
	if g < Days {
		stands = redisstore.EmptyStands
	}
	var depths []Depth
	add := func(at time.Time, pending int) {
		if at.Add(step).After(from) && !at.After(to) {
			depths = append(depths, Depth{at, pending})
		}
	}
	for i, d := range kept {
		add(d.At, d.Pending)
		if d.Pending > 0 {
			continue
		}
		// Workers rarely note that an empty queue is empty still.
		until := d.At.Add(stands)
		if i+1 < len(kept) && kept[i+1].At.Before(until) {
			until = kept[i+1].At
		}
		for at := d.At.Add(step); at.Before(until); at = at.Add(step) {
			add(at, 0)
		}
	}
	return depths, nil
}

// depthSteps is for how long a depth stands.
var depthSteps = [...]time.Duration{Seconds: redisstore.DepthStep, Minutes: time.Minute, Days: 24 * time.Hour}
