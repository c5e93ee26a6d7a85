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

	Suspects  int       // that the queues count
	Alive     []deadRow // they run, or will run again
	Archived  []deadRow
	Unread    []moreOf // pending and active tasks that were not scanned
	UnreadOld []moreOf // archived ones
}

// deadRow is a task that workers have died with.
type deadRow struct {
	*inspect.Task

	Host string // of the worker that had it last, if that is still known
}

// died are the tasks of one queue that workers have died with, and how many were not scanned.
type died struct {
	alive, archived            []inspect.Task
	unreadAlive, unreadArchive int
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
	names := map[string]string{}
	for i := range workers {
		r := workerRow{Worker: &workers[i]}
		names[r.ID] = r.Name()
	}
	p := deathsPage{rights: s.rights(q), choice: c}
	err = p.each(q, func(one *inspect.Queue) error {
		p.Suspects += one.Suspects
		key := fmt.Sprint("deaths ", s.Hidden(q.User), " ", one.Name)
		d, err := site.Read(q.Ctx, s.Fast, key, func(ctx context.Context) (*died, error) {
			return readDied(ctx, q.Ins, one)
		})
		if err != nil {
			return err
		}
		for j := range d.alive {
			p.Alive = append(p.Alive, deadRow{&d.alive[j], names[d.alive[j].Worker]})
		}
		for j := range d.archived {
			p.Archived = append(p.Archived, deadRow{&d.archived[j], names[d.archived[j].Worker]})
		}
		if d.unreadAlive > 0 {
			p.Unread = append(p.Unread, moreOf{one.Name, d.unreadAlive})
		}
		if d.unreadArchive > 0 {
			p.UnreadOld = append(p.UnreadOld, moreOf{one.Name, d.unreadArchive})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(p.Alive, func(a, b deadRow) int { return b.Deaths - a.Deaths })
	slices.SortStableFunc(p.Archived, func(a, b deadRow) int { return b.At.Compare(a.At) })
	return &page{Title: "Deaths", Template: "deaths", Data: &p}, nil
}

// readDied looks for the tasks of a queue that workers have died with, where they can be.
func readDied(ctx context.Context, ins *inspect.Inspector, queue *inspect.Queue) (*died, error) {
	d := &died{}
	look := func(query inspect.Query, wanted func(*inspect.Task) bool) (tasks []inspect.Task, unread int, err error) {
		query.Limit = deathsScanned
		page, err := ins.Tasks(ctx, queue.Name, query)
		for i := range page.Tasks {
			if t := &page.Tasks[i]; wanted(t) && len(tasks) < deathsShown {
				tasks = append(tasks, *t)
			}
		}
		if page.Cursor != "" {
			unread = max(page.Total-page.Scanned, 0)
		}
		return tasks, unread, err
	}
	for _, st := range []state.Task{state.Pending, state.Active, state.Retry} {
		if queue.Size(st) == 0 {
			continue
		}
		tasks, unread, err := look(inspect.Query{State: st}, func(t *inspect.Task) bool { return t.Deaths > 0 })
		if err != nil {
			return nil, err
		}
		d.alive = append(d.alive, tasks...)
		d.unreadAlive += unread
	}
	if queue.Archived == 0 {
		return d, nil
	}
	var err error
	d.archived, d.unreadArchive, err = look(inspect.Query{State: state.Archived, NewestFirst: true},
		func(t *inspect.Task) bool { return t.Reason == state.ReasonDeaths })
	return d, err
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
