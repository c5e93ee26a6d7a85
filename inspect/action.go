package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// Action is something to do with tasks, made by RunNow, Archive, Delete, Cancel, Reschedule, MoveTo or Edit.
type Action struct {
	verb  verb
	at    time.Time
	queue string
	call  *delayed.Task
}

type verb string

const (
	verbRun        verb = "run"
	verbArchive    verb = "archive"
	verbDelete     verb = "delete"
	verbCancel     verb = "cancel"
	verbReschedule verb = "reschedule"
	verbMove       verb = "move"
	verbEdit       verb = "edit"
)

// acts are how each action is done, to tasks of one state that fit into one call.
var acts = map[verb]func(*actor, context.Context, []listed) error{
	verbRun: (*actor).run, verbArchive: (*actor).archive, verbDelete: (*actor).delete, verbCancel: (*actor).cancel,
	verbReschedule: (*actor).reschedule, verbMove: (*actor).move, verbEdit: (*actor).edit,
}

// fits are the states of tasks that each action takes.
var fits = map[verb][]state.Task{
	verbRun:     {state.Scheduled, state.Retry, state.Parked, state.Archived},
	verbArchive: {state.Pending, state.Scheduled, state.Retry, state.Parked},
	verbDelete: {
		state.Pending, state.Scheduled, state.Retry, state.Parked, state.Aggregating, state.Archived, state.Completed,
		state.Dropped, state.Canceled,
	},
	verbCancel: {
		state.Pending, state.Active, state.Scheduled, state.Retry, state.Parked, state.Aggregating,
	},
	verbReschedule: {state.Pending, state.Scheduled, state.Retry},
	verbMove:       portable,
	verbEdit:       portable,
}

// RunNow makes tasks pending that are scheduled, retrying, parked or archived. Archived ones start again with all their
// retries, as with Ref.RunAgain.
func RunNow() Action { return Action{verb: verbRun} }

// Archive archives tasks that are pending, scheduled, retrying or parked, with the reason "by hand": they run only if
// somebody runs them again. Their locks are freed. Workers delete the oldest archived tasks beyond
// WorkerConfig.ArchiveMax, 10,000 by default, and so tasks of which more are archived at once.
func Archive() Action { return Action{verb: verbArchive} }

// Delete deletes archived and completed tasks, as Ref.Delete does, and also tasks that wait, which Ref.Delete refuses.
// It removes pending tasks from the queue, and cancels all others that wait, as Ref.Cancel does; a pending task with
// KeepResult or Retention is canceled too, so that whoever waits for its end learns of it. Delete does not take active
// tasks.
func Delete() Action { return Action{verb: verbDelete} }

// Cancel cancels tasks that wait or run, as Ref.Cancel does.
func Cancel() Action { return Action{verb: verbCancel} }

// Reschedule gives another due time to tasks that are pending, scheduled or retrying, up to the year 9999. A time in
// the past means now. The locks of tasks that are to wait longer last as much longer.
func Reschedule(at time.Time) Action { return Action{verb: verbReschedule, at: at} }

// MoveTo moves tasks to another queue of the same Redis: pending ones to its end, scheduled and retrying ones keep
// their time, parked and archived ones become pending there. Their locks are freed, and they take none in the other
// queue.
//
// On their way, tasks are in the archive of the queue that they leave, with the reason "moving"; those that were
// archived before have "#moving" behind their id. A task that the other queue refuses goes back to where it was, with
// its time, a pending one to the end of its queue. If the program ends meanwhile, or Redis cannot be asked, tasks are
// still in the archive. Other actions of inspectors leave them alone for a minute; after that they can be moved again,
// run or deleted. After an error that wraps delayed.ErrUnknown a task may be in both queues.
func MoveTo(queue string) Action { return Action{verb: verbMove, queue: queue} }

// Edit gives a task other arguments: those of a task that delayed.Call, NewGoTask or NewPyTask has made, of the same
// function. A pending task goes to the end of its queue. If a living worker of the queue has published the function and
// the arguments fit none of its versions, Do and DoAll return an error that wraps delayed.ErrArguments. Of Python's
// functions, that covers the number of arguments and the types that annotations give.
func Edit(call *delayed.Task) Action { return Action{verb: verbEdit, call: call} }

// maxYear bounds due times, as delayed.At does.
const maxYear = 9999

// String returns the action as the audit log has it: "move to mail".
func (a Action) String() string {
	switch a.verb {
	case verbReschedule:
		return "reschedule to " + a.at.UTC().Format(time.RFC3339)
	case verbMove:
		return "move to " + Printable(a.queue)
	default:
		return string(a.verb)
	}
}

// check returns an error if the action is not complete, or cannot be done to tasks of one queue.
func (a Action) check(queue string) error {
	switch {
	case a.verb == "":
		return errors.New("inspect: the Action is zero: make it with RunNow, Archive, Delete, Cancel, Reschedule, " +
			"MoveTo or Edit")
	case a.verb == verbMove && a.queue == queue:
		return fmt.Errorf("inspect: MoveTo(%q): expected another queue than that of the tasks", queue)
	case a.verb == verbEdit && a.call == nil:
		return errors.New("inspect: Edit(nil): expected a task with the new arguments: make it with delayed.Call")
	case a.verb == verbReschedule && a.at.IsZero():
		return errors.New("inspect: Reschedule: expected a time, found the zero one; RunNow runs tasks at once")
	case a.verb == verbReschedule && a.at.Year() > maxYear:
		return fmt.Errorf("inspect: Reschedule: expected a time up to the year %d, found the year %d", maxYear,
			a.at.Year())
	}
	return nil
}

// Report is what an action has done so far.
type Report struct {
	Scanned int // tasks that were looked at
	Done    int
	Skipped int // tasks that have left their state, or ended, after they were read
	// Failed are tasks with which it went wrong, up to 100 of them, and FailedMore is how many others there are. Do
	// counts tasks among them that do not exist, or that are in a state that the action does not take.
	Failed     []Failure
	FailedMore int
}

// Failure is a task with which an action went wrong.
type Failure struct {
	ID  string
	Err error
}

// mostFailures bounds Report.Failed.
const mostFailures = 100

func (r *Report) fail(id string, err error) {
	if len(r.Failed) < mostFailures {
		r.Failed = append(r.Failed, Failure{id, err})
	} else {
		r.FailedMore++
	}
}

// failed returns how many failures there were.
func (r *Report) failed() int { return len(r.Failed) + r.FailedMore }

// Err returns the failures as one error; nil if there is none.
func (r *Report) Err() error {
	var errs []error
	for _, f := range r.Failed {
		errs = append(errs, fmt.Errorf("task %s: %w", Printable(f.ID), f.Err))
	}
	if r.FailedMore > 0 {
		errs = append(errs, fmt.Errorf("inspect: and %d more", r.FailedMore))
	}
	return errors.Join(errs...)
}
