package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Exported is a task as Redis keeps it, byte for byte: Task.Export returns it, and Import takes it.
type Exported struct {
	State   state.Task // Pending, Scheduled, Retry, Parked or Archived
	ID      string     // "" if the message of a pending task carries none
	Due     time.Time  // as Task.Due
	Message []byte     // see docs/PROTOCOL.md
	Info    []byte     // what is known beyond the message, such as errors; nil if nothing is
}

// portable are the states of tasks that can be written elsewhere: in which Import, MoveTo and Edit take them.
var portable = []state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived}

// Export returns the task as Redis keeps it, with all that Config.Redact may have changed in t. It fails for tasks in
// states that Import does not take, and for messages that are too large to be read.
func (t *Task) Export() (Exported, error) {
	switch {
	case !slices.Contains(portable, t.State):
		return Exported{}, fmt.Errorf("inspect: cannot export %v tasks: expected one of %v", t.State, portable)
	case t.raw == nil:
		return Exported{}, errors.New("inspect: cannot export: " + t.Problem)
	}
	return Exported{t.State, t.ID, t.Due, t.raw, t.info}, nil
}

// Import files exported tasks in a queue, in the same states and with the same times, and does not change what is
// there: a task whose id the queue holds in any state but Completed is a failure in the report, and so is one with an
// id, message or info that is larger than those of tasks are. First it reads the ids of all tasks of the queue that are
// pending, active or aggregating, so import many tasks at once. Tasks come without their locks of Unique and TaskID:
// while an imported task is pending or runs, a call with the same TaskID is accepted. progress is called after each
// task, in the goroutine of the caller, and may be nil; if it returns false, or tasks yields an error, Import stops.
//
// An error that wraps delayed.ErrUnknown leaves open whether the last task was imported. Tasks that are not pending are
// scheduled for ten years ahead while they are filed: if the program ends meanwhile, one may remain like that, until
// the same task is imported again.
func (ins *Inspector) Import(
	ctx context.Context, queue string, tasks iter.Seq2[Exported, error], progress func(Report) bool,
) (report Report, err error) {
	s, err := ins.store(ctx, queue)
	if err != nil {
		return report, err
	}
	names, err := ins.registry.Names(ctx)
	if err != nil {
		return report, err
	}
	taken := map[string]bool{}
	for _, in := range notFiled {
		for t, err := range ins.All(ctx, queue, Query{State: in, Limit: mostLimit}) {
			if err != nil {
				return report, err
			}
			taken[t.ID] = true
		}
	}
	delete(taken, "")
	ins.registry.Announce(ctx, queue, names[queue])
	for t, err := range tasks {
		if err != nil {
			return report, errors.Join(err, ins.noteImport(ctx, queue, &report))
		}
		report.Scanned++
		switch refused, err := ins.importTask(ctx, s, &t, taken); {
		case err != nil:
			return report, errors.Join(err, ins.noteImport(ctx, queue, &report))
		case refused != nil:
			report.fail(t.ID, refused)
		default:
			report.Done++
		}
		if progress != nil && !progress(report) {
			break
		}
	}
	return report, ins.noteImport(ctx, queue, &report)
}

var errTaken = errors.New("inspect: the queue holds a task with this id")

func (ins *Inspector) noteImport(ctx context.Context, queue string, r *Report) error {
	return ins.note(ctx, &Record{
		Action: "import", Queue: queue, Done: r.Done, Failed: r.failed(),
	})
}

// filing is how far ahead a task is scheduled while it is filed elsewhere.
const filing = 10 * 365 * 24 * time.Hour

