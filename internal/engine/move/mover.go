// Package move makes tasks pending: a Mover looks for what is due on the queues of one slot, tasks and groups, and for
// parked tasks that this worker can run. Movers need no leader, because a script moves each task only once.
package move

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

const (
	// CheckInterval bounds the time between two checks of a mover.
	CheckInterval = 5 * time.Second
	// parkedPages bounds the pages of parked tasks that a mover reads in one check.
	parkedPages = 10
)

// Mover makes due tasks of the queues of one slot pending. Every worker has one for each slot; they need no leader,
// because the script moves a task only once. A mover also notices pending tasks without notifications, and parked tasks
// that this worker can run.
type Mover struct {
	Src     redisstore.Source
	lanes   []*lane.Lane
	Stores  []*redisstore.Store
	Fetcher nudger
	Parked  parkedReader
	log     loop.Journal

	poke    chan struct{}
	Offset  []int         // for each queue, where to read on in its parked tasks
	Checked atomic.Bool   // a check was successful since the last PokeMovers
	Lent    [][]string    // for each queue, the groups that Redis has lent to this mover
	Loan    time.Duration // groupLoan, but in tests
	Every   time.Duration // CheckInterval, but in tests
	trouble loop.Complaints
	lines   loop.LineLimit // limits log lines about tasks
	Events  *events.Listeners
	// ArchiveKeep is how long Redis keeps tasks that the mover archives because they are too large.
	ArchiveKeep time.Duration
}

// nudger is the fetcher, as movers see it.
type nudger interface {
	// Nudge says that a queue has pending tasks or suspects.
	Nudge(lane int, suspects bool)
	// Wake makes it look again.
	Wake()
}

// parkedReader returns the ids of those tasks on a page of parked ones that this worker may be able to run or forward.
type parkedReader interface {
	RunnableParked(ctx context.Context, l *lane.Lane, page []redisstore.Filed) (ids []string, err error)
}

// New returns the mover of lanes that share a slot.
func New(src redisstore.Source, lanes []*lane.Lane, log loop.Journal) *Mover {
	m := &Mover{
		Src: src, lanes: lanes, log: log,
		poke: make(chan struct{}, 1), Offset: make([]int, len(lanes)), Lent: make([][]string, len(lanes)),
		Loan: groupLoan, Every: CheckInterval,
		Events: &events.Listeners{},
	}
	for _, l := range lanes {
		m.Stores = append(m.Stores, l.Store)
	}
	return m
}

// RunNow makes the mover check at once. It never blocks.
func (m *Mover) RunNow() { loop.Poke(m.poke) }

// Run checks until ctx ends.
func (m *Mover) Run(ctx context.Context) {
	defer m.lines.Close()
	var wait loop.Backoff
	for ctx.Err() == nil {
		next, err := m.Round(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			m.log.Trouble(&m.trouble, "cannot look for due tasks; trying again", err)
			again := wait.Next()
			if next < 0 {
				next = again
				loop.Drain(m.poke)
			}
			next = min(next, again)
		} else {
			m.log.Relief(&m.trouble, "looking for due tasks again")
			wait.Reset()
			m.Checked.Store(true)
		}
		loop.SleepOr(ctx, m.poke, next)
	}
}

// Round checks all queues once, moves due tasks, and returns when to check again. A queue whose keys are of another
// type does not keep it from the others; after other errors next is negative.
func (m *Mover) Round(ctx context.Context) (next time.Duration, err error) {
	todos, fault := redisstore.Check(ctx, m.Src, m.Stores)
	if todos == nil && fault != nil {
		return -1, fault
	}
	next = loop.Jitter(m.Every-m.Every/8, 0.14)
	for i, t := range todos {
		due, err := m.lookAfter(ctx, i, t)
		switch {
		case err == nil && due >= 0:
			next = min(next, due)
		case err != nil && redisstore.IsWrongType(err):
			fault = cmp.Or(fault, err)
		case err != nil:
			return -1, err
		}
	}
	return next, fault
}

