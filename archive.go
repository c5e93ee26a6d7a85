package delayed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Archived returns a page of the queue's archived tasks and how many there are. Use q.Ref(info.ID) to run one again,
// with other arguments if need be, or to delete it.
//
// The page begins after offset tasks and has at most n, 1 to 1,000. Tasks are sorted by when they will be deleted,
// soonest first. Pages are read one after the other: tasks that come or go in between may be missing or twice.
func (q *Queue) Archived(ctx context.Context, offset, n int) (page []TaskInfo, total int, err error) {
	return q.listFiled(ctx, "Archived", state.Archived, offset, n, true)
}

// RunAgain makes an archived task pending again, at the end of its queue, with all its retries, as if it had never
// failed. The count of its deaths starts at zero. If its Deadline, TTL or RetryUntil is over, that bound is removed. It
// does not take the lock of Unique again, but it reserves an id of TaskID again. The error wraps ErrNotArchived if the
// task is not archived. Repeating the call after an ErrUnknown does no harm.
func (r *Ref) RunAgain(ctx context.Context) error {
	return r.runAgain(ctx, nil)
}

// RunAgainWith is RunAgain with the arguments of t, which must be of the same function. Call makes such a task and
// checks the arguments against the function; NewGoTask and NewPyTask make one by the function's path, unchecked unless
// the queue has QueueConfig.Check.
//
//	err := q.Ref(id).RunAgainWith(ctx, delayed.Call(mail.Welcome, 42, "en"))
func (r *Ref) RunAgainWith(ctx context.Context, t *Task) error {
	if err := t.check(); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.queue.compare(ctx, t); err != nil {
		return err
	}
	return r.runAgain(ctx, t)
}

// Delete deletes an archived task, or what KeepResult or Retention keeps of one that has ended. The error wraps
// ErrNotArchived if there is neither. Tasks that wait are canceled instead, by Cancel.
func (r *Ref) Delete(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.checkMoving(ctx); err != nil {
		return err
	}
	n, err := r.queue.store.Delete(ctx, redisstore.DeleteBoth, []string{r.id})
	if err == nil && n == 0 {
		err = r.notArchived()
	}
	return err
}

// RunArchivedAgain makes archived tasks pending again, as Ref.RunAgain does, oldest first: those for which only returns
// true, all of them if it is nil. It returns how many. Tasks that are archived after it has begun are left alone, and
// so are those that are archived as too large. It goes on page by page; an error says that it has stopped in between.
func (q *Queue) RunArchivedAgain(ctx context.Context, only func(TaskInfo) bool) (n int, err error) {
	return q.eachArchived(ctx, only, func(ids []string) (done int, err error) {
		for len(ids) > 0 {
			messages, err := q.store.FiledMessages(ctx, ids)
			if err != nil {
				return done, err
			}
			var tasks []redisstore.Rerun
			for i, m := range messages {
				if m.Bytes == nil {
					continue // gone, or too large to run
				}
				t, err := newRerun(ids[i], m.Bytes, nil, q.stamp(time.Now()))
				if err != nil {
					return done, err
				}
				tasks = append(tasks, t)
			}
			ids = ids[len(messages):]
			if len(tasks) == 0 {
				continue
			}
			answers, err := q.store.Rerun(ctx, tasks)
			for _, a := range answers {
				done += max(a, 0)
			}
			if err != nil {
				return done, err
			}
		}
		return done, nil
	})
}

// DeleteArchived deletes archived tasks: those for which only returns true, all of them if it is nil. It returns how
// many, and works as RunArchivedAgain does.
func (q *Queue) DeleteArchived(ctx context.Context, only func(TaskInfo) bool) (n int, err error) {
	return q.eachArchived(ctx, only, func(ids []string) (int, error) {
		return q.store.Delete(ctx, redisstore.DeleteArchived, ids)
	})
}

