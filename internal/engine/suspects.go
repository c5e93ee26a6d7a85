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
	// SettlePause is the time between two looks whether Redis knows how the tasks before a lone suspect ended.
	SettlePause = 5 * time.Millisecond
)

// SuspectsHeld returns how many tasks of so many deaths or more a worker with so many executors holds at once: all, a
// quarter of them, and so on. Where that is 1, the task runs alone.
func SuspectsHeld(executors, deaths int) int {
	for ; deaths >= setApart && executors > 1; deaths-- {
		executors /= 4
	}
	return max(executors, 1)
}

// suspicionOf returns how many deaths of a task count now, at most 255.
func suspicionOf(c *Claim, now time.Time) uint8 {
	m := &c.Msg.Meta
	if m.Deaths == 0 || now.UnixMilli()-m.DiedAt >= lifecycle.DeathLife.Milliseconds() {
		return 0
	}
	return uint8(min(m.Deaths, 255)) //nolint:gosec // within these bounds
}

// Admit says whether a worker may hold a suspect. One that runs alone becomes lone: it starts when nothing else is in
// hand.
func (e *Executors) Admit(c *Claim) bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	most := SuspectsHeld(e.N, int(c.Suspicion))
	if most == 1 {
		e.Lone = c // receive lets nothing through while there is one
		return true
	}
	held := 0
	for _, other := range e.Ready {
		if other.Suspicion >= c.Suspicion {
			held++
		}
	}
	for i := range e.Slots {
		if other := e.Slots[i].Load(); other != nil && !other.stuck && other.Suspicion >= c.Suspicion {
			held++
		}
	}
	e.Crowded = held >= most
	return !e.Crowded
}

// Calm makes the worker claim no more than its free executors for a while, so that others come to what it gives back.
func (e *Executors) Calm() {
	e.Mu.Lock()
	e.Restless = time.Now().Add(RestlessTime)
	e.Mu.Unlock()
}

// IsCrowded says whether a suspect was put back because of those in hand, and none of them has ended since.
func (e *Executors) IsCrowded() bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Crowded
}

// LoneTask returns the task that runs alone or waits for that, nil for none.
func (e *Executors) LoneTask() *Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Lone
}

// MarkedTask returns the task that Redis was told to be alone in this worker's hands, nil for none.
func (e *Executors) MarkedTask() *Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.marked
}

// mark notes what Redis was told; nil for nothing.
func (e *Executors) mark(c *Claim) {
	e.Mu.Lock()
	e.marked = c
	e.Mu.Unlock()
}

// Dismiss forgets a lone task that has not started.
func (e *Executors) Dismiss(c *Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.release(c)
}

// release notes that a task which had died before has left. e.mu is held.
func (e *Executors) release(c *Claim) {
	if e.Lone == c {
		e.Lone = nil
	}
	if c.Suspicion >= setApart {
		e.Crowded = false
		e.signal()
	}
}

// InHand returns the number of claims of which Redis does not know how they ended.
func (w *Worker) InHand() (n int) {
	for _, l := range w.Lanes {
		known, _, _ := l.Count()
		n += known
	}
	return n
}

// markAlone tells Redis that nothing but c is in this worker's hands. If that fails c starts all the same: its death
// will not count as one alone.
func (w *Worker) markAlone(ctx context.Context, c *Claim) {
	w.Exec.mark(c) // whatever the answer is
	if err := c.Lane.Store.Mark(ctx, w.UID, redisstore.MarkAlone, c.Token); err != nil {
		w.Log.With("queue", c.Lane.Store.Name).WithError(err).Debug("cannot note that a suspect runs alone")
	}
}

// unmark takes that back, before others start. It says whether they may.
func (w *Worker) unmark(ctx context.Context) bool {
	c := w.Exec.MarkedTask()
	if c == nil {
		return true
	}
	if c.Lane.unsettled(c) { // else Redis knows how it ended: the note says nothing any more
		return w.takeBackMark(ctx, c)
	}
	w.Exec.mark(nil)
	return true
}

func (w *Worker) takeBackMark(ctx context.Context, c *Claim) bool {
	if err := c.Lane.Store.Mark(ctx, w.UID, redisstore.MarkAlone, ""); err != nil {
		w.Log.With("queue", c.Lane.Store.Name).WithError(err).Debug("cannot note that a suspect runs beside others")
		return false
	}
	w.Exec.mark(nil)
	return true
}

// startLone starts the lone task, which is all that is in hand.
func (w *Worker) startLone(ctx context.Context, c *Claim) {
	w.markAlone(ctx, c)
	w.Exec.Add([]*Claim{c})
}

