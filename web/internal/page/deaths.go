package page

import (
	"context"
	"fmt"
	"slices"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

// deathsPage lists tasks that workers have died with.
type deathsPage struct {
	rights
	choice

	Suspects int      // that the queues count
	Alive    deadList // they run, or will run again
	Archived deadList
}

// deadList is a list of such tasks.
type deadList struct {
	Rows   []deadRow
	Unread []moreOf // tasks that were not scanned
}

// deadRow is a task that workers have died with.
type deadRow struct {
	*inspect.Task

	Host string // of the worker that had it last, if that is still known
}

// died are the tasks of one queue that workers have died with, and how many were not scanned.
type died struct {
	tasks  []inspect.Task
	unread int
}

// The bounds of what is read of a queue. Tasks that a sweeper has given back come first among the pending ones.
const (
	deathsShown   = 100 // tasks of each list
	deathsScanned = 500 // tasks that are scanned in each list
)

func showDeaths(s *shared, q *site.Request) (*page, error) {
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	workers, err := s.workers(q)
	if err != nil {
		return nil, err
	}
	hosts := map[string]string{}
	for i := range workers {
		r := workerRow{Worker: &workers[i]}
		hosts[r.ID] = r.Name()
	}
	p := deathsPage{rights: s.rights(q), choice: c}
	err = p.each(q, func(one *inspect.Queue) error {
		p.Suspects += one.Suspects
		key := fmt.Sprint("deaths ", s.Hidden(q.User), " ", one.Name)
		found, err := site.Read(q.Ctx, s.Fast, key, func(ctx context.Context) ([2]died, error) {
			return readDied(ctx, q.Ins, one)
		})
		for i, list := range []*deadList{&p.Alive, &p.Archived} {
			for j := range found[i].tasks {
				t := &found[i].tasks[j]
				list.Rows = append(list.Rows, deadRow{t, hosts[t.Worker]})
			}
			if n := found[i].unread; n > 0 {
				list.Unread = append(list.Unread, moreOf{one.Name, n})
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(p.Alive.Rows, func(a, b deadRow) int { return b.Deaths - a.Deaths })
	slices.SortStableFunc(p.Archived.Rows, func(a, b deadRow) int { return b.At.Compare(a.At) })
	return &page{Title: "Deaths", Template: "deaths", Data: &p}, nil
}

// readDied finds the tasks of a queue that workers have died with, where they can be: those that are alive, and those
// that are archived.
func readDied(ctx context.Context, ins *inspect.Inspector, queue *inspect.Queue) (found [2]died, err error) {
	for _, st := range []state.Task{state.Pending, state.Active, state.Retry, state.Archived} {
		if queue.Size(st) == 0 {
			continue
		}
		archived, into := st == state.Archived, &found[0]
		if archived {
			into = &found[1]
		}
		query := inspect.Query{State: st, NewestFirst: archived, Limit: deathsScanned}
		page, err := ins.Tasks(ctx, queue.Name, query)
		if err != nil {
			return found, err
		}
		shown := 0
		for i := range page.Tasks {
			t := &page.Tasks[i]
			if dead := !archived && t.Deaths > 0 || t.Reason == state.ReasonDeaths; dead && shown < deathsShown {
				into.tasks = append(into.tasks, *t)
				shown++
			}
		}
		if page.Cursor != "" {
			into.unread += max(page.Total-page.Scanned, 0)
		}
	}
	return found, nil
}

// aloneMost is how many times a task dies alone before it is archived.
const aloneMost = 3

// Next is what will happen to a task that workers have died with.
func (r *deadRow) Next() string {
	switch {
	case r.State == state.Active:
		return "It runs now, or is about to."
	case r.Deaths == 1:
		return "It runs like any other task. With one more death it runs beside few others only."
	case r.Deaths == 2:
		return "It runs beside few others: a worker holds at most a quarter as many such tasks as it has executors."
	}
	return fmt.Sprintf("It runs beside few others or alone, and is archived once it has died alone %d times.",
		aloneMost)
}
