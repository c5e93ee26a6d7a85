package delayed

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// moveBatch bounds the tasks that one script makes pending.
	moveBatch = 500
	// checkInterval bounds the time between two looks of a mover.
	checkInterval = 5 * time.Second
	// parkedPages bounds the pages of parked tasks that are read at one look.
	parkedPages = 10
	parkedPage  = 100
	// hasteInterval is the time between two looks for hasteTime after parked tasks were released: in a deploy, workers of the old version
	// go on parking what those of the new one run.
	hasteInterval = 200 * time.Millisecond
	hasteTime     = 30 * time.Second
)

// mover makes due tasks pending, on queues of one slot. Every worker has one; no leader is needed, as a script moves a task once. On
// its way it notices pending tasks without notifications, and parked tasks that this worker knows.
type mover struct {
	src      Source
	lanes    []*lane
	stores   []*store
	pending  func(lane *lane, suspects bool) // called for queues that have pending tasks, or suspects
	registry *registry
	log      journal

	poke    chan struct{}
	offset  []int       // where to read on in each parked set
	looked  atomic.Bool // at least once, without an error
	lent    [][]string  // groups of each queue that are to be fired by this mover
	loan    time.Duration
	every   time.Duration // checkInterval
	haste   time.Time     // until then, parked tasks may come that this worker knows
	trouble complaints
	lines   lineLimit // log lines about tasks
	hooks   *hooks    // of the worker; nil: none
	// archiveKeep is how long tasks are archived that are too large to be moved.
	archiveKeep time.Duration
}

func newMover(src Source, lanes []*lane, registry *registry, log journal, pending func(*lane, bool)) *mover {
	m := &mover{
		src: src, lanes: lanes, registry: registry, log: log, pending: pending,
		poke: make(chan struct{}, 1), offset: make([]int, len(lanes)), lent: make([][]string, len(lanes)), loan: groupLoan, every: checkInterval,
		archiveKeep: archivedLife,
	}
	for _, l := range lanes {
		m.stores = append(m.stores, l.store)
	}
	return m
}

// now makes the mover look at once. It never blocks.
func (m *mover) now() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// run looks until ctx ends.
func (m *mover) run(ctx context.Context) {
	defer m.lines.close()
	var wait backoff
	for ctx.Err() == nil {
		next, err := m.look(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			m.log.trouble(&m.trouble, "cannot look for due tasks; trying again", err)
			next = wait.next()
			drain(m.poke)
		} else {
			m.log.relief(&m.trouble, "looking for due tasks again")
			wait.reset()
			m.looked.Store(true)
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

// look moves what is due and returns when to look again.
func (m *mover) look(ctx context.Context) (next time.Duration, err error) {
	todos, err := check(ctx, m.src, m.stores)
	if err != nil {
		return 0, err
	}
	next = jitter(m.every-m.every/8, 0.14)
	for i, t := range todos {
		if t.pending > 0 {
			m.pending(m.lanes[i], false)
		}
		if t.suspects > 0 {
			m.pending(m.lanes[i], true)
		}
		due := t.due
		if due == 0 {
			if due, err = m.move(ctx, m.stores[i]); err != nil {
				return 0, err
			}
		}
		if due >= 0 {
			next = min(next, due)
		}
		due = t.group
		if due == 0 || len(m.lent[i]) > 0 {
			if due, err = m.fire(ctx, i); err != nil {
				return 0, err
			}
		}
		if due >= 0 {
			next = min(next, due)
		}
		if t.parked > 0 {
			if err := m.unpark(ctx, i, t.parked); err != nil {
				return 0, err
			}
		}
	}
	if time.Now().Before(m.haste) {
		next = min(next, jitter(hasteInterval, 0.25))
	}
	return next, nil
}

// move makes all due tasks of one queue pending and returns the time until the next is due, negative for none.
func (m *mover) move(ctx context.Context, s *store) (next time.Duration, err error) {
	next = -1
	for _, from := range []shelf{shelfScheduled, shelfRetry} {
		for {
			_, due, large, err := s.move(ctx, from, moveBatch)
			if err == nil && len(large) > 0 {
				err = m.archive(ctx, s, from, large)
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

// archive archives due tasks whose messages are too large for any worker, as they are.
func (m *mover) archive(ctx context.Context, s *store, from shelf, large []largeTask) error {
	for len(large) > 0 {
		part := large[:min(len(large), trimPage)]
		large = large[len(part):]
		tasks := make([]filed, len(part))
		for i, t := range part {
			tasks[i] = filed{t.id, tooLargeInfo(t.size, time.Now(), "")}
		}
		if _, err := s.condemn(ctx, from, m.archiveKeep, tasks); err != nil {
			return err
		}
		for _, t := range part {
			logTooLarge(m.log, &m.lines, s, t.id, t.size)
			m.hooks.emit(Event{Kind: EventTaskArchived, Queue: s.name, Reason: reasonTooLarge, Err: tooLarge(t.size)})
		}
	}
	return nil
}

// unpark releases parked tasks that this worker can run, a few pages at each look.
func (m *mover) unpark(ctx context.Context, i, parked int) error {
	s := m.stores[i]
	for pages := 0; pages < parkedPages && ctx.Err() == nil; {
		if m.offset[i] >= parked {
			m.offset[i] = 0
			return nil
		}
		page, err := s.parkedPage(ctx, m.offset[i], parkedPage, false)
		if err != nil {
			return err
		}
		ids, err := runnable(ctx, s, m.registry, page)
		if err != nil {
			return err
		}
		m.offset[i] += len(page) - len(ids)
		if len(ids) == 0 {
			pages++ // those that hold something to release do not count
		}
		if len(ids) > 0 {
			n, err := s.unpark(ctx, ids)
			if err != nil {
				return err
			}
			// A worker of another version may take them once more and park them again.
			m.haste = time.Now().Add(hasteTime)
			m.log.with("queue", s.name).WithField("tasks", n).Info("parked tasks are pending again: this worker knows their functions")
		}
		if len(page) < parkedPage {
			m.offset[i] = 0
			return nil
		}
	}
	return nil
}