// noteStop tells Redis that the worker stops in good order, so that what it leaves behind has not died with it. It
// tries until ctx ends.
func (w *Worker) noteStop(ctx context.Context, l *Lane) {
	if known, _, _ := l.Count(); known == 0 {
		return
	}
	var wait loop.Backoff
	err := l.Store.Mark(ctx, w.UID, redisstore.MarkStopped, "1")
	for err != nil && loop.Sleep(ctx, wait.Next()) {
		err = l.Store.Mark(ctx, w.UID, redisstore.MarkStopped, "1")
	}
}

// suspectState is what the fetcher knows of suspects.
type suspectState struct {
	Rest     time.Time     // claim none before, unless there is nothing else to do
	Patience time.Duration // for how long to wait for other tasks to end, this time
	Lone     *Claim        // runs alone, or waits for that
	Runs     bool          // it has started
	Since    time.Time     // when the worker has stopped claiming for its sake
}

// FindSuspects looks for suspects of all queues, as a worker that has nothing in hand takes them first.
func (f *Fetcher) FindSuspects(ctx context.Context) {
	f.Suspects = suspectState{Patience: f.Patience}
	for _, w := range f.Waiters {
		todos, err := redisstore.Check(ctx, w.Link.Src, w.Stores)
		if err != nil {
			continue // the mover tells of them
		}
		for j, i := range w.Lanes {
			f.Lanes[i].Apart = todos[j].Suspects > 0
		}
	}
}

// claimSuspects claims one suspect if there may be one and the worker may hold it.
func (f *Fetcher) claimSuspects(ctx context.Context) bool {
	now := time.Now()
	for i, l := range f.Lanes {
		if !l.Apart || f.paused(i) || now.Before(f.notBefore(i)) || !l.Fresh(f.Life) {
			continue
		}
		if !f.TakesSuspects(now) {
			return false
		}
		f.ClaimSuspect(ctx, i, 1, 0)
		return true
	}
	return false
}

// TakesSuspects says whether the worker may hold another suspect. One that runs alone takes at most half of its time
// from other tasks.
func (f *Fetcher) TakesSuspects(now time.Time) bool {
	if f.Suspects.Lone != nil || f.Exec.IsCrowded() {
		return false
	}
	if !now.Before(f.Suspects.Rest) {
		return true
	}
	hot, _ := f.anyHot()
	return !hot && f.Flying == 0 && f.InHand() == 0
}

// ClaimSuspect claims at most one suspect of a queue.
func (f *Fetcher) ClaimSuspect(ctx context.Context, i, most, held int) {
	fl := Flight{lane: i, room: most, suspects: true}
	f.Exec.Expect(most)
	defer f.Exec.Arrived(most)
	l := f.Lanes[i]
	call := redisstore.ClaimCall{Most: most, Held: held, Suspects: true}
	fl.claims, fl.left, fl.err = l.Claim(context.WithoutCancel(ctx), call, nil)
	l.Apart = fl.err != nil || fl.left > 0
	if !f.answered(fl) {
		return
	}
	f.receive(ctx, fl.claims)
	if c := f.Exec.LoneTask(); c != nil && c != f.Suspects.Lone {
		f.Suspects.Lone, f.Suspects.Runs, f.Suspects.Since = c, false, time.Now()
	}
}

// HandleLone sees to the lone task. Nothing is claimed meanwhile.
func (f *Fetcher) HandleLone(ctx context.Context) {
	f.leaveOff()
	d, now := &f.Suspects, time.Now()
	switch {
	case f.Exec.LoneTask() != d.Lone:
		d.Patience = f.Patience
		f.loneOver(now)
	case d.Runs:
		f.block(ctx, 0)
	case d.Lone.Lost.Load() || !f.MayClaim() || f.paused(f.position(d.Lone)):
		f.dismissLone(OutcomeDefer)
		f.loneOver(now)
	case f.Flying == 0 && f.InHand() == 1:
		f.StartLone(ctx, d.Lone)
		d.Runs = true
	case now.Sub(d.Since) > d.Patience:
		f.dismissLone(OutcomeDefer)
		d.Patience = min(2*d.Patience, longestPatience)
		f.loneOver(now)
	default:
		f.block(ctx, SettlePause)
	}
}

// dismissLone puts the lone task back.
func (f *Fetcher) dismissLone(how Outcome) {
	c := f.Suspects.Lone
	f.Exec.Dismiss(c)
	c.Lane.Finisher.Add(Ending{Claim: c, Outcome: how})
}

// loneOver lets the worker claim again. Other tasks come first for as long as they had to wait.
func (f *Fetcher) loneOver(now time.Time) {
	d := &f.Suspects
	d.Lone, d.Rest = nil, now.Add(now.Sub(d.Since))
	for i := range f.Hot {
		f.Hot[i] = true
	}
}

// position returns which of the queues a claim is of.
func (f *Fetcher) position(c *Claim) int {
	for i, l := range f.Lanes {
		if l == c.Lane {
			return i
		}
	}
	return -1
}
