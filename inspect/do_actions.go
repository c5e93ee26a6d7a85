package inspect

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// run makes filed tasks pending.
func (a *actor) run(ctx context.Context, tasks []listed) error {
	from := shelves[tasks[0].State]
	keep := from != redisstore.ShelfArchived
	for some := range slices.Chunk(tasks, redisstore.RerunPage) {
		var reruns []redisstore.Rerun
		var those []listed
		for _, t := range some {
			r, err := a.renewed(&t, nil, keep)
			if err != nil {
				a.report.fail(t.ID, err)
				continue
			}
			reruns, those = append(reruns, r), append(those, t)
		}
		if len(reruns) == 0 {
			continue
		}
		answers, err := a.store.RunFiled(ctx, from, reruns)
		if err != nil {
			return err
		}
		a.count(those, answers)
	}
	return nil
}

// renewed returns how a task is to run: see seam.Renew.
func (a *actor) renewed(t *listed, call any, keep bool) (redisstore.Rerun, error) {
	if t.raw == nil {
		return redisstore.Rerun{}, t.errUnreadable()
	}
	message, id, own, err := seam.Renew(a.queue, t.ID, t.raw, call, keep)
	return redisstore.Rerun{Name: t.ID, ID: id, Old: t.raw, New: message, Own: own}, err
}

// errUnreadable is the error of a filed task whose message is too large, or was not kept.
func (t *listed) errUnreadable() error {
	return errors.New("inspect: " + t.Problem + ": it can only be deleted")
}

