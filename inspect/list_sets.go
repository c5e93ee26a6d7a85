package inspect

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// setReader reads the tasks of a sorted set.
type setReader struct {
	part
	state state.Task
	now   time.Time
}

// shelves are the sets whose messages are in the tasks hash.
var shelves = map[state.Task]redisstore.Shelf{
	state.Scheduled: redisstore.ShelfScheduled,
	state.Retry:     redisstore.ShelfRetry,
	state.Parked:    redisstore.ShelfParked,
	state.Archived:  redisstore.ShelfArchived,
}

func (r *setReader) read(ctx context.Context, n int) (tasks []listed, more bool, err error) {
	var page []redisstore.ListedTask
	var next redisstore.SetPlace
	if shelf, ok := shelves[r.state]; ok {
		page, next, err = r.store.ShelfPage(ctx, shelf, r.at.In, n, r.back)
	} else {
		page, next, err = r.store.CompletedPage(ctx, r.at.In, n, r.back)
	}
	if err != nil {
		return nil, false, err
	}
	for i := range page {
		p := &page[i]
		if r.state == state.Completed && !p.At.After(r.now) {
			continue // expired
		}
		t := r.task(r.state, p.Message, p.Info)
		t.ID, t.Due = p.ID, p.At
		t.completed()
		tasks = append(tasks, listed{t, place{In: redisstore.SetPlace{Score: p.Score, Member: p.ID}}})
	}
	more = next != redisstore.SetPlace{}
	r.at.In = next
	return tasks, more, nil
}

// completed gives completed tasks that were dropped or canceled the state of these.
func (t *Task) completed() {
	if t.State != state.Completed {
		return
	}
	switch t.Reason {
	case state.ReasonDropped:
		t.State = state.Dropped
	case state.ReasonCanceled:
		t.State = state.Canceled
	default:
	}
}

// groupReader reads the calls that wait in groups, one group after the other, in the order in which these are due.
// A place in them has the group in In, and in N how many calls of it were read.
type groupReader struct {
	part
	canceledFilter
	groups []redisstore.ListedTask // the groups to read; nil: not known yet
}

func (r *groupReader) read(ctx context.Context, n int) (tasks []listed, more bool, err error) {
	for {
		if len(r.groups) == 0 {
			if err := r.list(ctx); err != nil || len(r.groups) == 0 {
				return nil, false, err
			}
		}
		g := r.groups[0]
		from := r.at.N
		if r.back {
			from = -1 - from
		}
		messages, err := r.store.GroupPage(ctx, g.ID, from, n, r.back)
		if err != nil {
			return nil, false, err
		}
		in := redisstore.SetPlace{Score: g.Score, Member: g.ID}
		for _, m := range messages {
			r.at.N++
			t := r.task(state.Aggregating, m, nil)
			t.Due = g.At
			tasks = append(tasks, listed{t, place{Part: 1, In: in, N: r.at.N}})
		}
		if len(tasks) > 0 {
			tasks, err = r.withoutCanceled(ctx, tasks)
			return tasks, true, err
		}
		r.groups, r.at = r.groups[1:], place{In: in}
	}
}

// list fills in the next groups. A place within a group comes with the group.
func (r *groupReader) list(ctx context.Context) (err error) {
	inside := r.at.Part == 1
	r.groups, err = r.store.GroupNames(ctx, r.at.In, redisstore.MaxListPage, r.back)
	if inside && err == nil {
		r.at.Part = 0
		g := redisstore.ListedTask{ID: r.at.In.Member, Score: r.at.In.Score}
		g.At, err = redisstore.ScoreTime(g.Score)
		r.groups = append([]redisstore.ListedTask{g}, r.groups...)
	}
	return err
}
