package delayed

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// workerLimits allow a message some growth over what a producer may send: retries and deaths add to its meta.
var workerLimits = wire.Limits{
	Bytes: wire.Default.Bytes + 4096, Elems: wire.Default.Elems + 64, Depth: wire.Default.Depth, Path: wire.Default.Path,
}

// receive sorts claimed tasks: those that can run here become ready, the others are parked, handed on or archived. It blocks while
// Redis has not answered that tasks were given back for the sake of a suspect. It returns how many tasks are to run here.
func (w *Worker) receive(ctx context.Context, claims []*claim) (kept int) {
	if len(claims) == 0 {
		return 0
	}
	if w.exec.barred() {
		// Their call was under way when a suspect came.
		w.exec.leaveOff()
		select {
		case <-w.giveBack(claims):
		case <-ctx.Done():
		}
		return 0
	}
	l := claims[0].lane
	if l.queuePaused() {
		w.giveBack(claims)
		return 0
	}
	if claims = w.screen(ctx, claims); len(claims) == 0 {
		return 0
	}
	now, f := l.now(), l.finisher
	runnable := make([]*claim, 0, len(claims)) // not claims[:0]: the batch holds on to that
	var suspects []*claim
	for _, c := range claims {
		var err error
		if c.msg, err = wire.Parse(c.raw, workerLimits); err != nil {
			f.add(w.undecodable(c, err, now))
			continue
		}
		if c.msg.Python() {
			f.add(w.python(ctx, c, now))
			continue
		}
		if x := c.msg.Meta.Extra; x != nil && x.Group != "" {
			// It was scheduled, and is due now. One that cannot be gathered runs alone.
			if m, err := newMember(c.raw); err == nil {
				f.add(ending{claim: c, outcome: outcomeGather, id: m.group})
				continue
			}
		}
		if c.fn = w.registry.lookup(c.msg.Path); c.fn == nil {
			f.add(w.park(c, parkedUnknown, now))
			continue
		}
		if m := &c.msg.Meta; m.Deaths > 0 && now.UnixMilli()-m.DiedAt < deathsLife.Milliseconds() {
			c.suspect = true
			suspects = append(suspects, c)
			continue
		}
		runnable = append(runnable, c)
	}
	if len(suspects) == 0 {
		l.refused = 0
		w.exec.add(runnable)
		if l.queuePaused() {
			w.giveBack(w.exec.takeBackOf(l)) // it was not when we looked
		}
		return len(runnable)
	}
	return w.receiveSuspects(ctx, suspects, runnable)
}

// receiveSuspects makes at most one suspect ready. Before it does, it gives back all others and everything that has not started: if
// the suspect takes the worker down, it takes nothing with it that has not started.
//
// Suspects that find another one in hand go to the end of their queue: at its front they would come back with the next claim, and
// keep all others from this worker for as long as the one in hand runs. Once all of a queue has come by and was nothing else, the
// queue is left alone for a while.
func (w *Worker) receiveSuspects(ctx context.Context, suspects, runnable []*claim) (kept int) {
	chosen := suspects[0]
	if !w.exec.admit(chosen) {
		l := chosen.lane
		l.refused += len(suspects)
		if len(runnable) > 0 {
			l.refused = 0
		} else if l.refused >= l.left {
			l.refused, l.rest = 0, time.Now().Add(suspectAlone)
		}
		endings := make([]ending, len(suspects))
		for i, c := range suspects {
			endings[i] = ending{claim: c, outcome: outcomeDefer}
		}
		l.finisher.add(endings...)
		w.exec.add(runnable)
		return len(runnable)
	}
	back := append(w.exec.takeBack(), suspects[1:]...)
	told := w.giveBack(append(back, runnable...))
	w.exec.leaveOff() // this may take a while
	select {
	case <-told:
		w.exec.add([]*claim{chosen})
		return 1
	case <-ctx.Done():
		w.exec.dismiss(chosen)
		w.giveBack([]*claim{chosen})
		return 0
	}
}

// giveBack releases claims whose tasks have not started. The channel is closed once Redis has answered.
func (w *Worker) giveBack(claims []*claim) <-chan struct{} {
	told := newReceipt(len(claims))
	if len(claims) == 0 {
		close(told.done)
		return told.done
	}
	// One call for each lane, or a part of them might go back before the rest and come to stand behind it.
	for _, l := range w.lanes {
		var endings []ending
		for _, c := range claims {
			if c.lane == l {
				endings = append(endings, ending{claim: c, outcome: outcomeRelease, told: told})
			}
		}
		if len(endings) > 0 {
			l.finisher.add(endings...)
		}
	}
	return told.done
}

