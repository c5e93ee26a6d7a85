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
// The error of Do is why it has stopped early, such as that Redis does not answer, or that it could not write to the
// audit log.
//
// After an error Do can be repeated. Tasks that it has dealt with then fail, because they are gone or in another state,
// or are done again: Reschedule sets the same time, and Edit sets the same arguments but puts a pending task at the end
// of its queue once more. Only after an error of MoveTo that wraps delayed.ErrUnknown look first: the task may be in
// both queues, and repeating the move could run it twice.
func (ins *Inspector) Do(ctx context.Context, queue string, a Action, ids ...string) (Report, error) {
	act, err := ins.actor(ctx, queue, a)
	if err != nil {
		return Report{}, err
	}
	err = act.to(ctx, ids)
	return act.report, errors.Join(err, act.note(ctx, &Record{IDs: ids}))
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
	act, err := ins.actor(ctx, queue, a)
	if err == nil {
		err = errors.Join(q.check(), act.takes(q.State))
	}
	if err != nil {
		return Report{}, err
	}
	err = act.all(ctx, &q, progress)
	return act.report, errors.Join(err, act.note(ctx, &Record{State: q.State.String(), Filter: &q.Filter}))
}

// actor applies one Action to tasks of one queue.
type actor struct {
	ins    *Inspector
	store  *redisstore.Store
	queue  *delayed.Queue
	action Action
	target *delayed.Queue // of a move
	// targetLegacy reports that legacy workers share the queue that tasks are moved to.
	targetLegacy bool
	legacy       bool      // legacy workers share the queue
	now          time.Time // by Redis's clock, when it began
	report       Report
}

func (ins *Inspector) actor(ctx context.Context, queue string, action Action) (*actor, error) {
	s, err := ins.store(ctx, queue)
	if err == nil {
		err = action.check(queue)
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
	a := &actor{ins: ins, store: s, action: action, legacy: names[queue], now: now}
	a.queue, err = ins.openAs(queue, a.legacy)
	if err == nil && action.verb == verbEdit {
		err = a.checkCall(ctx)
	}
	if err == nil && action.verb == verbMove {
		a.targetLegacy = names[action.queue]
		a.target, err = ins.openAs(action.queue, a.targetLegacy)
	}
	return a, err
}

// takes returns an error if the action cannot be done to tasks in a state.
func (a *actor) takes(s state.Task) error {
	if slices.Contains(fits[a.action.verb], s) {
		return nil
	}
	return fmt.Errorf("inspect: cannot %s %v tasks: expected one of %v", a.action.verb, s, fits[a.action.verb])
}

// all does the action to all tasks of a list.
func (a *actor) all(ctx context.Context, q *Query, progress func(Report) bool) error {
	r, err := a.ins.reader(ctx, a.store, q, place{}, a.now)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	return a.each(ctx, r, redisstore.MaxWithdrawn, func(t *listed) bool {
		a.report.Scanned++
		if seen[t.ID] || !q.Filter.Match(&t.Task, a.now) {
			return false
		}
		if t.ID != "" {
			seen[t.ID] = true
		}
		return true
	}, func() bool { return progress == nil || progress(a.report) })
}

// each does the action to those tasks of a list that are meant, and goes on as long as it should, asked after each
// page.
func (a *actor) each(
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
			if err := a.do(ctx, some); err != nil {
				return err
			}
			if p, ok := r.(*pendingReader); ok && a.legacy {
				p.taken()
			}
		}
		if !goOn() || !more {
			return nil
		}
	}
}

// do does the action to tasks, which are all in one state.
func (a *actor) do(ctx context.Context, tasks []listed) error {
	if err := a.takes(tasks[0].State); err != nil {
		for i := range tasks {
			a.report.fail(tasks[i].ID, err)
		}
		return nil
	}
	tasks = slices.DeleteFunc(tasks, func(t listed) bool {
		moves := a.moves(&t)
		if moves {
			a.report.fail(t.ID, errMoves)
		}
		return moves
	})
	for len(tasks) > 0 { // a message may have a megabyte
		n, size := 1, tasks[0].Size
		for n < len(tasks) && size+tasks[n].Size <= redisstore.MaxCallBytes {
			size += tasks[n].Size
			n++
		}
		if err := acts[a.action.verb](a, ctx, tasks[:n]); err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

// count adds the answers of a script about tasks to the report, and returns those to which the action was done.
func (a *actor) count(tasks []listed, answers []int) (done []listed) {
	for i := range tasks {
		switch answers[i] {
		case 1:
			a.report.Done++
			done = append(done, tasks[i])
		case 0:
			a.report.Skipped++
		default:
			a.report.fail(tasks[i].ID, errChanged)
		}
	}
	return done
}

var errMoves = errors.New("inspect: it is being moved to another queue: try again in a minute")

var errChanged = errors.New("inspect: somebody else changes it, or a task with its id, at the same time: try again")

// to does the action to the tasks with the given ids. Those that are not in a set are looked for in the lists, all in
// one go, in the direction in which tasks move, so that one that moves meanwhile is found; only then in the sets again.
func (a *actor) to(ctx context.Context, ids []string) error {
	left, err := a.toFiled(ctx, ids)
	if err != nil {
		return err
	}
	for _, in := range notFiled {
		if len(left) == 0 {
			break
		}
		r, err := a.ins.reader(ctx, a.store, &Query{State: in, NewestFirst: true}, place{}, a.now)
		if err != nil {
			return err
		}
		page := mostLimit
		if a.legacy {
			page = redisstore.MaxWithdrawn
		}
		if err := a.each(ctx, r, page, func(t *listed) bool {
			meant := left[t.ID] && t.ID != ""
			if meant {
				delete(left, t.ID)
			}
			return meant
		}, func() bool { return len(left) > 0 }); err != nil {
			return err
		}
	}
	var rest []string
	for _, id := range ids {
		if left[id] {
			rest = append(rest, id)
		}
	}
	a.report.Scanned -= len(left)
	left, err = a.toFiled(ctx, rest)
	for _, id := range rest {
		if left[id] {
			a.report.fail(id, notFound(a.store.Name, id))
		}
	}
	return err
}

// toFiled does the action to those tasks that are in a set, and returns the ids of others.
func (a *actor) toFiled(ctx context.Context, ids []string) (left map[string]bool, err error) {
	left = map[string]bool{}
	seen := map[string]bool{}
	var some []listed // of one state
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		a.report.Scanned++
		t, filed, _, err := a.ins.look(ctx, a.store, id)
		if err != nil {
			return left, err
		}
		if !filed || id == "" {
			left[id] = true
			continue
		}
		if len(some) > 0 && (some[0].State != t.State || len(some) == redisstore.MaxWithdrawn) {
			if err := a.do(ctx, some); err != nil {
				return left, err
			}
			some = nil
		}
		some = append(some, listed{Task: t})
	}
	if len(some) > 0 {
		err = a.do(ctx, some)
	}
	return left, err
}
