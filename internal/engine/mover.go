package engine

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
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

// mover makes due tasks of the queues of one slot pending. Every worker has one for each slot; they need no leader,
// because the script moves a task only once. A mover also notices pending tasks without notifications, and parked tasks
// that this worker can run.
type mover struct {
	src     redisstore.Source
	lanes   []*lane
	stores  []*redisstore.Store
	fetcher nudger
	parked  parkedReader
	log     loop.Journal

	poke    chan struct{}
	offset  []int         // for each queue, where to read on in its parked tasks
	checked atomic.Bool   // a check was successful since the last pokeMovers
	lent    [][]string    // for each queue, the groups that Redis has lent to this mover
	loan    time.Duration // groupLoan, but in tests
	every   time.Duration // CheckInterval, but in tests
	trouble loop.Complaints
	lines   loop.LineLimit // limits log lines about tasks
	events  *listeners
	// archiveKeep is how long Redis keeps tasks that the mover archives because they are too large.
	archiveKeep time.Duration
}

// nudger is the fetcher, as movers see it.
type nudger interface {
	// nudge says that a queue has pending tasks or suspects.
	nudge(lane int, suspects bool)
	// wake makes it look again.
	wake()
}

// parkedReader returns the ids of those tasks on a page of parked ones that this worker may be able to run or forward.
type parkedReader interface {
	runnableParked(ctx context.Context, l *lane, page []redisstore.Filed) (ids []string, err error)
}

func newMover(src redisstore.Source, lanes []*lane, log loop.Journal) *mover {
	m := &mover{
		src: src, lanes: lanes, log: log,
		poke: make(chan struct{}, 1), offset: make([]int, len(lanes)), lent: make([][]string, len(lanes)),
		loan: groupLoan, every: CheckInterval,
		archiveKeep: lifecycle.ArchivedLife, events: &listeners{},
	}
	for _, l := range lanes {
		m.stores = append(m.stores, l.store)
	}
	return m
}

// runNow makes the mover check at once. It never blocks.
func (m *mover) runNow() { loop.Poke(m.poke) }

// run checks until ctx ends.
func (m *mover) run(ctx context.Context) {
	defer m.lines.Close()
	var wait loop.Backoff
	for ctx.Err() == nil {
		next, err := m.round(ctx)
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
			m.checked.Store(true)
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-m.poke:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// round checks all queues once, moves due tasks, and returns when to check again. A queue whose keys are of another
// type does not keep it from the others; after other errors next is negative.
func (m *mover) round(ctx context.Context) (next time.Duration, err error) {
	todos, fault := redisstore.Check(ctx, m.src, m.stores)
	if todos == nil && fault != nil {
		return -1, fault
	}
	next = loop.Jitter(m.every-m.every/8, 0.14)
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
func (m *mover) lookAfter(ctx context.Context, i int, t redisstore.Todo) (next time.Duration, err error) {
	if t.Pending > 0 {
		m.fetcher.nudge(m.lanes[i].index, false)
	}
	if t.Suspects > 0 {
		m.fetcher.nudge(m.lanes[i].index, true)
	}
	next = t.Due
	if next == 0 {
		if next, err = m.move(ctx, m.stores[i]); err != nil {
			return 0, err
		}
	}
	due := t.Group
	if due == 0 || len(m.lent[i]) > 0 {
		if due, err = m.fire(ctx, i); err != nil {
			return 0, err
		}
	}
	if next < 0 || due >= 0 && due < next {
		next = due
	}
	if t.Parked > 0 {
		return next, m.findParked(ctx, i, t.Parked)
	}
	m.lanes[i].parked.set(nil)
	return next, nil
}

// move makes all due tasks of one queue pending. It returns the time until the next one is due; negative: there is
// none.
func (m *mover) move(ctx context.Context, s *redisstore.Store) (next time.Duration, err error) {
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
func (m *mover) archiveLarge(
	ctx context.Context, s *redisstore.Store, from redisstore.Shelf, large []redisstore.LargeTask,
) error {
	for len(large) > 0 {
		part := large[:min(len(large), redisstore.TrimPage)]
		large = large[len(part):]
		tasks := make([]redisstore.Filed, len(part))
		for i, t := range part {
			tasks[i] = redisstore.Filed{ID: t.ID, Info: redisstore.TooLargeInfo(t.Size, s.Now(), "")}
		}
		if _, err := s.Condemn(ctx, from, m.archiveKeep, tasks); err != nil {
			return err
		}
		for _, t := range part {
			redisstore.LogTooLarge(m.log, &m.lines, s.Name, t.ID, t.Size)
			m.events.emit(Event{
				Kind: event.TaskArchived, Queue: s.Name, Reason: state.ReasonTooLarge,
				Err: redisstore.TooLarge(t.Size),
			})
		}
	}
	return nil
}

// findParked looks for parked tasks that this worker can run, for the fetcher to claim. It reads the page of those that
// were parked last. If none of them can run, it reads a few more pages, from where the last check has stopped.
func (m *mover) findParked(ctx context.Context, i, parked int) error {
	ids, n, err := m.findParkedOn(ctx, i, 0)
	if err != nil {
		return err
	}
	m.offset[i] = max(m.offset[i], n)
	for pages := 1; pages < parkedPages && len(ids) == 0 && m.offset[i] < parked; pages++ {
		if ids, n, err = m.findParkedOn(ctx, i, m.offset[i]); err != nil {
			return err
		}
		m.offset[i] += n - len(ids)
	}
	if m.offset[i] >= parked {
		m.offset[i] = 0
	}
	m.lanes[i].parked.set(ids)
	if len(ids) > 0 {
		m.fetcher.wake()
	}
	return nil
}

// findParkedOn reads one page, and returns the ids of tasks that this worker can run and the number of all.
func (m *mover) findParkedOn(ctx context.Context, i, offset int) (ids []string, n int, err error) {
	page, err := m.stores[i].ParkedPage(ctx, offset, redisstore.ParkedPage, false)
	if err != nil {
		return nil, 0, err
	}
	ids, err = m.parked.runnableParked(ctx, m.lanes[i], page)
	return ids, len(page), err
}
