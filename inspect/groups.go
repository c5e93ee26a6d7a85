package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Group is a group of calls that waits for more of them.
type Group struct {
	Queue    string
	Key      string // that delayed.Group was given
	Function string // path; "" if its first call cannot be read, as Key is then
	Size     int    // calls
	Due      time.Time
}

// maxGroupsListed bounds what Groups returns of one queue.
const maxGroupsListed = 100

// Groups returns the groups of the given queues, or of all queues if none is given, of each queue those that are due
// first, at most 100. With an error about some queues it returns the groups of the others. It asks Redis twice for each
// group.
func (ins *Inspector) Groups(ctx context.Context, queues ...string) ([]Group, error) {
	var all []Group
	err := ins.each(ctx, queues, func(q *delayed.Queue) error {
		s, err := ins.store(ctx, q.Name())
		if err != nil {
			return err
		}
		groups, err := s.Groups(ctx, 0, maxGroupsListed)
		for _, g := range groups {
			all = append(all, Group{q.Name(), g.Key, g.Function, g.Size, g.Due})
		}
		return err
	})
	return all, err
}

// FireGroup makes the groups of a queue with a key due now, so that a worker combines their calls; with a function only
// that function's. It returns how many there were, and reads all groups of the queue to find them. The error wraps
// ErrNotFound if there is none.
func (ins *Inspector) FireGroup(ctx context.Context, queue, key, function string) (int, error) {
	if _, err := ins.Queue(ctx, queue); err != nil {
		return 0, err
	}
	s, err := ins.store(ctx, queue)
	if err != nil {
		return 0, err
	}
	// Reading the groups before any is made due keeps their order, and so the pages.
	var names []string
	const page = 100
	total, err := s.GroupCount(ctx)
	if err != nil {
		return 0, err
	}
	for from := 0; from < total; from += page {
		groups, err := s.Groups(ctx, from, page)
		if err != nil {
			return 0, err
		}
		for _, g := range groups {
			if g.Key == key && g.Function != "" && (function == "" || isNamed(g.Function, function)) {
				names = append(names, g.Name)
			}
		}
	}
	fired := 0
	for len(names) > 0 {
		part := names[:min(len(names), redisstore.MostHastened)]
		n, err := s.Hasten(ctx, part)
		if fired += n; err != nil {
			return fired, err
		}
		names = names[len(part):]
	}
	if fired == 0 {
		return 0, fmt.Errorf("%w: queue %s has no group %.100q", ErrNotFound, queue, key)
	}
	return fired, ins.note(ctx,
		&Record{Action: "fire group", Queue: queue, Target: key, Done: fired})
}