// lookAfter does what there is to do on a queue, and returns when something is due there again; negative for never.
func (m *Mover) lookAfter(ctx context.Context, i int, t redisstore.Todo) (next time.Duration, err error) {
	if t.Pending > 0 {
		m.Fetcher.Nudge(m.lanes[i].Index, false)
	}
	if t.Suspects > 0 {
		m.Fetcher.Nudge(m.lanes[i].Index, true)
	}
	next = t.Due
	if next == 0 {
		if next, err = m.Move(ctx, m.Stores[i]); err != nil {
			return 0, err
		}
	}
	due := t.Group
	if due == 0 || len(m.Lent[i]) > 0 {
		if due, err = m.Fire(ctx, i); err != nil {
			return 0, err
		}
	}
	if next < 0 || due >= 0 && due < next {
		next = due
	}
	if t.Parked > 0 {
		return next, m.FindParked(ctx, i, t.Parked)
	}
	m.lanes[i].SetParked(nil)
	return next, nil
}

// Move makes all due tasks of one queue pending. It returns the time until the next one is due; negative: there is
// none.
func (m *Mover) Move(ctx context.Context, s *redisstore.Store) (next time.Duration, err error) {
	next = -1
	for _, from := range []redisstore.Shelf{redisstore.ShelfScheduled, redisstore.ShelfRetry} {
		for {
			_, due, large, err := s.Move(ctx, from, redisstore.MoveBatch)
			if err == nil && len(large) > 0 {
				err = m.archiveLarge(ctx, s, from, large)
			}
			if err != nil {
				return 0, err
			}
			if due == 0 && ctx.Err() == nil {
				continue
			}
			if due >= 0 && (next < 0 || due < next) {
				next = due
			}
			break
		}
	}
	return next, nil
}

// archiveLarge archives due tasks whose messages are too large for any worker, byte for byte.
func (m *Mover) archiveLarge(
	ctx context.Context, s *redisstore.Store, from redisstore.Shelf, large []redisstore.LargeTask,
) error {
	for len(large) > 0 {
		part := large[:min(len(large), redisstore.TrimPage)]
		large = large[len(part):]
		tasks := make([]redisstore.Filed, len(part))
		for i, t := range part {
			tasks[i] = redisstore.Filed{ID: t.ID, Info: redisstore.TooLargeInfo(t.Size, s.Now(), "")}
		}
		if _, err := s.Condemn(ctx, from, m.ArchiveKeep, tasks); err != nil {
			return err
		}
		for _, t := range part {
			redisstore.LogTooLarge(m.log, &m.lines, s.Name, t.ID, t.Size)
			m.Events.Emit(events.Event{
				Kind: event.TaskArchived, Queue: s.Name, Reason: state.ReasonTooLarge,
				Err: redisstore.TooLarge(t.Size),
			})
		}
	}
	return nil
}

// FindParked looks for parked tasks that this worker can run, for the fetcher to claim. It reads the page of those that
// were parked last. If none of them can run, it reads a few more pages, from where the last check has stopped.
func (m *Mover) FindParked(ctx context.Context, i, parked int) error {
	ids, n, err := m.findParkedOn(ctx, i, 0)
	if err != nil {
		return err
	}
	m.Offset[i] = max(m.Offset[i], n)
	for pages := 1; pages < parkedPages && len(ids) == 0 && m.Offset[i] < parked; pages++ {
		if ids, n, err = m.findParkedOn(ctx, i, m.Offset[i]); err != nil {
			return err
		}
		m.Offset[i] += n - len(ids)
	}
	if m.Offset[i] >= parked {
		m.Offset[i] = 0
	}
	m.lanes[i].SetParked(ids)
	if len(ids) > 0 {
		m.Fetcher.Wake()
	}
	return nil
}

// findParkedOn reads one page, and returns the ids of tasks that this worker can run and the number of all.
func (m *Mover) findParkedOn(ctx context.Context, i, offset int) (ids []string, n int, err error) {
	page, err := m.Stores[i].ParkedPage(ctx, offset, redisstore.ParkedPage, false)
	if err != nil {
		return nil, 0, err
	}
	ids, err = m.Parked.RunnableParked(ctx, m.lanes[i], page)
	return ids, len(page), err
}