// eachArchived calls do with pages of the archived tasks for which only returns true. do returns how many of them are
// no longer archived.
func (q *Queue) eachArchived(
	ctx context.Context, only func(TaskInfo) bool, do func(ids []string) (int, error),
) (n int, err error) {
	passed := 0 // tasks at the front of the set that stay archived
	for left := -1; left != 0; {
		page, total, err := q.listFiled(ctx, "Archived", state.Archived, passed, redisstore.MaxListPage, only != nil)
		if err != nil {
			return n, err
		}
		if left < 0 {
			left = total
		}
		// Tasks that are archived meanwhile come after these.
		page = page[:min(len(page), left)]
		left -= len(page)
		if len(page) == 0 {
			break
		}
		var ids []string
		for _, task := range page {
			moves, err := q.moves(ctx, &task)
			if err != nil {
				return n, err
			}
			if !moves && (only == nil || only(task)) {
				ids = append(ids, task.ID)
			}
		}
		gone := 0
		for len(ids) > 0 {
			part := ids[:min(len(ids), redisstore.RerunPage)]
			ids = ids[len(part):]
			done, err := do(part)
			gone += done
			n += done
			if err != nil {
				return n, err
			}
		}
		passed += len(page) - gone
	}
	return n, nil
}

// runAgain makes the task pending, with the arguments of t unless it is nil.
func (r *Ref) runAgain(ctx context.Context, t *Task) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	const tries = 3 // another program may edit the task at the same time
	for range tries {
		message, err := r.queue.store.FiledMessage(ctx, r.id)
		switch {
		case err != nil:
			return err
		case message.Size > 0:
			return fmt.Errorf("delayed: task %s cannot run again, its message is too large: %w; delete it", r,
				redisstore.TooLarge(message.Size))
		case message.Bytes == nil:
			return r.notArchived()
		}
		if err := r.checkMoving(ctx); err != nil {
			return err
		}
		if t != nil {
			t = t.forQueue(r.queue)
		}
		again, err := newRerun(r.id, message.Bytes, t, r.queue.stamp(time.Now()))
		if err != nil {
			return err
		}
		answers, err := r.queue.store.Rerun(ctx, []redisstore.Rerun{again})
		switch {
		case err != nil:
			return err
		case answers[0] == 1:
			return nil
		case answers[0] == 0:
			return r.notArchived()
		}
	}
	return errors.New("delayed: running a task again: others change it at the same time; try again")
}

// moves reports whether an inspector moves an archived task to another queue: nobody else may take it meanwhile.
func (q *Queue) moves(ctx context.Context, i *TaskInfo) (bool, error) {
	if i.Reason != state.ReasonMoving {
		return false, nil
	}
	now, err := q.store.Time(ctx)
	return now.Sub(i.At) < lifecycle.MovingTime, err
}

// checkMoving returns an error if an inspector moves the archived task.
func (r *Ref) checkMoving(ctx context.Context) error {
	noted, err := r.queue.store.FiledInfo(ctx, r.id)
	if err != nil {
		return err
	}
	info := wire.ParseInfo(noted)
	task := publicInfo(&info)
	moves, err := r.queue.moves(ctx, &task)
	if err == nil && moves {
		err = fmt.Errorf("%w: task %s is on its way to another queue; if it still is in a minute, try again",
			ErrNotArchived, r)
	}
	return err
}

func (r *Ref) notArchived() error {
	return fmt.Errorf("%w: expected task %s there; ask Ref.State where it is", ErrNotArchived, r)
}

