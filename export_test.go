package delayed

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/redisstore"
)

// What the tests in package delayed_test need in addition to the public API.

// Message returns the message that q sends for a task at a time, the Ref that Enqueue would return, and the name of the
// lock that the task takes, if any. Nothing is enqueued.
func Message(q *Queue, t *Task, nowMs int64) (message []byte, ref *Ref, lock string, err error) {
	if q.optErr != nil {
		return nil, nil, "", q.optErr
	}
	d := new(draft)
	ref = new(Ref)
	if err := d.add(q, t, ref, nowMs); err != nil {
		return nil, nil, "", err
	}
	if h := d.tasks[0].Hold; h != nil {
		lock = h.Name
	}
	return d.message, ref, lock, nil
}

// Signals returns the Pub/Sub connection of a handle.
func Signals(r *Store) *redisstore.Signals { return r.signals }

// Coalescer returns the coalescer that sends the calls of a queue together.
func Coalescer(q *Queue) *redisstore.Coalescer { return q.coalescer }

// Coalescers returns how many coalescers a handle remembers.
func Coalescers(r *Store) int {
	r.coalescers.Mu.Lock()
	defer r.coalescers.Mu.Unlock()
	return len(r.coalescers.ByKey)
}

// ForgetForm makes a queue believe that Redis confirmed the form of its Python tasks long ago.
func ForgetForm(q *Queue) { q.settled.Store(clock() - int64(settleLife)) }

// Quicken lets a scheduler's entries, and those that a control sets, tick up to every shortest.
func Quicken(p *PeriodicControl, shortest time.Duration) *PeriodicControl {
	p.shortest = shortest
	return p
}

// NewQuickScheduler is NewScheduler for entries that may tick up to every shortest.
func NewQuickScheduler(rdb *Store, cfg SchedulerConfig, shortest time.Duration) (*Scheduler, error) {
	return newScheduler(rdb, cfg, shortest)
}

// Declare makes the entries of a scheduler known to Redis, as Run does first.
func Declare(ctx context.Context, s *Scheduler) error { return s.declare(ctx) }

// Restore makes a scheduler declare again what Redis has lost of its declaration, as Run does every few seconds.
func Restore(ctx context.Context, s *Scheduler) error { return s.restore(ctx) }

// LookEvery sets how often a scheduler looks at entries without a signal.
func LookEvery(s *Scheduler, d time.Duration) { s.every = d }

// ClaimOf returns the claim of a task that a worker has received.
func ClaimOf(t *Task) *lane.Claim { return t.claimed.claim }

// Caller returns the function with which a running worker calls claimed tasks, including the middleware of Use.
func Caller(w *Worker) (call func(context.Context, *lane.Claim) (any, error), err error) {
	p := program{w}
	return p.Call, p.Prepare()
}

// WithDefaults returns cfg with a value for each setting that has none.
func WithDefaults(cfg WorkerConfig) WorkerConfig { return cfg.withDefaults() }

// PublicEnd translates the error with which a worker of the engine has ended.
func PublicEnd(err error) error { return publicEnd(err) }

// Rest waits as a scheduler does between two looks: for d, or until a message says that something has changed.
func Rest(ctx context.Context, s *Scheduler, d time.Duration, changes <-chan string) {
	s.rest(ctx, d, changes)
}

// ForgetChildMain makes this program one that has not called ChildMain, until the function that it returns is called.
func ForgetChildMain() (undo func()) {
	was := isolationReady.Swap(false)
	return func() { isolationReady.Store(was) }
}
