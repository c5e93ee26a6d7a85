package engine

import (
	"context"
	"strings"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// receive sorts claimed tasks: those that can run here become ready, the others are parked, handed on or archived. It
// blocks while Redis is told that a suspect is alone no longer. It returns how many tasks are to run here.
func (w *Worker) receive(ctx context.Context, claims []*Claim) (kept int) {
	if len(claims) == 0 {
		return 0
	}
	l := claims[0].lane
	if w.exec.loneTask() != nil || l.queuePaused() {
		w.giveBack(claims) // their call was under way when that came
		return 0
	}
	if claims = w.screen(ctx, claims); len(claims) == 0 {
		return 0
	}
	now, f := l.now(), l.finisher
	runnable := make([]*Claim, 0, len(claims)) // not claims[:0]: the batch holds on to that
	suspects := false
	for _, c := range claims {
		var err error
		if c.msg, err = c.parse(); err != nil {
			f.add(w.undecodable(c, err, now))
			continue
		}
		if c.msg.Python() {
			f.add(w.python(ctx, c, now))
			continue
		}
		if x := c.msg.Meta.Extra; x != nil && x.Group != "" {
			// It was scheduled, and is due now. One that cannot be gathered runs alone.
			if m, err := group.NewMember(c.raw); err == nil {
				f.add(ending{claim: c, outcome: outcomeGather, id: m.Group})
				continue
			}
		}
		if c.fn = w.registry.Lookup(c.msg.Path); c.fn == nil {
			f.add(w.park(c, parkedUnknown, now))
			continue
		}
		c.suspicion = suspicionOf(c, now)
		if c.suspicion >= setApart && (!c.batch.suspects || !w.exec.admit(c)) {
			f.add(ending{claim: c, outcome: outcomeDefer})
			l.apart = true
			continue
		}
		suspects = suspects || c.suspicion > 0
		runnable = append(runnable, c)
	}
	if suspects {
		w.exec.calm()
		if w.exec.loneTask() != nil {
			return 1 // it starts when nothing else is in hand
		}
	}
	if len(runnable) == 0 {
		return 0
	}
	if !w.unmark(ctx) {
		w.giveBack(runnable)
		return 0
	}
	if suspects && w.inHand() == 1 {
		w.markAlone(ctx, runnable[0])
	}
	w.exec.add(runnable)
	if l.queuePaused() {
		w.giveBack(w.exec.takeBackOf(l)) // it was not when we looked
	}
	return len(runnable)
}

// giveBack releases claims whose tasks have not started.
func (w *Worker) giveBack(claims []*Claim) {
	if len(claims) == 0 {
		return
	}
	// One call for each lane, or a part of them might go back before the rest and come to stand behind it.
	for _, l := range w.lanes {
		var endings []ending
		for _, c := range claims {
			if c.lane == l {
				endings = append(endings, ending{claim: c, outcome: outcomeRelease})
			}
		}
		if len(endings) > 0 {
			l.finisher.add(endings...)
		}
	}
}

// execute runs one task. It answers whether that is done and to be acknowledged; if not, it has seen to what becomes of
// the task.
func (w *Worker) execute(c *Claim) (done bool) {
	if c.lane.isRevoked(c.msg.Meta.ID) {
		w.cancelClaim(c, false)
		return false
	}
	if x := c.msg.Meta.Extra; x != nil {
		if w.stale(c) {
			return false
		}
		if x.LockStart && !w.unlockStart(c) {
			return false
		}
	}
	limit := w.limit(c, 0)
	ctx := w.tasks
	var cancel context.CancelCauseFunc
	if c.fn.TakesCtx || w.cfg.Wrapped(c) {
		ctx, cancel = w.contextOf(c, limit)
		defer cancel(nil)
	}
	if !c.lane.begin(c, cancel) {
		if !c.lost.Load() {
			w.cancelClaim(c, false) // since it was looked up
			return false
		}
		c.lane.settle(c)
		c.lane.finisher.countLost(1)
		w.tell(c, Event{Kind: event.TaskLost})
		return false
	}
	if w.listened() {
		w.tellStart(c)
	}
	var err error
	var result any
	returned := false
	var began time.Time
	if c.leaves() {
		began = c.lane.now()
	}
	// A deferred function, because a handler may end this goroutine by runtime.Goexit.
	defer func() {
		c.quiet()
		if done = w.conclude(c, err, returned, limit); done && c.leaves() {
			c.lane.finisher.add(w.completion(c, result, began, c.lane.now()))
			done = false
		}
	}()
	result, err = w.cfg.Call(ctx, c)
	returned = true
	return false
}

// conclude says what becomes of a task whose handler has ended: true, if it is done and to be acknowledged.
func (w *Worker) conclude(c *Claim, err error, returned bool, limit time.Duration) (done bool) {
	if c.lane.end(c) {
		c.lane.settle(c)
		w.log.With("queue", c.lane.store.Name).With("function", c.msg.Path).With("id", c.msg.Meta.ID).
			Warn("task ended after its claim was lost; its outcome is discarded")
		c.lane.finisher.countLost(1)
		w.tell(c, Event{Kind: event.TaskLost})
		return false
	}
	if !returned {
		err = function.NewPanic(nil)
	}
	if err != nil && limit > 0 && time.Since(c.started) >= limit {
		err = &timeoutError{limit, err}
	}
	if w.heard != nil {
		w.heard(c, err)
	}
	if err != nil && c.canceled.Load() {
		w.cancelClaim(c, true)
		return false
	}
	if err == nil {
		w.tellEnd(c, nil, nil, true)
		return true
	}
	e, done := w.judge(c, err, c.lane.now())
	w.tellEnd(c, err, &e, done)
	if !done {
		c.lane.finisher.add(e)
	}
	return done
}

// undecodable archives a message that is none, or is too large, as it is. Its bytes are not sent back.
func (w *Worker) undecodable(c *Claim, err error, now time.Time) ending {
	id := wire.NewTaskID()
	s := c.lane.store
	info := wire.Info{Reason: lifecycle.ReasonUndecodable, Error: err.Error(), At: now, Worker: w.id}
	if size := c.large(); size > 0 {
		info.Reason = lifecycle.ReasonTooLarge
		redisstore.LogTooLarge(w.log, &w.lines, s.Name, id, size)
	} else {
		w.lines.Log(loop.LineKey{Queue: s.Name, Reason: info.Reason}, func(n int) {
			w.log.With("queue", s.Name).With("id",
				id).Counted(n).WithError(err).Error("message archived: it cannot be decoded")
		})
	}
	w.tell(c, Event{Kind: event.TaskArchived, Reason: info.Reason, Err: err})
	return ending{claim: c, outcome: outcomeArchive, wait: lifecycle.ArchivedLife, id: id, info: info.Encode()}
}

// python hands a Python task on, or parks it: where there is no other queue, or where its workers do not read extended
// messages.
func (w *Worker) python(ctx context.Context, c *Claim, now time.Time) ending {
	to := w.pythonStore
	if to == nil || to.SameQueue(c.lane.store) {
		return w.park(c, parkedPython, now)
	}
	if c.msg.Kind == wire.PyExtended {
		reads, err := w.readsExtended(ctx, to)
		if err != nil {
			return ending{claim: c, outcome: outcomeRelease} // nobody knows: ask again with the next claim
		}
		if !reads {
			return w.park(c, parkedPlain, now)
		}
	}
	w.tell(c, Event{Kind: event.TaskForwarded})
	return ending{claim: c, outcome: outcomeForward}
}

// readsExtended says whether a queue of Python tasks takes extended ones. One without a form had no Python task from us
// or from godelayed: it takes them from now on, but for a shared one, whose workers may be keakon's.
func (w *Worker) readsExtended(ctx context.Context, to *redisstore.Store) (bool, error) {
	form, err := to.Mode(ctx)
	if err == nil && form == "" && !w.cfg.Legacy {
		form, err = to.SettleMode(ctx, redisstore.ExtendedForm)
	}
	return form == redisstore.ExtendedForm, err
}

// Why tasks are parked, besides reasonFields.
const (
	parkedUnknown = "unknown function"
	parkedPython  = "python"
	parkedPlain   = "extended python on a queue for plain ones"
)

// parkedAdvice says what to do about it, unless workers that know the function are all that is missing.
var parkedAdvice = map[string]string{
	parkedPlain: ": the workers of WorkerConfig.PythonQueue break on extended messages; serve another queue with " +
		"godelayed's workers and name that, " +
		"or have its producers open this queue as Legacy",
}

// park files a task for a worker that knows its function, and the fields of its arguments: here these were unknown.
func (w *Worker) park(c *Claim, reason string, now time.Time, fields ...string) ending {
	id := c.msg.Meta.ID
	if id == "" {
		id = wire.NewTaskID()
	}
	queue, path := c.lane.store.Name, c.msg.Path
	w.lines.Log(loop.LineKey{Queue: queue, Reason: reason, Function: path}, func(n int) {
		log := w.log.With("queue", queue).With("function", path).With("id", id).Counted(n)
		if len(fields) > 0 {
			log = log.With("fields", strings.Join(fields, ", "))
		}
		log.Warn("task parked: this worker cannot run it (" + reason + ")" + parkedAdvice[reason])
	})
	w.tell(c, Event{Kind: event.TaskParked, Reason: reason})
	info := wire.Info{Reason: reason, Function: c.msg.Path, Fields: fields, At: now, Worker: w.id}
	if len(fields) > 0 {
		info.Error = unknownFieldsText(c.msg.Path, fields)
	}
	return ending{
		claim: c, outcome: outcomePark, wait: lifecycle.ParkedLife, id: id, message: c.raw, info: info.Encode(),
	}
}
