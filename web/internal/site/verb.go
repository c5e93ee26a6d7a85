package site

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/auth"
)

// Verb is something that operators do to tasks.
type Verb struct {
	Name   string // in forms
	Label  string
	Past   string // "Deleted"
	Help   string // in the API; "" if it is not there
	Ask    string // what else the form asks for: "when", "to" or nothing
	Danger bool   // it cannot be undone
	States []state.Task
	Action func(s *Site, args url.Values) (inspect.Action, error)
}

// Verbs are all that operators can do to tasks.
var Verbs = []Verb{
	{
		"run", "Run now", "Made pending",
		"Make a task pending that is scheduled, retrying, parked or archived.", "", false,
		[]state.Task{state.Scheduled, state.Retry, state.Parked},
		fixed(inspect.RunNow()),
	},
	{"retry", "Retry", "Made pending", "", "", false, []state.Task{state.Archived}, fixed(inspect.RunNow())},
	{
		"archive", "Archive", "Archived", "Archive a task that waits.", "", false,
		[]state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked},
		fixed(inspect.Archive()),
	},
	{
		"reschedule", "Reschedule", "Rescheduled",
		"Give another due time to a task that is pending, scheduled or retrying.", "when", false,
		[]state.Task{state.Pending, state.Scheduled, state.Retry},
		reschedule,
	},
	{
		"move", "Move", "Moved", "Move a task to another queue.", "to", false,
		[]state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived},
		move,
	},
	{
		"cancel", "Cancel", "Canceled", "Cancel a task that waits or runs.", "", true,
		[]state.Task{state.Pending, state.Active, state.Scheduled, state.Retry, state.Parked, state.Aggregating},
		fixed(inspect.Cancel()),
	},
	{
		"delete", "Delete", "Deleted", "Delete a task that waits or has ended.", "", true,
		[]state.Task{
			state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived, state.Completed, state.Dropped,
			state.Canceled,
		},
		fixed(inspect.Delete()),
	},
}

func fixed(a inspect.Action) func(*Site, url.Values) (inspect.Action, error) {
	return func(*Site, url.Values) (inspect.Action, error) { return a, nil }
}

func reschedule(_ *Site, args url.Values) (inspect.Action, error) {
	if args.Get("when") == "" {
		return inspect.Action{}, Bad("when? Give a duration from now on, such as 15m, or a time in UTC")
	}
	at, err := call.ParseWhen(args.Get("when"), time.Now(), time.UTC)
	if err != nil {
		return inspect.Action{}, Bad(err.Error())
	}
	if at.Year() > 9999 || at.Year() < 1 {
		return inspect.Action{}, Bad("expected a time up to the year 9999")
	}
	return inspect.Reschedule(at), nil
}

func move(s *Site, args url.Values) (inspect.Action, error) {
	to := strings.TrimSpace(args.Get("to"))
	if to == "" {
		return inspect.Action{}, Bad("where to? Give the name of a queue")
	}
	if _, err := delayed.OpenQueue(to, s.Redis, delayed.QueueConfig{}); err != nil {
		return inspect.Action{}, Bad(err.Error())
	}
	if to == args.Get("queue") {
		return inspect.Action{}, Bad("the tasks are in queue " + inspect.Printable(to) + " already")
	}
	return inspect.MoveTo(to), nil
}

// Fits reports whether v can be done to tasks in a state.
func (v *Verb) Fits(in state.Task) bool { return slices.Contains(v.States, in) }

// VerbsFor returns what can be done to tasks in a state.
func VerbsFor(in state.Task) (fit []Verb) {
	for _, v := range Verbs {
		if v.Fits(in) {
			fit = append(fit, v)
		}
	}
	return fit
}

// StateNamed returns the state of lists that has a name.
func StateNamed(name string) (state.Task, bool) {
	for _, s := range inspect.States {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// Command is something that users do to a whole queue, worker or periodic entry.
type Command struct {
	Name string // in forms and addresses
	Role auth.Role
	Help string // in the API
	Done string // what a page reports then: %s is the name of the thing
	To   string // the page that is shown then; "": the one with the form
	Do   commandFunc
}

// commandFunc carries out a command. queue is that of an entry.
type commandFunc func(s *Site, q *Request, queue, name string) error

// QueueCommands are what users do to queues.
var QueueCommands = []Command{
	{
		"pause", auth.Operator, "Let workers run no further tasks of a queue; what runs goes on.",
		"Queue %s is paused: what runs goes on, and nothing else begins.", "", onQueue((*inspect.Inspector).Pause),
	},
	{
		"resume", auth.Operator, "End a pause of a queue.", "Queue %s goes on.", "",
		onQueue((*inspect.Inspector).Resume),
	},
	{
		"restart", auth.Operator,
		"Let all workers of a queue finish what they run and stop, so that their supervisors start them again.",
		"The workers of queue %s finish what they run and stop; their supervisors start them again.", "",
		onQueue((*inspect.Inspector).Restart),
	},
}

// WorkerCommands are what users do to workers.
var WorkerCommands = []Command{
	{
		"pause", auth.Operator, "Let a worker claim no more tasks until it is resumed.",
		"Worker %s claims no more tasks until it is resumed.", "", onWorker(inspect.OrderPause),
	},
	{
		"resume", auth.Operator, "End a pause of a worker.", "Worker %s claims tasks again.", "",
		onWorker(inspect.OrderResume),
	},
	{
		"quiet", auth.Operator, "Let a worker claim no more tasks for good.",
		"Worker %s claims no more tasks; only its next start ends that.", "", onWorker(inspect.OrderQuiet),
	},
	{
		"stop", auth.Admin, "Let a worker finish what it runs and stop.",
		"Worker %s finishes what it runs, and stops.", "workers", onWorker(inspect.OrderStop),
	},
}

// EntryCommands are what users do to periodic entries.
var EntryCommands = []Command{
	{
		"pause", auth.Operator, "Let an entry tick no more until it is resumed.",
		"Entry %s ticks no more until it is resumed.", "", onEntry((*inspect.Inspector).PauseEntry),
	},
	{
		"resume", auth.Operator, "End a pause of an entry.", "Entry %s ticks again.", "",
		onEntry((*inspect.Inspector).ResumeEntry),
	},
	{
		"remove", auth.Admin, "Remove an entry and its history.", "Entry %s is removed, with its history.", "periodic",
		onEntry((*inspect.Inspector).RemoveEntry),
	},
}

func onQueue(do func(*inspect.Inspector, context.Context, string) error) commandFunc {
	return func(s *Site, q *Request, _, name string) error {
		if err := s.CheckName(name); err != nil {
			return err
		}
		return do(q.Ins, q.Ctx, name)
	}
}

func onWorker(o inspect.Order) commandFunc {
	return func(_ *Site, q *Request, _, id string) error { return q.Ins.OrderWorker(q.Ctx, id, o) }
}

func onEntry(do func(*inspect.Inspector, context.Context, string, string) error) commandFunc {
	return func(s *Site, q *Request, queue, name string) error {
		if err := s.CheckName(queue); err != nil {
			return err
		}
		return do(q.Ins, q.Ctx, queue, name)
	}
}
