package site

import (
	"context"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/auth"
)

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
