package delayed

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Parked returns a page of the queue's parked tasks and how many there are. A task is parked when the worker that has
// claimed it cannot run it: its function is unknown there, its structs have fields that those of the worker lack, or it
// is Python's. A worker that knows the function, by name or Alias, and the fields claims it at once, within 50 ms if it
// has a free executor, and one that starts later does when it starts. Else it is archived at Due, seven days after At.
// So what is here for long shows that a version is missing which producers count on.
//
// The page begins after offset tasks and has at most n, 1 to 1,000; those that are archived first come first. Of each,
// ID, State, Function, Due, At, Reason and Worker are known, and Error if Reason is "unknown fields": it says which.
// Pages are read one after the other: tasks that come or go in between may be missing or twice.
func (q *Queue) Parked(ctx context.Context, offset, n int) (page []TaskInfo, total int, err error) {
	return q.listFiled(ctx, "Parked", StateParked, offset, n)
}

// listFiled returns a page of one of the sets.
func (q *Queue) listFiled(
	ctx context.Context, name string, state State, offset, n int,
) (page []TaskInfo, total int, err error) {
	if err := q.check(ctx); err != nil {
		return nil, 0, err
	}
	if offset < 0 || n < 1 || n > redisstore.MaxListPage {
		return nil, 0, fmt.Errorf("delayed: %s(%d, %d): expected an offset of 0 or more and 1 to %d tasks", name,
			offset, n, redisstore.MaxListPage)
	}
	shelf := redisstore.ShelfParked
	if state == StateArchived {
		shelf = redisstore.ShelfArchived
	}
	listed, total, err := q.store.FiledList(ctx, shelf, offset, n)
	if err != nil {
		return nil, 0, err
	}
	page = make([]TaskInfo, len(listed))
	for i, f := range listed {
		info := wire.ParseInfo(f.Info)
		page[i] = publicInfo(&info)
		page[i].ID, page[i].State, page[i].Due = f.ID, state, time.UnixMilli(f.Until)
	}
	return page, total, nil
}
