package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

// parkedPage lists what tasks are parked for.
type parkedPage struct {
	rights
	choice

	Rows []parkedRow
	More []moreOf // queues with parked tasks that were not read
}

// parkedRow is the parked tasks of a queue that wait for the same.
type parkedRow struct {
	Queue, Function, Reason string
	Problem                 string   // why the function is unknown
	Fields                  []string // that the tasks wait for
	N                       int      // tasks that were read
	Since, First, Last      time.Time
	Takers                  []workerRow // living workers that can run them
	Know                    int         // living workers that know the function, also without its fields
	Elsewhere               []string    // other queues whose workers know it
	Python                  bool
}

const (
	parkedRead = 200 // tasks that are read of each queue
	parkedMost = 2000
)

func showParked(s *shared, q *site.Request) (*page, error) {
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	p := parkedPage{rights: s.rights(q), choice: c}
	left := parkedMost
	err = p.each(q, func(queue *inspect.Queue) error {
		name := queue.Name
		switch {
		case queue.Parked == 0:
			return nil
		case left <= 0:
			p.More = append(p.More, moreOf{name, queue.Parked})
			return nil
		}
		key := fmt.Sprint("parked ", s.Hidden(q.User), " ", name)
		list, err := site.Read(q.Ctx, s.Fast, key, func(ctx context.Context) (inspect.Page, error) {
			return q.Ins.Tasks(ctx, name, inspect.Query{State: state.Parked, Limit: parkedRead})
		})
		if err != nil {
			return err
		}
		left -= len(list.Tasks)
		if more := list.Total - len(list.Tasks); list.Cursor != "" && more > 0 {
			p.More = append(p.More, moreOf{name, more})
		}
		p.Rows = append(p.Rows, parkedRows(list.Tasks)...)
		return nil
	})
	if err == nil {
		err = s.findTakers(q, p.Rows)
	}
	return &page{Title: "Parked", Template: "parked", Data: &p}, err
}

// parkedRows puts tasks of a queue together that wait for the same.
func parkedRows(tasks []inspect.Task) (rows []parkedRow) {
	place := map[[2]string]int{}
	for i := range tasks {
		t := &tasks[i]
		key := [2]string{t.Function, string(t.Reason)}
		at, ok := place[key]
		if !ok {
			at = len(rows)
			place[key] = at
			rows = append(rows, parkedRow{
				Queue: t.Queue, Function: t.Function, Reason: string(t.Reason), Problem: t.Problem,
				Since: t.At, First: t.Due,
			})
		}
		r := &rows[at]
		r.N++
		r.Python = r.Python || t.Python
		if t.At.Before(r.Since) {
			r.Since = t.At
		}
		if t.Due.Before(r.First) {
			r.First = t.Due
		}
		if t.Due.After(r.Last) {
			r.Last = t.Due
		}
		for _, f := range t.UnknownFields {
			if !slices.Contains(r.Fields, f) {
				r.Fields = append(r.Fields, f)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b parkedRow) int { return strings.Compare(a.Function, b.Function) })
	return rows
}

// Spread reports whether the tasks are kept for so different times that one time is not enough.
func (r *parkedRow) Spread() bool { return r.Last.Sub(r.First) > time.Hour }

// findTakers finds the workers that can run parked tasks.
func (s *shared) findTakers(q *site.Request, rows []parkedRow) error {
	if len(rows) == 0 {
		return nil
	}
	functions, err := s.functions(q)
	if err != nil {
		return err
	}
	workers, err := s.workers(q)
	if err != nil {
		return err
	}
	alive := map[string]*inspect.Worker{}
	for i := range workers {
		alive[workers[i].ID] = &workers[i]
	}
	for i := range rows {
		r := &rows[i]
		for j := range functions {
			f := &functions[j]
			if !carries(f, r.Function) {
				continue
			}
			for _, id := range f.Workers {
				w := alive[id]
				switch {
				case w == nil || !w.Serves(f.Queue):
				case f.Queue == r.Queue:
					r.Know++
					if !slices.ContainsFunc(r.Fields, f.Lacks) {
						r.Takers = append(r.Takers, newWorkerRow(w, workers))
					}
				case !slices.Contains(r.Elsewhere, f.Queue):
					r.Elsewhere = append(r.Elsewhere, f.Queue)
				}
			}
		}
	}
	return nil
}
