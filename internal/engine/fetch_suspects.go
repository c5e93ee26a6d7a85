package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
)

// suspectState is what the fetcher knows of suspects.
type suspectState struct {
	noneBefore time.Time     // claim no suspect before, unless there is nothing else to do
	patience   time.Duration // how long to wait for other tasks to end, so that the lone one can start
	lone       *Claim        // the suspect that runs alone, or waits until it can
	started    bool          // lone has started
	since      time.Time     // when the worker stopped claiming because of lone
}

// findSuspects looks for suspects of all queues: a worker that starts has no other tasks, so it takes suspects first.
func (f *fetcher) findSuspects(ctx context.Context) {
	f.suspects = suspectState{patience: f.patience}
	for _, w := range f.waiters {
		todos, err := redisstore.Check(ctx, w.link.Src, w.stores)
		if todos == nil && err != nil {
			continue // the mover will report it
		}
		for j, i := range w.lanes {
			f.lanes[i].hasSuspects = todos[j].Suspects > 0
		}
	}
}

// claimSuspects claims one suspect, if a queue seems to have any and the worker may take one. It reports whether it has
// made the call.
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

// takesSuspects reports whether the worker may take another suspect. Suspects that run alone take at most half of the
// time.
func (f *fetcher) takesSuspects(now time.Time) bool {
	if f.suspects.lone != nil || f.exec.isCrowded() {
		return false
	}
	if !now.Before(f.suspects.noneBefore) {
		return true
	}
	found, _ := f.anyToClaim()
	return !found && f.inFlight == 0 && inHand(f.lanes) == 0
}

// claimSuspect claims at most one suspect of queue i.
func (f *fetcher) claimSuspect(ctx context.Context, i, most, held int) {
	fl := flight{lane: i, asked: most, suspects: true}
	f.exec.beginClaim(most)
	defer f.exec.endClaim(most)
	l := f.lanes[i]
	call := redisstore.ClaimCall{Most: most, Held: held, Suspects: true}
	fl.claims, fl.left, fl.err = l.claim(context.WithoutCancel(ctx), call, nil)
	l.hasSuspects = fl.err != nil || fl.left > 0
	if !f.checkReply(fl) {
		return
	}
	f.receiver.receive(ctx, fl.claims)
	if c := f.exec.loneTask(); c != nil && c != f.suspects.lone {
		f.suspects.lone, f.suspects.started, f.suspects.since = c, false, time.Now()
	}
}

// handleLone starts the lone task once the worker has no other, puts it back if that takes too long, and waits for its
// end. The worker claims nothing meanwhile.
func (f *fetcher) handleLone(ctx context.Context) {
	f.leaveToFinishers()
	s, now := &f.suspects, time.Now()
	switch {
	case f.exec.loneTask() != s.lone:
		s.patience = f.patience
		f.loneOver(now)
	case s.started:
		f.block(ctx, 0)
	case s.lone.lost.Load() || !f.owner.mayClaim() || f.paused(s.lone.lane.index):
		f.putBackLone(lifecycle.OutcomeDefer)
		f.loneOver(now)
	case f.inFlight == 0 && inHand(f.lanes) == 1:
		f.receiver.startLone(ctx, s.lone)
		s.started = true
	case now.Sub(s.since) > s.patience:
		f.putBackLone(lifecycle.OutcomeDefer)
		s.patience = min(2*s.patience, longestPatience)
		f.loneOver(now)
	default:
		f.block(ctx, settlePause)
	}
}

// putBackLone ends the claim of the lone task, which has not started, with the given outcome.
func (f *fetcher) putBackLone(how lifecycle.Outcome) {
	c := f.suspects.lone
	f.exec.forgetLone(c)
	c.lane.hasSuspects = true // also when the wait that begins now leaves out the suspects
	c.lane.ends.add(ending{claim: c, outcome: how})
}

// loneOver lets the worker claim again. It takes no suspect for as long as other tasks have had to wait.
func (f *fetcher) loneOver(now time.Time) {
	s := &f.suspects
	s.lone, s.noneBefore = nil, now.Add(now.Sub(s.since))
	for i := range f.hasTasks {
		f.hasTasks[i] = true
	}
}