// execute runs one task. It answers whether that is done and to be acknowledged; if not, it has seen to what becomes of the task.
func (w *Worker) execute(c *claim) (done bool) {
	if c.lane.isRevoked(c.msg.Meta.ID) {
		w.cancelClaim(c, false)
		return false
	}
	if x := c.msg.Meta.Extra; x != nil {
		if w.stale(c) {
			return false
		}
		if x.LockStart && w.unlock(c) {
			w.cancelClaim(c, false)
			return false
		}
	}
	limit := w.limit(c, 0)
	ctx := w.tasks
	var cancel context.CancelCauseFunc
	if c.fn.takesCtx || w.hasMiddleware(c) {
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
		w.tell(c, Event{Kind: EventTaskLost})
		return false
	}
	if w.listened() {
		w.tellStart(c)
	}
	if ackFirst {
		for !c.lane.finisher.ack([]*claim{c}, 0) {
			c = w.exec.takeDone(c.lane)[0] // the kill test runs on a Redis that answers
		}
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
	result, err = w.call(ctx, c)
	returned = true
	return false
}

// conclude says what becomes of a task whose handler has ended: true, if it is done and to be acknowledged.
func (w *Worker) conclude(c *claim, err error, returned bool, limit time.Duration) (done bool) {
	if c.lane.end(c) {
		c.lane.settle(c)
		w.log.with("queue", c.lane.store.name).with("function", c.msg.Path).with("id", c.msg.Meta.ID).
			Warn("task ended after its claim was lost; its outcome is discarded")
		c.lane.finisher.countLost(1)
		w.tell(c, Event{Kind: EventTaskLost})
		return false
	}
	if ackFirst {
		return false
	}
	if !returned {
		err = newPanicError(nil)
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

// undecodable archives a message that is none, as it is.
func (w *Worker) undecodable(c *claim, err error, now time.Time) ending {
	id := newTaskID()
	w.log.with("queue", c.lane.store.name).with("id", id).WithError(err).Error("message archived: it cannot be decoded")
	info := taskInfo{reason: "undecodable", errText: err.Error(), at: now, worker: w.id}
	w.tell(c, Event{Kind: EventTaskArchived, Reason: info.reason, Err: err})
	return ending{claim: c, outcome: outcomeArchive, wait: archivedLife, id: id, message: c.raw, info: info.encode()}
}

// python hands a Python task on, or parks it: where there is no other queue, or where its workers do not read extended messages.
func (w *Worker) python(ctx context.Context, c *claim, now time.Time) ending {
	to := w.pythonStore
	if to == nil || to.keys.list == c.lane.store.keys.list {
		return w.park(c, parkedPython, now)
	}
	if c.msg.Kind == wire.PyExtended {
		form, err := to.settleMode(ctx, Extended.String()) // if no form was settled yet: this is its first Python task
		if err != nil {
			return ending{claim: c, outcome: outcomeRelease} // nobody knows: ask again with the next claim
		}
		if form == Plain.String() {
			return w.park(c, parkedPlain, now)
		}
	}
	w.tell(c, Event{Kind: EventTaskForwarded})
	return ending{claim: c, outcome: outcomeForward}
}

// Why tasks are parked.
const (
	parkedUnknown = "unknown function"
	parkedPython  = "python"
	parkedPlain   = "extended python on a queue for plain ones"
)

// parkedAdvice says what to do about it, unless workers that know the function are all that is missing.
var parkedAdvice = map[string]string{
	parkedPlain: ": the workers of WorkerConfig.PythonQueue break on extended messages; serve another queue with godelayed's workers and name that, " +
		"or have its producers open this queue with Plain",
}

// park files a task for a worker that knows its function. There is one line in ten seconds for each function.
func (w *Worker) park(c *claim, reason string, now time.Time) ending {
	id := c.msg.Meta.ID
	if id == "" {
		id = newTaskID()
	}
	if skipped, ok := w.parkings.due(c.lane.store.name + " " + reason + " " + c.msg.Path); ok {
		log := w.log.with("queue", c.lane.store.name).with("function", c.msg.Path).with("id", id)
		if skipped > 0 {
			log = log.with("repeated", skipped)
		}
		log.Warn("task parked: this worker cannot run it (" + reason + ")" + parkedAdvice[reason])
	}
	w.tell(c, Event{Kind: EventTaskParked, Reason: reason})
	info := taskInfo{reason: reason, function: c.msg.Path, at: now, worker: w.id}
	return ending{claim: c, outcome: outcomePark, wait: parkedLife, id: id, message: c.raw, info: info.encode()}
}
