package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// A worker that dies had tasks in hand. One of them may be the cause; most often none is. So a death that a task shared
// with others only makes it suspect, and the archive is for tasks that died alone. The more deaths a task has shared,
// the fewer suspects a worker holds at once, until one runs alone: that finds one poison task among k after about log k
// deaths.
//
// A task of one death runs as any other does. One of more waits among the suspects of its queue, a pending list of its
// own, where it holds up nobody else.

const (
	// setApart is from how many deaths on a task waits among the suspects of its queue.
	setApart = 2
	// shortestPatience and longestPatience bound how long a worker claims nothing and waits for its other tasks to end,
	// so that a suspect can run alone. Each time that this was in vain it waits for twice as long.
	shortestPatience = 2 * time.Second
	longestPatience  = time.Minute
	// settlePause is the time between two looks whether Redis knows how the tasks before a lone suspect ended.
	settlePause = 5 * time.Millisecond
)

// suspectsHeld returns how many tasks of so many deaths or more a worker with so many executors holds at once: all, a
// quarter of them, and so on. Where that is 1, the task runs alone.
func suspectsHeld(executors, deaths int) int {
	for ; deaths >= setApart && executors > 1; deaths-- {
		executors /= 4
	}
	return max(executors, 1)
}

// suspicionOf returns how many deaths of a task count now, at most 255.
func suspicionOf(c *Claim, now time.Time) uint8 {
	m := &c.msg.Meta
	if m.Deaths == 0 || now.UnixMilli()-m.DiedAt >= lifecycle.DeathLife.Milliseconds() {
		return 0
	}
	return uint8(min(m.Deaths, 255)) //nolint:gosec // within these bounds
}

// admit says whether a worker may hold a suspect. One that runs alone becomes lone: it starts when nothing else is in
// hand.
func (e *executors) admit(c *Claim) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	most := suspectsHeld(e.n, int(c.suspicion))
	if most == 1 {
		e.lone = c // receive lets nothing through while there is one
		return true
	}
	held := 0
	for _, other := range e.ready {
		if other.suspicion >= c.suspicion {
			held++
		}
	}
	for i := range e.slots {
		if other := e.slots[i].Load(); other != nil && !other.stuck && other.suspicion >= c.suspicion {
			held++
		}
	}
	e.crowded = held >= most
	return !e.crowded
}

// calm makes the worker claim no more than its free executors for a while, so that others come to what it gives back.
func (e *executors) calm() {
	e.mu.Lock()
	e.restless = time.Now().Add(restlessTime)
	e.mu.Unlock()
}

// isCrowded says whether a suspect was put back because of those in hand, and none of them has ended since.
func (e *executors) isCrowded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.crowded
}

// loneTask returns the task that runs alone or waits for that, nil for none.
func (e *executors) loneTask() *Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lone
}

// markedTask returns the task that Redis was told to be alone in this worker's hands, nil for none.
func (e *executors) markedTask() *Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.marked
}

// mark notes what Redis was told; nil for nothing.
func (e *executors) mark(c *Claim) {
	e.mu.Lock()
	e.marked = c
	e.mu.Unlock()
}

// dismiss forgets a lone task that has not started.
func (e *executors) dismiss(c *Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release(c)
}

// release notes that a task which had died before has left. e.mu is held.
func (e *executors) release(c *Claim) {
	if e.lone == c {
		e.lone = nil
	}
	if c.suspicion >= setApart {
		e.crowded = false
		e.signal()
	}
}

// inHand returns the number of claims of which Redis does not know how they ended.
func (w *Worker) inHand() (n int) {
	for _, l := range w.lanes {
		known, _, _ := l.count()
		n += known
	}
	return n
}

// markAlone tells Redis that nothing but c is in this worker's hands. If that fails c starts all the same: its death
// will not count as one alone.
func (w *Worker) markAlone(ctx context.Context, c *Claim) {
	w.exec.mark(c) // whatever the answer is
	if err := c.lane.store.Mark(ctx, w.id, redisstore.MarkAlone, c.token); err != nil {
		w.log.With("queue", c.lane.store.Name).WithError(err).Debug("cannot note that a suspect runs alone")
	}
}

// unmark takes that back, before others start. It says whether they may.
func (w *Worker) unmark(ctx context.Context) bool {
	c := w.exec.markedTask()
	if c == nil {
		return true
	}
	if c.lane.unsettled(c) { // else Redis knows how it ended: the note says nothing any more
		return w.takeBackMark(ctx, c)
	}
	w.exec.mark(nil)
	return true
}

func (w *Worker) takeBackMark(ctx context.Context, c *Claim) bool {
	if err := c.lane.store.Mark(ctx, w.id, redisstore.MarkAlone, ""); err != nil {
		w.log.With("queue", c.lane.store.Name).WithError(err).Debug("cannot note that a suspect runs beside others")
		return false
	}
	w.exec.mark(nil)
	return true
}