// newRerun prepares running the task filed under name again at now, in ms, with the arguments of t unless t is nil.
// Without arguments it leaves an undecodable message unchanged.
func newRerun(name string, old []byte, t *Task, now int64) (redisstore.Rerun, error) {
	again := redisstore.Rerun{Name: name, ID: name, Old: old, New: old}
	msg, err := wire.Parse(old, wire.WorkerLimits)
	switch {
	case err == nil && t != nil && t.msg.Path != msg.Path:
		return again, otherFunction(&msg, t)
	case err != nil && t == nil:
		return again, nil
	case err != nil:
		msg = t.msg
		msg.Extend()
		if msg.Kind != wire.Py {
			msg.Meta.ID = name
		}
	}
	if msg.Meta.ID != "" {
		again.ID = msg.Meta.ID
	}
	if t != nil {
		msg.Extend()
		msg.Payload, msg.Py = t.msg.Payload, t.msg.Py
		msg.Meta.HasN, msg.Meta.N = t.msg.Meta.HasN, t.msg.Meta.N
	} else if msg.Kind == wire.Py || msg.Kind == wire.GoBare || msg.Kind == wire.GoPlain {
		return again, nil // the message has no failures to remove
	}
	m := &msg.Meta
	m.Retried, m.Deaths, m.DiedAt = 0, 0, 0
	if m.Extra != nil {
		x := *m.Extra
		if x.FirstFailed != 0 || x.Due != 0 {
			x.Due = max(x.Due, now)
		}
		x.FirstFailed, x.AloneDeaths = 0, 0
		again.Own = x.Lock != ""
		for _, end := range []*int64{&x.Deadline, &x.Expiry, &x.RetryUntil} {
			if *end <= now {
				*end = 0
			}
		}
		m.Extra = &x
	}
	again.New, err = finishMessage(nil, &msg)
	return again, err
}

// otherFunction returns the error for arguments that are not those of a message's function.
func otherFunction(msg *wire.Message, t *Task) error {
	return fmt.Errorf("%w: running a task again: expected arguments of %s, found those of %s", ErrFunction, msg.Path,
		t.msg.Path)
}

// Parked returns a page of the queue's parked tasks and how many there are. A worker that knows the fields and the
// function, by its path or an Alias, claims a parked task at once, within 50 ms if it has a free executor, and one that
// starts later does when it starts. Otherwise it is archived at Due, seven days after At. Tasks that stay parked for
// long show that producers expect a version of the workers that does not run.
//
// The page begins after offset tasks and has at most n, 1 to 1,000. Tasks are sorted by when they will be archived,
// soonest first. Of each, ID, State, Function, Due, At, Reason, Worker and Task are known, and Error if Reason is
// "unknown fields": it says which. Pages are read one after the other: tasks that come or go in between may be missing
// or twice.
func (q *Queue) Parked(ctx context.Context, offset, n int) (page []TaskInfo, total int, err error) {
	return q.listFiled(ctx, "Parked", state.Parked, offset, n, true)
}

// listFiled returns a page of one of the sets, with the messages of its tasks or without.
func (q *Queue) listFiled(
	ctx context.Context, name string, where state.Task, offset, n int, messages bool,
) (page []TaskInfo, total int, err error) {
	if err := q.check(ctx); err != nil {
		return nil, 0, err
	}
	if offset < 0 || n < 1 || n > redisstore.MaxListPage {
		return nil, 0, fmt.Errorf("delayed: %s(%d, %d): expected an offset of 0 or more and 1 to %d tasks", name,
			offset, n, redisstore.MaxListPage)
	}
	shelf := redisstore.ShelfParked
	if where == state.Archived {
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
		page[i].ID, page[i].State, page[i].Due = f.ID, where, f.At
	}
	if messages {
		err = q.readMessages(ctx, page)
	}
	return page, total, err
}

// readMessages reads the messages of tasks that wait or are archived.
func (q *Queue) readMessages(ctx context.Context, page []TaskInfo) error {
	ids := make([]string, len(page))
	for i := range page {
		ids[i] = page[i].ID
	}
	for done := 0; done < len(page); {
		messages, err := q.store.FiledMessages(ctx, ids[done:])
		if err != nil {
			return err
		}
		for i, m := range messages {
			page[done+i].read(q, m.Bytes)
		}
		done += len(messages)
	}
	return nil
}
