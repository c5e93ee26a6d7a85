package fetch

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
)

// suspectState is what the fetcher knows of suspects.
type suspectState struct {
	NoneBefore time.Time     // claim no suspect before, unless there is nothing else to do
	Patience   time.Duration // how long to wait for other tasks to end, so that the lone one can start
	Lone       *lane.Claim   // the suspect that runs alone, or waits until it can
	Started    bool          // lone has started
	Since      time.Time     // when the worker stopped claiming because of lone
}

// FindSuspects looks for suspects of all queues: a worker that starts has no other tasks, so it takes suspects first.
func (f *Fetcher) FindSuspects(ctx context.Context) {
	f.Suspects = suspectState{Patience: f.Patience}
	for _, w := range f.Waiters {
		todos, err := redisstore.Check(ctx, w.Link.Src, w.Stores)
		if todos == nil && err != nil {
			continue // the mover will report it
		}
		for j, i := range w.Lanes {
			f.Lanes[i].HasSuspects = todos[j].Suspects > 0
		}
	}
}

// claimSuspects claims one suspect, if a queue seems to have any and the worker may take one. It reports whether it has
// made the call.
func (f *Fetcher) claimSuspects(ctx context.Context) bool {
	now := time.Now()
	for i, l := range f.Lanes {
		if !l.HasSuspects || f.Paused(i) || now.Before(f.notBefore(i)) || !l.Fresh(f.Life) {
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

// TakesSuspects reports whether the worker may take another suspect. Suspects that run alone take at most half of the
// time.
func (f *Fetcher) TakesSuspects(now time.Time) bool {
	if f.Suspects.Lone != nil || f.Exec.Crowded.Load() {
		return false
	}
	if !now.Before(f.Suspects.NoneBefore) {
		return true
	}
	found, _ := f.anyToClaim()
	return !found && f.InFlight == 0 && lane.InHand(f.Lanes) == 0
}

// ClaimSuspect claims at most one suspect of queue i.
func (f *Fetcher) ClaimSuspect(ctx context.Context, i, most, held int) {
	fl := Flight{lane: i, asked: most, suspects: true}
	f.Exec.AddClaiming(most)
	defer f.Exec.AddClaiming(-most)
	l := f.Lanes[i]
	call := redisstore.ClaimCall{Most: most, Held: held, Suspects: true}
	fl.claims, fl.left, fl.err = l.Claim(context.WithoutCancel(ctx), call, nil)
	l.HasSuspects = fl.err != nil || fl.left > 0
	if !f.checkReply(fl) {
		return
	}
	f.Receive(ctx, fl.claims)
	if c := f.Exec.LoneTask(); c != nil && c != f.Suspects.Lone {
		f.Suspects.Lone, f.Suspects.Started, f.Suspects.Since = c, false, time.Now()
	}
}

// HandleLone starts the lone task once the worker has no other, puts it back if that takes too long, and waits for its
// end. The worker claims nothing meanwhile.
func (f *Fetcher) HandleLone(ctx context.Context) {
	f.leaveToFinishers()
	s, now := &f.Suspects, time.Now()
	switch {
	case f.Exec.LoneTask() != s.Lone:
		s.Patience = f.Patience
		f.loneOver(now)
	case s.Started:
		f.block(ctx, 0)
	case s.Lone.Lost.Load() || !f.Owner.MayClaim() || f.Paused(s.Lone.Lane.Index):
		f.putBackLone(lifecycle.OutcomeDefer)
		f.loneOver(now)
	case f.InFlight == 0 && lane.InHand(f.Lanes) == 1:
		f.StartLone(ctx, s.Lone)
		s.Started = true
	case now.Sub(s.Since) > s.Patience:
		f.putBackLone(lifecycle.OutcomeDefer)
		s.Patience = min(2*s.Patience, lane.LongestPatience)
		f.loneOver(now)
	default:
		f.block(ctx, lane.SettlePause)
	}
}

// putBackLone ends the claim of the lone task, which has not started, with the given outcome.
func (f *Fetcher) putBackLone(how lifecycle.Outcome) {
	c := f.Suspects.Lone
	f.Exec.ForgetLone(c)
	c.Lane.HasSuspects = true // also when the wait that begins now leaves out the suspects
	c.Lane.Finisher.Add(lane.Ending{Claim: c, Outcome: how})
}

// loneOver lets the worker claim again. It takes no suspect for as long as other tasks have had to wait.
func (f *Fetcher) loneOver(now time.Time) {
	s := &f.Suspects
	s.Lone, s.NoneBefore = nil, now.Add(now.Sub(s.Since))
	for i := range f.Queues {
		f.Queues[i].HasTasks = true
	}
}

// markAlone marks c in Redis as this worker's only task. If that fails c starts all the same, and its death will not
// count as one alone.
func (r *Receiver) markAlone(ctx context.Context, c *lane.Claim) {
	r.Alone.Store(c) // even if the call fails: it may have run
	if err := c.Lane.Store.Mark(ctx, r.Worker, redisstore.MarkAlone, c.Token); err != nil {
		r.Log.With("queue", c.Lane.Store.Name).WithError(err).Debug("cannot note that a suspect runs alone")
	}
}

// unmarkAlone removes the mark before other tasks start. It reports whether they may start.
func (r *Receiver) unmarkAlone(ctx context.Context) bool {
	c := r.Alone.Load()
	if c == nil {
		return true
	}
	if c.Lane.IsOpen(c) { // otherwise Redis has removed the claim, and its mark means nothing
		if err := c.Lane.Store.Mark(ctx, r.Worker, redisstore.MarkAlone, ""); err != nil {
			r.Log.With("queue", c.Lane.Store.Name).WithError(err).Debug("cannot note that a suspect runs beside others")
			return false
		}
	}
	r.Alone.Store(nil)
	return true
}

// StartLone starts the lone task, which must be the worker's only one.
func (r *Receiver) StartLone(ctx context.Context, c *lane.Claim) {
	r.markAlone(ctx, c)
	r.Exec.Add([]*lane.Claim{c})
}