// startLone starts the lone task, which is all that is in hand.
func (w *Worker) startLone(ctx context.Context, c *Claim) {
	w.markAlone(ctx, c)
	w.exec.add([]*Claim{c})
}

// noteStop tells Redis that the worker stops in good order, so that what it leaves behind has not died with it. It
// tries until ctx ends.
func (w *Worker) noteStop(ctx context.Context, l *lane) {
	if known, _, _ := l.count(); known == 0 {
		return
	}
	var wait loop.Backoff
	err := l.store.Mark(ctx, w.id, redisstore.MarkStopped, "1")
	for err != nil && loop.Sleep(ctx, wait.Next()) {
		err = l.store.Mark(ctx, w.id, redisstore.MarkStopped, "1")
	}
}

// suspectState is what the fetcher knows of suspects.
type suspectState struct {
	rest     time.Time     // claim none before, unless there is nothing else to do
	patience time.Duration // for how long to wait for other tasks to end, this time
	lone     *Claim        // runs alone, or waits for that
	runs     bool          // it has started
	since    time.Time     // when the worker has stopped claiming for its sake
}

// findSuspects looks for suspects of all queues, as a worker that has nothing in hand takes them first.
func (f *fetcher) findSuspects(ctx context.Context) {
	f.suspects = suspectState{patience: f.patience}
	for _, w := range f.waiters {
		todos, err := redisstore.Check(ctx, w.link.Src, w.stores)
		if err != nil {
			continue // the mover tells of them
		}
		for j, i := range w.lanes {
			f.lanes[i].apart = todos[j].Suspects > 0
		}
	}
}

// claimSuspects claims one suspect if there may be one and the worker may hold it.
func (f *fetcher) claimSuspects(ctx context.Context) bool {
	now := time.Now()
	for i, l := range f.lanes {
		if !l.apart || f.paused(i) || now.Before(f.notBefore(i)) || !l.fresh(f.life) {
			continue
		}
		if !f.takesSuspects(now) {
			return false
		}
		f.claimSuspect(ctx, i, 1, 0)
		return true
	}
	return false
}

// takesSuspects says whether the worker may hold another suspect. One that runs alone takes at most half of its time
// from other tasks.
func (f *fetcher) takesSuspects(now time.Time) bool {
	if f.suspects.lone != nil || f.exec.isCrowded() {
		return false
	}
	if !now.Before(f.suspects.rest) {
		return true
	}
	hot, _ := f.anyHot()
	return !hot && f.flying == 0 && f.inHand() == 0
}

// claimSuspect claims at most one suspect of a queue.
func (f *fetcher) claimSuspect(ctx context.Context, i, most, held int) {
	fl := flight{lane: i, room: most, suspects: true}
	f.exec.expect(most)
	defer f.exec.arrived(most)
	l := f.lanes[i]
	call := redisstore.ClaimCall{Most: most, Held: held, Suspects: true}
	fl.claims, fl.left, fl.err = l.claim(context.WithoutCancel(ctx), call, nil)
	l.apart = fl.err != nil || fl.left > 0
	if !f.answered(fl) {
		return
	}
	f.receive(ctx, fl.claims)
	if c := f.exec.loneTask(); c != nil && c != f.suspects.lone {
		f.suspects.lone, f.suspects.runs, f.suspects.since = c, false, time.Now()
	}
}

// handleLone sees to the lone task. Nothing is claimed meanwhile.
func (f *fetcher) handleLone(ctx context.Context) {
	f.leaveOff()
	d, now := &f.suspects, time.Now()
	switch {
	case f.exec.loneTask() != d.lone:
		d.patience = f.patience
		f.loneOver(now)
	case d.runs:
		f.block(ctx, 0)
	case d.lone.lost.Load() || !f.mayClaim() || f.paused(f.position(d.lone)):
		f.dismissLone(outcomeDefer)
		f.loneOver(now)
	case f.flying == 0 && f.inHand() == 1:
		f.startLone(ctx, d.lone)
		d.runs = true
	case now.Sub(d.since) > d.patience:
		f.dismissLone(outcomeDefer)
		d.patience = min(2*d.patience, longestPatience)
		f.loneOver(now)
	default:
		f.block(ctx, settlePause)
	}
}

// dismissLone puts the lone task back.
func (f *fetcher) dismissLone(how outcome) {
	c := f.suspects.lone
	f.exec.dismiss(c)
	c.lane.finisher.add(ending{claim: c, outcome: how})
}

// loneOver lets the worker claim again. Other tasks come first for as long as they had to wait.
func (f *fetcher) loneOver(now time.Time) {
	d := &f.suspects
	d.lone, d.rest = nil, now.Add(now.Sub(d.since))
	for i := range f.hot {
		f.hot[i] = true
	}
}

// position returns which of the queues a claim is of.
func (f *fetcher) position(c *Claim) int {
	for i, l := range f.lanes {
		if l == c.lane {
			return i
		}
	}
	return -1
}
