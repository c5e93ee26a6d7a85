package delayed

import (
	"context"
	"time"
)

// maxGroupsListed bounds what Queue.Groups returns.
const maxGroupsListed = 100

// GroupInfo tells of a group of calls that waits. See Group.
type GroupInfo struct {
	Key  string    // what Group was given; empty when the first call cannot be read
	Func string    // path of the function; empty likewise
	Size int       // calls gathered so far
	Due  time.Time // when it becomes one call, by Redis's clock, unless other calls come before
}

// Groups lists the groups of the queue that wait for more calls, those that are due first in front, 100 at most. Groups
// of one Key differ in the function or in its leading arguments. It asks Redis twice for each group.
func (q *Queue) Groups(ctx context.Context) ([]GroupInfo, error) {
	if err := q.check(ctx); err != nil {
		return nil, err
	}
	found, err := q.store.Groups(ctx, maxGroupsListed)
	if err != nil {
		return nil, err
	}
	list := make([]GroupInfo, len(found))
	for i, g := range found {
		list[i] = GroupInfo{Key: g.Key, Func: g.Function, Size: g.Size, Due: g.Due}
	}
	return list, nil
}
