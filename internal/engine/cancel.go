package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// CanceledInfo is what is kept of a task that was cancelled.
func CanceledInfo(m *wire.Message, now time.Time) wire.Info {
	info := wire.Info{
		Reason: ReasonCanceled, Function: m.Path, Attempts: m.Meta.Retried, Deaths: m.Meta.Deaths,
		At: now,
	}
	if at := m.Meta.EnqueuedAt; at > 0 {
		info.Enqueued = time.UnixMilli(at)
	}
	return info
}

// ReasonCanceled is what is kept of a task that was cancelled.
const ReasonCanceled = "canceled"

// revokedMost bounds the ids of cancelled tasks that a lane keeps in memory. If there are more, Redis is asked for each
// batch of claims.
const revokedMost = 1000

// revocations are the ids of cancelled tasks, as far as a lane knows them.
type revocations struct {
	ids     map[string]bool
	partial bool // there are more
}

// noteRevoked replaces what the lane knows. It is called with all that was cancelled before the present version of the
// control hash.
func (l *lane) noteRevoked(ids []string, all bool) {
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revoked = revocations{known, !all}
	l.anyRevoked.Store(len(ids) > 0)
}

// noteCanceled adds one id, of which a signal has told.
func (l *lane) noteCanceled(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked.ids == nil {
		l.revoked.ids = map[string]bool{}
	}
	l.revoked.ids[id] = true
	l.anyRevoked.Store(true)
}

// forgetRevoked removes ids that are not those of cancelled tasks any more.
func (l *lane) forgetRevoked(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.revoked.ids, id)
	l.anyRevoked.Store(len(l.revoked.ids) > 0)
}

// isRevoked says whether a task was cancelled, as far as the lane knows.
func (l *lane) isRevoked(id string) bool {
	if !l.anyRevoked.Load() || id == "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revoked.ids[id]
}

// screen ends those of a batch's claims whose tasks were cancelled before they were claimed, and returns the others.
// Their messages are parsed then. It costs nothing as long as nobody uses the control hash, and Redis is asked only
// when something has changed. If it does not answer, all are given back.
func (w *Worker) screen(ctx context.Context, claims []*Claim) []*Claim {
	b := claims[0].batch
	if b.version == 0 {
		return claims
	}
	l := claims[0].lane
	for _, c := range claims {
		c.msg, _ = c.parse() // who receives it parses it again, and judges
	}
	revoked, err := w.screened(ctx, l, b.version, claims)
	if err != nil {
		w.log.With("queue", l.store.Name).Trouble(&l.control.trouble,
			"cannot ask which tasks were canceled; giving them back", err)
		l.rest = queueRest{until: time.Now().Add(pausedRest)}
		w.giveBack(claims)
		return nil
	}
	kept := make([]*Claim, 0, len(claims))
	for i, c := range claims {
		if revoked != nil && revoked[i] {
			w.cancelClaim(c, false)
			continue
		}
		kept = append(kept, c)
	}
	return kept
}

// screened says which claims' tasks were cancelled; nil for none.
func (w *Worker) screened(ctx context.Context, l *lane, version int64, claims []*Claim) ([]bool, error) {
	if l.control.version.Load() != version {
		if err := w.look(ctx, l); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	known := l.revoked
	var revoked []bool
	for i, c := range claims {
		if id := c.msg.Meta.ID; id != "" && known.ids[id] {
			if revoked == nil {
				revoked = make([]bool, len(claims))
			}
			revoked[i] = true
		}
	}
	l.mu.Unlock()
	if !known.partial {
		return revoked, nil
	}
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.msg.Meta.ID
	}
	return l.store.AreRevoked(ctx, ids)
}

// cancelClaim ends the claim of a task that was cancelled. certain: Redis need not know it any more.
func (w *Worker) cancelClaim(c *Claim, certain bool) {
	w.log.With("queue", c.lane.store.Name).With("function", c.msg.Path).With("id", c.msg.Meta.ID).Info("task canceled")
	w.tell(c, Event{Kind: event.TaskCanceled})
	c.lane.finisher.add(w.cancellation(c, certain))
}

// cancellation is the ending of a cancelled task.
func (w *Worker) cancellation(c *Claim, certain bool) ending {
	info := CanceledInfo(&c.msg, c.lane.now())
	info.Worker = w.id
	e := w.leave(c, &info)
	e.outcome, e.certain = outcomeCancel, certain
	return e
}

// annulledOf turns endings into what the store takes.
func annulledOf(group []ending) []redisstore.Annulled {
	tasks := make([]redisstore.Annulled, len(group))
	for i, c := range completedOf(group) {
		tasks[i] = redisstore.Annulled{Completed: c, Certain: group[i].certain}
	}
	return tasks
}

// canceledLate is the ending of a task that was to be tried again, or archived, when Redis knew already that it was
// cancelled.
func (w *Worker) canceledLate(c *Claim) ending {
	w.tell(c, Event{Kind: event.TaskCanceled})
	return w.cancellation(c, false)
}

// endAgain has a claim end in another way than it was to: its task was cancelled, or it was not.
func (f *finisher) endAgain(e *ending) {
	f.lane.reopen([]*Claim{e.claim})
	again := ending{claim: e.claim, outcome: outcomeRelease}
	if e.outcome == outcomeCancel {
		f.lane.forgetRevoked(e.claim.msg.Meta.ID)
		e.claim.canceled.Store(false)
	} else {
		again = f.canceled(e.claim)
	}
	f.add(again)
}

// cancelRunning ends the contexts of handlers whose tasks were cancelled.
func (w *Worker) cancelRunning(l *lane) {
	for _, c := range w.exec.running() {
		if c.lane == l && l.isRevoked(c.msg.Meta.ID) {
			l.cancelHandler(c)
		}
	}
}

// lookRevoked learns which tasks were cancelled, and does what follows for those in hand.
func (w *Worker) lookRevoked(ctx context.Context, l *lane) error {
	ids, all, err := l.store.Revoked(ctx, revokedMost)
	if err != nil {
		return err
	}
	l.noteRevoked(ids, all)
	for mine := w.exec.idsOf(l); !all && len(mine) > 0; {
		n := min(len(mine), revokedMost)
		revoked, err := l.store.AreRevoked(ctx, mine[:n])
		if err != nil {
			return err
		}
		for i, id := range mine[:n] {
			if revoked[i] {
				l.noteCanceled(id)
			}
		}
		mine = mine[n:]
	}
	if len(ids) > 0 {
		w.cancelRunning(l)
	}
	return nil
}

// idsOf returns the ids of one lane's tasks that run or wait for an executor.
func (e *executors) idsOf(l *lane) (ids []string) {
	add := func(claims []*Claim) {
		for _, c := range claims {
			if c.lane == l && c.msg.Meta.ID != "" {
				ids = append(ids, c.msg.Meta.ID)
			}
		}
	}
	e.mu.Lock()
	add(e.ready)
	e.mu.Unlock()
	add(e.running())
	return ids
}

// cancelHandler notes that the task of a running handler was cancelled, and ends the handler's context.
func (l *lane) cancelHandler(c *Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.settled || c.canceled.Swap(true) {
		return
	}
	if c.cancel != nil {
		c.cancel(ErrCanceled)
	}
}