// importTask files one task, or returns why it cannot be filed. taken are ids that sets do not have.
func (ins *Inspector) importTask(
	ctx context.Context, s *redisstore.Store, t *Exported, taken map[string]bool,
) (refused, err error) {
	msg, unreadable := wire.Parse(t.Message, wire.WorkerLimits)
	if refused := t.check(&msg, unreadable); refused != nil {
		return refused, nil
	}
	if unreadable == nil {
		if refused, err := settleForm(ctx, s, &msg); refused != nil || err != nil {
			return refused, err
		}
	}
	if t.ID != "" {
		found, err := s.Look(ctx, t.ID, false)
		if err != nil {
			return nil, err
		}
		name, at, _ := found.Place()
		if !taken[t.ID] && t.leftAt(name, at, found.Now) {
			refused, err := refileImported(ctx, s, t)
			if refused != nil {
				refused = errTaken // another task, after all
			}
			return refused, err
		}
		if taken[t.ID] || slices.ContainsFunc(portable, func(s state.Task) bool { return s.String() == name }) {
			return errTaken, nil
		}
		taken[t.ID] = true
	}
	batch := []redisstore.Envelope{{ID: t.ID, Message: t.Message}}
	if t.State == state.Pending {
		return nil, s.Enqueue(ctx, batch)
	}
	err = s.Schedule(ctx, batch, int64(filing/time.Millisecond), true)
	if other := (*redisstore.TakenError)(nil); errors.As(err, &other) {
		return errTaken, nil
	} else if err != nil {
		return nil, err
	}
	return refileImported(ctx, s, t)
}

// leftAt reports whether the task may be one that an import has left half filed: scheduled for years ahead.
func (t *Exported) leftAt(place string, at, now time.Time) bool {
	return t.State != state.Pending && place == state.Scheduled.String() && at.Sub(now) > filing*9/10 &&
		(t.State != state.Scheduled || !at.Equal(t.Due))
}

// refileImported files a task that is scheduled where it belongs.
func refileImported(ctx context.Context, s *redisstore.Store, t *Exported) (refused, err error) {
	answers, err := s.Refile(ctx, redisstore.ShelfScheduled, shelves[t.State], true, []redisstore.Refiled{
		{ID: t.ID, Old: t.Message, New: t.Message, Until: t.Due, Info: t.Info},
	})
	if err == nil && answers[0] != 1 {
		return errChanged, nil
	}
	return nil, err
}

// check returns an error if the task is not one that Export has returned.
func (t *Exported) check(msg *wire.Message, unreadable error) error {
	switch {
	case !slices.Contains(portable, t.State):
		return fmt.Errorf("inspect: cannot import %v tasks: expected one of %v", t.State, portable)
	case len(t.ID) > wire.Default.Path:
		return fmt.Errorf("inspect: the id has %d bytes: expected at most %d", len(t.ID), wire.Default.Path)
	case len(t.Message) > wire.WorkerLimits.Bytes: // nobody could export it again
		return fmt.Errorf("inspect: the message has %d bytes: expected at most %d", len(t.Message),
			wire.WorkerLimits.Bytes)
	case len(t.Info) > wire.InfoLimits.Bytes:
		return fmt.Errorf("inspect: the info has %d bytes: expected at most %d", len(t.Info), wire.InfoLimits.Bytes)
	case unreadable != nil && t.State != state.Archived:
		return fmt.Errorf("inspect: the message cannot be read: %w", unreadable)
	case unreadable == nil && msg.Meta.ID != "" && msg.Meta.ID != t.ID:
		return fmt.Errorf("inspect: the message carries the id %q: expected %q", msg.Meta.ID, t.ID)
	case t.State != state.Pending && t.ID == "":
		return fmt.Errorf("inspect: expected an id, because the task is %v", t.State)
	case t.State != state.Pending && t.Due.IsZero():
		return fmt.Errorf("inspect: expected a time, because the task is %v", t.State)
	}
	return nil
}

// settleForm returns why a queue does not take a task: all its Python tasks have one form.
func settleForm(ctx context.Context, s *redisstore.Store, msg *wire.Message) (refused, err error) {
	if !msg.Python() {
		return nil, nil
	}
	want := redisstore.ExtendedForm
	if msg.Kind == wire.Py {
		want = redisstore.PlainForm
	}
	form, err := s.SettleMode(ctx, want)
	if err == nil && form != want {
		refused = fmt.Errorf("inspect: queue %s takes Python tasks in the %s form, and this one has the %s form",
			s.Name, form, want)
	}
	return refused, err
}
