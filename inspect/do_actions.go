package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// run makes filed tasks pending.
func (w *hand) run(ctx context.Context, tasks []listed) error {
	from := shelves[tasks[0].State]
	keep := from != redisstore.ShelfArchived
	for len(tasks) > 0 {
		n := min(len(tasks), redisstore.RerunPage)
		var reruns []redisstore.Rerun
		var those []listed
		for _, t := range tasks[:n] {
			r, err := w.renewed(&t, nil, keep)
			if err != nil {
				w.report.fail(t.ID, err)
				continue
			}
			reruns, those = append(reruns, r), append(those, t)
		}
		tasks = tasks[n:]
		if len(reruns) == 0 {
			continue
		}
		answers, err := w.store.RunFiled(ctx, from, reruns)
		if err != nil {
			return err
		}
		w.count(those, answers)
	}
	return nil
}

// renewed returns how a task is to run: see seam.Renew.
func (w *hand) renewed(t *listed, call any, keep bool) (redisstore.Rerun, error) {
	if t.raw == nil {
		return redisstore.Rerun{}, errors.New("inspect: " + t.Problem + ": it can only be deleted")
	}
	message, id, own, err := seam.Renew(w.queue, t.ID, t.raw, call, keep)
	return redisstore.Rerun{Name: t.ID, ID: id, Old: t.raw, New: message, Own: own}, err
}

// archiveInfo returns what is kept of a task that is archived.
func (w *hand) archiveInfo(t *listed, reason state.Reason, at time.Time) []byte {
	info := wire.ParseInfo(t.info)
	info.Reason, info.At = reason, at
	if info.Function == "" {
		info.Function = t.Function
	}
	return info.Encode()
}

// awaited reports whether somebody may wait for the end of a task.
func (t *listed) awaited() bool { return t.Options.KeepResult > 0 || t.Options.Retention > 0 }

// archiveFor is how long tasks are archived, unless workers trim their archive earlier.
const archiveFor = 90 * 24 * time.Hour

// archive archives tasks that wait.
func (w *hand) archive(ctx context.Context, tasks []listed) error {
	_, err := w.toArchive(ctx, tasks, state.ReasonByHand)
	return err
}

// toArchive archives tasks with a reason, and returns those that are archived now.
func (w *hand) toArchive(ctx context.Context, tasks []listed, reason state.Reason) (done []listed, err error) {
	at := w.store.Now()
	until := at.Add(archiveFor)
	if tasks[0].State == state.Pending {
		how := redisstore.WithdrawToArchive
		if w.action.verb == verbMove {
			how = redisstore.WithdrawToMove
		}
		return w.withdraw(ctx, how, tasks, func(t *listed) redisstore.Withdrawn {
			return redisstore.Withdrawn{Until: until, Info: w.archiveInfo(t, reason, at), Awaited: t.awaited()}
		})
	}
	return w.refile(ctx, tasks, redisstore.ShelfArchived, func(t *listed) (redisstore.Refiled, error) {
		one := redisstore.Refiled{New: t.raw, Until: until, Info: w.archiveInfo(t, reason, at), Awaited: t.awaited()}
		if t.State == state.Archived { // the name that it has makes it the caller's own
			t.ID += movingName
			one.NewID, one.Until = t.ID, t.Due
		}
		return one, nil
	})
}