// archiveInfo returns what is kept of a task that is archived.
func (a *actor) archiveInfo(t *listed, reason state.Reason, at time.Time) []byte {
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
func (a *actor) archive(ctx context.Context, tasks []listed) error {
	_, err := a.toArchive(ctx, tasks)
	return err
}

// toArchive archives tasks, for good or on their way to another queue, and returns those that are archived now.
func (a *actor) toArchive(ctx context.Context, tasks []listed) (done []listed, err error) {
	how, reason := redisstore.WithdrawToArchive, state.ReasonByHand
	if a.action.verb == verbMove {
		how, reason = redisstore.WithdrawToMove, state.ReasonMoving
	}
	at := a.store.Now()
	until := at.Add(archiveFor)
	if tasks[0].State == state.Pending {
		return a.withdraw(ctx, how, tasks, func(t *listed) redisstore.Withdrawn {
			return redisstore.Withdrawn{Until: until, Info: a.archiveInfo(t, reason, at), Awaited: t.awaited()}
		})
	}
	return a.refile(ctx, tasks, redisstore.ShelfArchived, func(t *listed) (redisstore.Refiled, error) {
		one := redisstore.Refiled{New: t.raw, Until: until, Info: a.archiveInfo(t, reason, at), Awaited: t.awaited()}
		if t.State == state.Archived { // the name that it has makes it the caller's own
			t.ID += movingName
			one.NewID, one.Until = t.ID, t.Due
		}
		return one, nil
	})
}

// withdraw takes pending tasks out of their lists. file returns how each is filed.
func (a *actor) withdraw(
	ctx context.Context, how redisstore.Withdrawing, tasks []listed, file func(*listed) redisstore.Withdrawn,
) (done []listed, err error) {
	for part, s := range []*redisstore.Store{a.store, a.store.Suspects()} {
		var those []listed
		var out []redisstore.Withdrawn
		for _, t := range tasks {
			switch {
			case t.behind.Part != part:
				continue
			case t.raw == nil:
				a.report.fail(t.ID, errors.New("inspect: "+t.Problem+": a worker will archive it"))
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
		answers, err := s.Withdraw(ctx, how, a.legacy, out)
		if answers != nil {
			done = append(done, a.count(those, answers)...)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// refile moves filed tasks to a set. file returns how each is filed there.
func (a *actor) refile(
	ctx context.Context, tasks []listed, to redisstore.Shelf, file func(*listed) (redisstore.Refiled, error),
) (done []listed, err error) {
	var those []listed
	var out []redisstore.Refiled
	for _, t := range tasks {
		if t.raw == nil {
			a.report.fail(t.ID, t.errUnreadable())
			continue
		}
		id := t.ID
		one, err := file(&t)
		if err != nil {
			a.report.fail(t.ID, err)
			continue
		}
		one.ID, one.Old, one.Lock = id, t.raw, t.Options.Lock
		those, out = append(those, t), append(out, one)
	}
	if len(out) == 0 {
		return nil, nil
	}
	answers, err := a.store.Refile(ctx, shelves[tasks[0].State], to, a.action.verb == verbMove, out)
	if err != nil {
		return nil, err
	}
	return a.count(those, answers), nil
}

// delete deletes tasks that have ended, and cancels others.
func (a *actor) delete(ctx context.Context, tasks []listed) error {
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
		n, err := a.store.Delete(ctx, which, ids)
		a.report.Done += n
		a.report.Skipped += len(ids) - n
		return err
	case state.Pending:
	default:
		return a.cancel(ctx, tasks)
	}
	var plain, kept []listed
	for _, t := range tasks {
		if t.awaited() && t.ID != "" {
			kept = append(kept, t) // who waits for it learns that it was canceled
		} else {
			plain = append(plain, t)
		}
	}
	if err := a.cancel(ctx, kept); err != nil {
		return err
	}
	_, err := a.withdraw(ctx, redisstore.WithdrawAndDrop, plain, func(*listed) redisstore.Withdrawn {
		return redisstore.Withdrawn{Until: a.now}
	})
	return err
}

// cancel cancels tasks.
func (a *actor) cancel(ctx context.Context, tasks []listed) error {
	for _, t := range tasks {
		switch err := a.queue.Ref(t.ID).Cancel(ctx); {
		case err == nil:
			a.report.Done++
		case errors.Is(err, delayed.ErrEnded):
			a.report.Skipped++
		case errors.Is(err, delayed.ErrNoID):
			a.report.fail(t.ID, err)
		default:
			return err
		}
	}
	return nil
}

// reschedule makes tasks due at another time.
func (a *actor) reschedule(ctx context.Context, tasks []listed) error {
	if tasks[0].State == state.Pending {
		done, err := a.withdraw(ctx, redisstore.WithdrawToSchedule, tasks, func(*listed) redisstore.Withdrawn {
			return redisstore.Withdrawn{Until: a.action.at}
		})
		return errors.Join(err, a.writeDue(ctx, done))
	}
	_, err := a.refile(ctx, tasks, shelves[tasks[0].State], func(t *listed) (redisstore.Refiled, error) {
		return redisstore.Refiled{New: dueAt(t.raw, a.action.at), Until: a.action.at}, nil
	})
	return err
}

// writeDue writes the due time into the messages of tasks that were pending and are scheduled now. It leaves alone
// those that are pending again.
func (a *actor) writeDue(ctx context.Context, tasks []listed) error {
	if len(tasks) == 0 {
		return nil
	}
	out := make([]redisstore.Refiled, len(tasks))
	for i := range tasks {
		raw := tasks[i].raw
		out[i] = redisstore.Refiled{ID: tasks[i].ID, Old: raw, New: dueAt(raw, a.action.at), Until: a.action.at}
	}
	_, err := a.store.Refile(ctx, redisstore.ShelfScheduled, redisstore.ShelfScheduled, false, out)
	return err
}

// dueAt returns a message with the due time of its task in it, if it has room for that.
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
func (a *actor) edit(ctx context.Context, tasks []listed) error {
	renew := func(t *listed) ([]byte, error) {
		r, err := a.renewed(t, a.action.call, true)
		return r.New, err
	}
	if tasks[0].State != state.Pending {
		_, err := a.refile(ctx, tasks, shelves[tasks[0].State], func(t *listed) (redisstore.Refiled, error) {
			message, err := renew(t)
			return redisstore.Refiled{New: message, Until: t.Due}, err
		})
		return err
	}
	var fine []listed
	for _, t := range tasks {
		if _, err := renew(&t); err != nil {
			a.report.fail(t.ID, err)
		} else {
			fine = append(fine, t)
		}
	}
	// In two steps, by way of the schedule: should the program end between them, the task is there, as it was.
	done, err := a.withdraw(ctx, redisstore.WithdrawToSchedule, fine, func(*listed) redisstore.Withdrawn {
		return redisstore.Withdrawn{Until: a.now.Add(editTime)}
	})
	a.report.Done -= len(done)
	if err != nil || len(done) == 0 {
		return err
	}
	reruns := make([]redisstore.Rerun, 0, len(done))
	for i := range done {
		r, err := a.renewed(&done[i], a.action.call, true)
		if err != nil {
			return err // it was fine above
		}
		reruns = append(reruns, r)
	}
	answers, err := a.store.RunFiled(context.WithoutCancel(ctx), redisstore.ShelfScheduled, reruns)
	if err != nil {
		return err
	}
	a.count(done, answers)
	return nil
}

// editTime is how long a pending task may be scheduled while it is edited. After it, it is pending again as it was.
const editTime = time.Minute
