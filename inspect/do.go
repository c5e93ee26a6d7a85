package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Do does an action to the tasks with the given ids; it looks up the state of each, and finds them as Inspector.Task
// does, all of those that are in no set in one go. A task in a state that the action
// does not take is a failure in the report, and so is a task that does not exist, with an error that wraps ErrNotFound.
// The error of Do says why it has stopped early, such as that Redis does not answer, or that it could not write to the
// audit log.
//
// After an error Do can be repeated. Tasks that it has dealt with then fail, because they are gone or in another state,
// or are done again: Reschedule sets the same time, and Edit sets the same arguments but puts a pending task at the end
// of its queue once more. Only after an error of MoveTo that wraps delayed.ErrUnknown look first: the task may be in
// both queues, and repeating the move could run it twice.
func (ins *Inspector) Do(ctx context.Context, queue string, a Action, ids ...string) (Report, error) {
	w, err := ins.hand(ctx, queue, a)
	if err != nil {
		return Report{}, err
	}
	err = w.to(ctx, ids)
	return w.report, errors.Join(err, w.note(ctx, &Record{IDs: ids}))
}

// DoAll does an action to all tasks of a list, or to those that its filter matches: to each of them once, even if it
// enters the list again meanwhile. DoAll ignores Query.Cursor, Limit, ScanLimit and NewestFirst. progress is called
// after every page, in the goroutine of the caller; if it returns false, or ctx ends, DoAll stops, and what was done
// stays done. It may be nil.
func (ins *Inspector) DoAll(
	ctx context.Context, queue string, a Action, q Query, progress func(Report) bool,
) (Report, error) {
	q.Cursor, q.Limit, q.ScanLimit = "", 0, 0
	q.NewestFirst = q.State == state.Pending // tasks are not claimed from that end
	w, err := ins.hand(ctx, queue, a)
	if err == nil {
		err = errors.Join(q.check(), w.takes(q.State))
	}
	if err != nil {
		return Report{}, err
	}
	err = w.all(ctx, &q, progress)
	return w.report, errors.Join(err, w.note(ctx, &Record{State: q.State.String(), Filter: &q.Filter}))
}

// hand does an action to tasks of one queue.
type hand struct {
	ins    *Inspector
	store  *redisstore.Store
	queue  *delayed.Queue
	action Action
	target *delayed.Queue // of a move
	// targetLegacy says that legacy workers share the queue that tasks are moved to.
	targetLegacy bool
	legacy       bool      // legacy workers share the queue
	now          time.Time // by Redis's clock, when it began
	report       Report
}

func (ins *Inspector) hand(ctx context.Context, queue string, a Action) (*hand, error) {
	s, err := ins.store(ctx, queue)
	if err == nil {
		err = a.check(queue)
	}
	if err != nil {
		return nil, err
	}
	names, err := ins.registry.Names(ctx)
	if err != nil {
		return nil, err
	}
	now, err := s.Time(ctx)
	if err != nil {
		return nil, err
	}
	s.RedisTime(now) // of the day whose counters are raised
	w := &hand{ins: ins, store: s, action: a, legacy: names[queue], now: now}
	w.queue, err = ins.openAs(queue, w.legacy)
	if err == nil && a.verb == verbEdit {
		err = w.checkCall(ctx)
	}
	if err == nil && a.verb == verbMove {
		w.targetLegacy = names[a.queue]
		w.target, err = ins.openAs(a.queue, w.targetLegacy)
	}
	return w, err
}

// takes returns an error if the action cannot be done to tasks in a state.
func (w *hand) takes(s state.Task) error {
	if slices.Contains(fits[w.action.verb], s) {
		return nil
	}
	return fmt.Errorf("inspect: cannot %s %v tasks: expected one of %v", w.action.verb, s, fits[w.action.verb])
}

// all does the action to all tasks of a list.
func (w *hand) all(ctx context.Context, q *Query, progress func(Report) bool) error {
	r, err := w.ins.reader(ctx, w.store, q, place{}, w.now)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	return w.each(ctx, r, redisstore.MaxWithdrawn, func(t *listed) bool {
		w.report.Scanned++
		if seen[t.ID] || !q.Filter.Match(&t.Task, w.now) {
			return false
		}
		if t.ID != "" {
			seen[t.ID] = true
		}
		return true
	}, func() bool { return progress == nil || progress(w.report) })
}

// each does the action to those tasks of a list that are meant, and goes on as long as it should, asked after each
// page.
func (w *hand) each(
	ctx context.Context, r reader, page int, isMeant func(*listed) bool, goOn func() bool,
) error {
	for {
		tasks, more, err := r.read(ctx, page)
		if err != nil {
			return err
		}
		meant := tasks[:0]
		for i := range tasks {
			if isMeant(&tasks[i]) {
				meant = append(meant, tasks[i])
			}
		}
		for some := range slices.Chunk(meant, redisstore.MaxWithdrawn) {
			if err := w.do(ctx, some); err != nil {
				return err
			}
			if p, ok := r.(*pendingReader); ok && w.legacy {
				p.taken()
			}
		}
		if !goOn() || !more {
			return nil
		}
	}
}

// do does the action to tasks, which are all in one state.
func (w *hand) do(ctx context.Context, tasks []listed) error {
	if err := w.takes(tasks[0].State); err != nil {
		for i := range tasks {
			w.report.fail(tasks[i].ID, err)
		}
		return nil
	}
	tasks = slices.DeleteFunc(tasks, func(t listed) bool {
		moves := w.moves(&t)
		if moves {
			w.report.fail(t.ID, errMoves)
		}
		return moves
	})
	for len(tasks) > 0 { // a message may have a megabyte
		n, size := 1, tasks[0].Size
		for n < len(tasks) && size+tasks[n].Size <= redisstore.MaxCallBytes {
			size += tasks[n].Size
			n++
		}
		if err := w.act(ctx, tasks[:n]); err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

// act does the action to tasks of one state that one call of Redis can take.
func (w *hand) act(ctx context.Context, tasks []listed) error {
	switch w.action.verb {
	case verbRun:
		return w.run(ctx, tasks)
	case verbArchive:
		return w.archive(ctx, tasks)
	case verbDelete:
		return w.delete(ctx, tasks)
	case verbCancel:
		return w.cancel(ctx, tasks)
	case verbReschedule:
		return w.reschedule(ctx, tasks)
	case verbEdit:
		return w.edit(ctx, tasks)
	default:
		return w.move(ctx, tasks)
	}
}

// count adds the answers of a script about tasks to the report, and returns those to which the action was done.
func (w *hand) count(tasks []listed, answers []int) (done []listed) {
	for i := range tasks {
		switch answers[i] {
		case 1:
			w.report.Done++
			done = append(done, tasks[i])
		case 0:
			w.report.Skipped++
		default:
			w.report.fail(tasks[i].ID, errChanged)
		}
	}
	return done
}

var errMoves = errors.New("inspect: it is being moved to another queue: try again in a minute")

var errChanged = errors.New("inspect: somebody else changes it, or a task with its id, at the same time: try again")