// withdraw takes pending tasks out of their lists. file says how each is filed.
func (w *hand) withdraw(
	ctx context.Context, how redisstore.Withdrawing, tasks []listed, file func(*listed) redisstore.Withdrawn,
) (done []listed, err error) {
	for part, s := range []*redisstore.Store{w.store, w.store.Suspects()} {
		var those []listed
		var out []redisstore.Withdrawn
		for _, t := range tasks {
			switch {
			case t.behind.Part != part:
				continue
			case t.raw == nil:
				w.report.fail(t.ID, errors.New("inspect: "+t.Problem+": a worker will archive it"))
				continue
			}
			one := file(&t)
			one.Place, one.Message, one.ID, one.Lock = t.behind.N, t.raw, t.ID, t.Options.Lock
			if one.ID == "" && how != redisstore.WithdrawAndDrop {
				one.ID = wire.NewTaskID() // that it is filed under
				t.ID = one.ID
			}
			those, out = append(those, t), append(out, one)
		}
		if len(out) == 0 {
			continue
		}
		answers, err := s.Withdraw(ctx, how, w.legacy, out)
		if answers != nil {
			done = append(done, w.count(those, answers)...)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// refile moves filed tasks to a set. file says how each is filed there.
func (w *hand) refile(
	ctx context.Context, tasks []listed, to redisstore.Shelf, file func(*listed) (redisstore.Refiled, error),
) (done []listed, err error) {
	var those []listed
	var out []redisstore.Refiled
	for _, t := range tasks {
		if t.raw == nil {
			w.report.fail(t.ID, errors.New("inspect: "+t.Problem+": it can only be deleted"))
			continue
		}
		id := t.ID
		one, err := file(&t)
		if err != nil {
			w.report.fail(t.ID, err)
			continue
		}
		one.ID, one.Old, one.Lock = id, t.raw, t.Options.Lock
		those, out = append(those, t), append(out, one)
	}
	if len(out) == 0 {
		return nil, nil
	}
	answers, err := w.store.Refile(ctx, shelves[tasks[0].State], to, w.action.verb == verbMove, out)
	if err != nil {
		return nil, err
	}
	return w.count(those, answers), nil
}

// delete deletes tasks that have ended, and cancels others.
func (w *hand) delete(ctx context.Context, tasks []listed) error {
	switch tasks[0].State {
	case state.Archived, state.Completed, state.Dropped, state.Canceled:
		ids := make([]string, len(tasks))
		for i := range tasks {
			ids[i] = tasks[i].ID
		}
		which := redisstore.DeleteCompleted
		if tasks[0].State == state.Archived {
			which = redisstore.DeleteArchived
		}
		n, err := w.store.Delete(ctx, which, ids)
		w.report.Done += n
		w.report.Skipped += len(ids) - n
		return err
	case state.Pending:
	default:
		return w.cancel(ctx, tasks)
	}
	var plain, kept []listed
	for _, t := range tasks {
		if t.awaited() && t.ID != "" {
			kept = append(kept, t) // who waits for it learns that it was cancelled
		} else {
			plain = append(plain, t)
		}
	}
	if len(kept) > 0 {
		if err := w.cancel(ctx, kept); err != nil {
			return err
		}
	}
	if len(plain) == 0 {
		return nil
	}
	_, err := w.withdraw(ctx, redisstore.WithdrawAndDrop, plain, func(*listed) redisstore.Withdrawn {
		return redisstore.Withdrawn{Until: w.now}
	})
	return err
}

// cancel cancels tasks.
func (w *hand) cancel(ctx context.Context, tasks []listed) error {
	for _, t := range tasks {
		switch err := w.queue.Ref(t.ID).Cancel(ctx); {
		case err == nil:
			w.report.Done++
		case errors.Is(err, delayed.ErrEnded):
			w.report.Skipped++
		case errors.Is(err, delayed.ErrNoID):
			w.report.fail(t.ID, err)
		default:
			return err
		}
	}
	return nil
}

// reschedule makes tasks due at another time.
func (w *hand) reschedule(ctx context.Context, tasks []listed) error {
	if tasks[0].State == state.Pending {
		done, err := w.withdraw(ctx, redisstore.WithdrawToSchedule, tasks, func(*listed) redisstore.Withdrawn {
			return redisstore.Withdrawn{Until: w.action.at}
		})
		return errors.Join(err, w.tellDue(ctx, done))
	}
	_, err := w.refile(ctx, tasks, shelves[tasks[0].State], func(t *listed) (redisstore.Refiled, error) {
		return redisstore.Refiled{New: dueAt(t.raw, w.action.at), Until: w.action.at}, nil
	})
	return err
}

// tellDue has the messages of tasks that were pending, and are scheduled now, say when they are due. It leaves alone
// those that are pending again.
func (w *hand) tellDue(ctx context.Context, tasks []listed) error {
	for len(tasks) > 0 {
		part := tasks[:min(len(tasks), redisstore.MaxWithdrawn)]
		tasks = tasks[len(part):]
		out := make([]redisstore.Refiled, len(part))
		for i := range part {
			raw := part[i].raw
			out[i] = redisstore.Refiled{ID: part[i].ID, Old: raw, New: dueAt(raw, w.action.at), Until: w.action.at}
		}
		_, err := w.store.Refile(ctx, redisstore.ShelfScheduled, redisstore.ShelfScheduled, false, out)
		if err != nil {
			return err
		}
	}
	return nil
}

// dueAt returns a message that says when its task is due, if it can say that.
func dueAt(raw []byte, at time.Time) []byte {
	msg, err := wire.Parse(raw, wire.WorkerLimits)
	if err != nil || msg.Kind != wire.GoExtended && msg.Kind != wire.PyExtended {
		return raw
	}
	x := wire.Extra{}
	if msg.Meta.Extra != nil {
		x = *msg.Meta.Extra
	}
	x.Due = max(at.UnixMilli(), 1)
	msg.Meta.Extra = &x
	return msg.Append(nil)
}

// edit gives tasks other arguments.
func (w *hand) edit(ctx context.Context, tasks []listed) error {
	renew := func(t *listed) ([]byte, error) {
		r, err := w.renewed(t, w.action.call, true)
		return r.New, err
	}
	if tasks[0].State != state.Pending {
		_, err := w.refile(ctx, tasks, shelves[tasks[0].State], func(t *listed) (redisstore.Refiled, error) {
			message, err := renew(t)
			return redisstore.Refiled{New: message, Until: t.Due}, err
		})
		return err
	}
	var fine []listed
	for _, t := range tasks {
		if _, err := renew(&t); err != nil {
			w.report.fail(t.ID, err)
		} else {
			fine = append(fine, t)
		}
	}
	if len(fine) == 0 {
		return nil
	}
	// In two steps, by way of the schedule: should the program end between them, the task is there, as it was.
	done, err := w.withdraw(ctx, redisstore.WithdrawToSchedule, fine, func(*listed) redisstore.Withdrawn {
		return redisstore.Withdrawn{Until: w.now.Add(editTime)}
	})
	w.report.Done -= len(done)
	if err != nil || len(done) == 0 {
		return err
	}
	reruns := make([]redisstore.Rerun, 0, len(done))
	for i := range done {
		r, err := w.renewed(&done[i], w.action.call, true)
		if err != nil {
			return err // it was fine above
		}
		reruns = append(reruns, r)
	}
	answers, err := w.store.RunFiled(context.WithoutCancel(ctx), redisstore.ShelfScheduled, reruns)
	if err != nil {
		return err
	}
	w.count(done, answers)
	return nil
}

// editTime is how long a pending task may be scheduled while it is edited. After it, it is pending again as it was.
const editTime = time.Minute
