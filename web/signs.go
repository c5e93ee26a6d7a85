package web

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

const (
	// sampled bounds the queues of which tasks are looked at, and sampleSize the tasks of each.
	sampled    = 20
	sampleSize = 50
	// entryQueues bounds the queues whose periodic entries are looked at.
	entryQueues = 200
)

// looked is what takes many reads, so it is kept for longer.
type looked struct {
	late    []lateEntry
	samples []sample
}

// look looks for late entries, and at some tasks. What it returns is the same for all users.
func look(ctx context.Context, ins *inspect.Inspector, queues []inspect.Queue) (*looked, error) {
	found := &looked{}
	var mu sync.Mutex
	var names []string
	for i := range queues {
		if q := &queues[i]; q.Err == nil && len(names) < entryQueues {
			names = append(names, q.Name)
		}
	}
	at := map[string]time.Time{}
	for i := range queues {
		at[queues[i].Name] = queues[i].At
	}
	err := each(ctx, names, func(ctx context.Context, name string) error {
		entries, err := ins.Entries(ctx, name)
		if ctx.Err() != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range entries { // with an error there may be some: a newer program has written the others
			e := &entries[i]
			if behind := at[name].Sub(e.Next); !e.Paused && !e.Next.IsZero() && behind > lateTick {
				found.late = append(found.late, lateEntry{name, e.Name, behind})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found.late, func(a, b lateEntry) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Name, b.Name))
	})
	found.samples, err = samplesOf(ctx, ins, queues)
	return found, err
}

// failingIn returns the functions of one queue of which some runs have failed lately.
func failingIn(ctx context.Context, ins *inspect.Inspector, queue string, now time.Time) (all []failing, err error) {
	samples, err := ins.Metrics(ctx, queue, inspect.Minutes, now.Add(-lately), now)
	place := map[string]int{}
	for i := range samples {
		s := &samples[i]
		at, ok := place[s.Function]
		if !ok {
			at = len(all)
			place[s.Function] = at
			all = append(all, failing{Queue: queue, Function: s.Function})
		}
		all[at].Runs += s.Runs
		all[at].Failed += s.Failed
	}
	return all, err
}

// samplesOf looks at the first tasks of those queues that have most of them.
func samplesOf(ctx context.Context, ins *inspect.Inspector, queues []inspect.Queue) (samples []sample, err error) {
	parked := fullest(queues, state.Parked)
	pending := fullest(queues, state.Pending)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(parked, pending)))) {
		s := sample{Queue: name, Why: map[string]int{}}
		if slices.Contains(parked, name) {
			page, err := ins.Tasks(ctx, name, inspect.Query{State: state.Parked, Limit: sampleSize})
			if err != nil {
				return nil, err
			}
			for i := range page.Tasks {
				t := &page.Tasks[i]
				s.Why[inspect.Printable(inspect.ShortName(t.Function))+" ("+inspect.Printable(string(t.Reason))+")"]++
			}
			s.Parked = max(page.Total, len(page.Tasks))
		}
		if slices.Contains(pending, name) {
			page, err := ins.Tasks(ctx, name, inspect.Query{State: state.Pending, Limit: sampleSize})
			if err != nil {
				return nil, err
			}
			for i := range page.Tasks {
				if page.Tasks[i].Problem != "" {
					s.Unreadable++
				}
			}
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// fullest returns the names of the queues that hold most tasks in a state.
func fullest(queues []inspect.Queue, s state.Task) (names []string) {
	full := slices.DeleteFunc(slices.Clone(queues), func(q inspect.Queue) bool { return q.Size(s) == 0 })
	slices.SortFunc(full, func(a, b inspect.Queue) int {
		return cmp.Or(cmp.Compare(b.Size(s), a.Size(s)), cmp.Compare(a.Name, b.Name))
	})
	for i := range full[:min(len(full), sampled)] {
		names = append(names, full[i].Name)
	}
	return names
}
