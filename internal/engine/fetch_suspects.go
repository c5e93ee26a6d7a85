package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
)

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
			f.lanes[i].hasSuspects = todos[j].Suspects > 0
		}
	}
}

// claimSuspects claims one suspect if there may be one and the worker may hold it.
func (f *fetcher) claimSuspects(ctx context.Context) bool {
	now := time.Now()
	for i, l := range f.lanes {
		if !l.hasSuspects || f.paused(i) || now.Before(f.notBefore(i)) || !l.fresh(f.life) {
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
	return !hot && f.flying == 0 && inHand(f.lanes) == 0
}

// claimSuspect claims at most one suspect of a queue.
func (f *fetcher) claimSuspect(ctx context.Context, i, most, held int) {
	fl := flight{lane: i, asked: most, suspects: true}
	f.exec.expect(most)
	defer f.exec.arrived(most)
	l := f.lanes[i]
	call := redisstore.ClaimCall{Most: most, Held: held, Suspects: true}
	fl.claims, fl.left, fl.err = l.claim(context.WithoutCancel(ctx), call, nil)
	l.hasSuspects = fl.err != nil || fl.left > 0
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
	f.stopServing()
	d, now := &f.suspects, time.Now()
	switch {
	case f.exec.loneTask() != d.lone:
		d.patience = f.patience
		f.loneOver(now)
	case d.runs:
		f.block(ctx, 0)
	case d.lone.lost.Load() || !f.mayClaim() || f.paused(d.lone.lane.index):
		f.dismissLone(lifecycle.OutcomeDefer)
		f.loneOver(now)
	case f.flying == 0 && inHand(f.lanes) == 1:
		f.startLone(ctx, d.lone)
		d.runs = true
	case now.Sub(d.since) > d.patience:
		f.dismissLone(lifecycle.OutcomeDefer)
		d.patience = min(2*d.patience, longestPatience)
		f.loneOver(now)
	default:
		f.block(ctx, settlePause)
	}
}

// dismissLone puts the lone task back.
func (f *fetcher) dismissLone(how lifecycle.Outcome) {
	c := f.suspects.lone
	f.exec.dismiss(c)
	c.lane.ends.add(ending{claim: c, outcome: how})
}

// loneOver lets the worker claim again. Other tasks come first for as long as they had to wait.
func (f *fetcher) loneOver(now time.Time) {
	d := &f.suspects
	d.lone, d.rest = nil, now.Add(now.Sub(d.since))
	for i := range f.hot {
		f.hot[i] = true
	}
}
