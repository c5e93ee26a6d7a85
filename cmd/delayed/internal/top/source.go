package top

import (
	"context"
	"iter"

	"github.com/godelayed/delayed/inspect"
)

// source is what the screens read and what actions do: an inspector, with the control of queues and workers. Tests have
// one of their own.
type source interface {
	Names(ctx context.Context) ([]string, error)
	Queues(ctx context.Context) ([]inspect.Queue, error)
	Queue(ctx context.Context, name string) (inspect.Queue, error)
	Workers(ctx context.Context, queues ...string) ([]inspect.Worker, error)
	Tasks(ctx context.Context, queue string, q inspect.Query) (inspect.Page, error)
	Task(ctx context.Context, queue, id string) (inspect.Task, error)
	Find(ctx context.Context, id string) ([]inspect.Task, error)
	Functions(ctx context.Context, queues ...string) ([]inspect.Function, error)
	Watch(ctx context.Context, queues ...string) iter.Seq2[inspect.Event, error]
	Do(ctx context.Context, queue string, a inspect.Action, ids ...string) (inspect.Report, error)
	DoAll(
		ctx context.Context, queue string, a inspect.Action, q inspect.Query, progress func(inspect.Report) bool,
	) (inspect.Report, error)

	// diagnose returns what is wrong, as it was a few seconds ago at most.
	diagnose(ctx context.Context) (inspect.Diagnosis, error)
	Audit(ctx context.Context, skip, n int) ([]inspect.Record, error)

	// flows returns what queues have done lately, of those that are known so far.
	flows(ctx context.Context, s span, queues []string) (map[string]queueFlow, error)
	// pause pauses a queue, or resumes it.
	pause(ctx context.Context, queue string, paused bool) error
	OrderWorker(ctx context.Context, id string, o inspect.Order) error
	// entries returns the periodic entries of all queues.
	entries(ctx context.Context) (entriesData, error)
	// entry returns one of them with its history.
	entry(ctx context.Context, queue, name string) (entryData, error)
	// runEntry enqueues the task of an entry now.
	runEntry(ctx context.Context, queue, name string) error
	// pauseEntry pauses an entry, or resumes it.
	pauseEntry(ctx context.Context, queue, name string, paused bool) error
	RemoveEntry(ctx context.Context, queue, name string) error
	// groups returns the groups of calls of all queues.
	groups(ctx context.Context) (groupsData, error)
	FireGroup(ctx context.Context, queue, key, function string) (int, error)
}
