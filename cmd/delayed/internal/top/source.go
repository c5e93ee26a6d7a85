package top

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// source is what the screens read and act on: an inspector, with what is kept of it between refreshes. Tests have one
// of their own.
type source interface {
	Names(ctx context.Context) ([]string, error)
	Queues(ctx context.Context) ([]inspect.Queue, error)
	Queue(ctx context.Context, name string) (inspect.Queue, error)
	Pause(ctx context.Context, queue string) error
	Resume(ctx context.Context, queue string) error
	Workers(ctx context.Context, queues ...string) ([]inspect.Worker, error)
	OrderWorker(ctx context.Context, id string, o inspect.Order) error
	Tasks(ctx context.Context, queue string, q inspect.Query) (inspect.Page, error)
	Task(ctx context.Context, queue, id string) (inspect.Task, error)
	Find(ctx context.Context, id string) ([]inspect.Task, error)
	Do(ctx context.Context, queue string, a inspect.Action, ids ...string) (inspect.Report, error)
	DoAll(
		ctx context.Context, queue string, a inspect.Action, q inspect.Query, progress func(inspect.Report) bool,
	) (inspect.Report, error)
	Functions(ctx context.Context, queues ...string) ([]inspect.Function, error)
	Watch(ctx context.Context, queues ...string) iter.Seq2[inspect.Event, error]
	Entries(ctx context.Context, queues ...string) ([]inspect.Entry, error)
	EntryHistory(ctx context.Context, queue, name string) ([]delayed.PeriodicRun, error)
	RunEntry(ctx context.Context, queue, name string) (*delayed.Ref, error)
	PauseEntry(ctx context.Context, queue, name string) error
	ResumeEntry(ctx context.Context, queue, name string) error
	RemoveEntry(ctx context.Context, queue, name string) error
	Groups(ctx context.Context, queues ...string) ([]inspect.Group, error)
	FireGroup(ctx context.Context, queue, key, function string) (int, error)
	Audit(ctx context.Context, skip, n int) ([]inspect.Record, error)

	// diagnose returns what is wrong, as it was a few seconds ago at most.
	diagnose(ctx context.Context) (inspect.Diagnosis, error)
	// flows returns what queues have done lately, of those that are known so far.
	flows(ctx context.Context, s span, queues []string) (map[string]queueFlow, error)
}

// live is the source that asks Redis.
type live struct {
	*inspect.Inspector
	*meter

	mu      sync.Mutex // protects what follows
	found   inspect.Diagnosis
	foundAt time.Time // by our clock
}

func newLive(ins *inspect.Inspector) *live { return &live{Inspector: ins, meter: newMeter(ins)} }

// diagnoseEvery is the shortest time between two diagnoses: they read more than a screen does.
const diagnoseEvery = 3 * time.Second

func (l *live) diagnose(ctx context.Context) (inspect.Diagnosis, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.foundAt) < diagnoseEvery {
		return l.found, nil
	}
	d, err := l.Diagnose(ctx)
	if err == nil {
		l.found, l.foundAt = d, time.Now()
	}
	return d, err
}
