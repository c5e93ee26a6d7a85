package engine

import (
	"context"
	"sync"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// finisher tells Redis how the claims of one lane ended, in batches, again and again until Redis answers.
type finisher struct {
	lane *lane
	exec *executors // keeps what is done
	log  loop.Journal
	// archiveMost and archiveKeep bound the archive.
	archiveMost int
	archiveKeep time.Duration
	python      *redisstore.Store // of the queue for Python tasks; nil: none
	// lateCancellation is the ending of a claim whose task turns out to be cancelled.
	lateCancellation func(*Claim) ending

	trouble loop.Complaints

	mu      sync.Mutex // protects the following
	pending []ending
	lost    int           // claims found lost that the day's counters lack
	wakes   chan struct{} // holds an element while pending may be non-empty
}

// newFinisher returns the finisher of a lane, which hands its endings to it from now on, as exec does with what is
// done.
func newFinisher(l *lane, exec *executors, log loop.Journal, forward *redisstore.Store) *finisher {
	f := &finisher{
		lane: l, exec: exec, log: log, python: forward,
		archiveMost: lifecycle.MaxArchived, archiveKeep: lifecycle.ArchivedLife,
		wakes: make(chan struct{}, 1),
	}
	l.ends = f
	exec.addLane(l, f.wake)
	return f
}

// add hands over endings. It never blocks.
func (f *finisher) add(e ending) {
	f.mu.Lock()
	f.pending = append(f.pending, e)
	f.mu.Unlock()
	f.wake()
}

// release hands over claims that are given back unchanged. It never blocks. One call of Redis takes them all: of two,
// the second would put its tasks in front of those of the first.
func (f *finisher) release(claims []*Claim) {
	f.mu.Lock()
	for _, c := range claims {
		f.pending = append(f.pending, ending{claim: c, outcome: lifecycle.OutcomeRelease})
	}
	f.mu.Unlock()
	f.wake()
}

// countLost has lost claims counted.
func (f *finisher) countLost(n int) {
	f.mu.Lock()
	f.lost += n
	f.mu.Unlock()
	f.wake()
}

func (f *finisher) wake() {
	select {
	case f.wakes <- struct{}{}:
	default:
	}
}

// run works until stop ends and nothing is left to tell, or until abandon ends.
func (f *finisher) run(stop, abandon context.Context) {
	var wait loop.Backoff
	for {
		worked, ok := f.tellRedis() //nolint:contextcheck // see flush
		switch {
		case !ok:
			if !loop.Sleep(abandon, wait.Next()) {
				return
			}
			continue
		case worked:
			wait.Reset()
			continue
		}
		select {
		case <-f.wakes:
		case <-stop.Done():
			if f.waiting() == 0 {
				return
			}
		}
	}
}

// tellRedis tells Redis what there is to tell. ok is false if Redis has not answered for all of it.
func (f *finisher) tellRedis() (worked, ok bool) {
	f.mu.Lock()
	endings, lost := f.pending, f.lost
	f.pending, f.lost = nil, 0
	f.mu.Unlock()
	done := f.exec.takeDone(f.lane)
	if len(endings) == 0 && len(done) == 0 && lost == 0 {
		return false, true
	}
	ok = f.ack(done, lost)
	if left := f.flush(endings); len(left) > 0 {
		f.mu.Lock()
		f.pending = append(left, f.pending...)
		f.mu.Unlock()
		ok = false
	}
	return true, ok
}

// ack acknowledges claims that are done and has lost ones counted. The call is not cut off when the worker stops: an
// answer that arrives late is better than a task that runs again.
func (f *finisher) ack(done []*Claim, lost int) bool {
	done, e := f.lane.prepareAcks(done)
	if len(done) == 0 && lost == 0 {
		return true
	}
	stood, err := f.lane.store.Ack(context.Background(), f.lane.worker, e, lost)
	if err != nil {
		f.log.Trouble(&f.trouble, "cannot tell Redis how tasks ended; trying again", err)
		f.ackFailed(done, err)
		if !redisstore.MayHaveRun(err) {
			f.countLost(lost)
		}
		return false
	}
	f.acknowledged(done, stood)
	return true
}

// acknowledged notes Redis's answer for claims that are done: which of them stood, nil for all.
func (f *finisher) acknowledged(done []*Claim, stood []bool) {
	if len(done) == 0 {
		return
	}
	f.log.Relief(&f.trouble, "Redis has been told how tasks ended")
	lost := 0
	for i, c := range done {
		if stood != nil && !stood[i] && !c.maybeEnded {
			lost++
			f.reportLost(c)
		}
	}
	f.lane.settle(done...)
	if lost > 0 {
		f.countLost(lost)
	}
}

// ackFailed puts claims back that are done and of which Redis could not be told.
func (f *finisher) ackFailed(done []*Claim, err error) {
	if len(done) == 0 {
		return
	}
	for _, c := range done {
		c.maybeEnded = c.maybeEnded || redisstore.MayHaveRun(err)
	}
	f.lane.noteUnsent(done)
	f.exec.putDone(f.lane, done)
	f.wake()
}

func (f *finisher) reportLost(c *Claim) {
	f.lane.emit(c, Event{Kind: event.TaskLost})
	f.log.With("function", c.msg.Path).With("id", c.msg.Meta.ID).
		Warn("claim was lost before the task ended: another worker may run it again")
}

// flush tells Redis about endings and returns those it did not answer for.
func (f *finisher) flush(endings []ending) (left []ending) {
	ctx := context.Background() // as in ack
	var sorted [lifecycle.Outcomes][]ending
	for _, e := range endings {
		sorted[e.outcome] = append(sorted[e.outcome], e)
	}
	for kind, group := range sorted {
		size := redisstore.MaxTokens
		switch lifecycle.Ends[kind].Script {
		case "shelve", "complete", "annul":
			size = redisstore.MaxShelved
		}
		if lifecycle.Outcome(kind) == lifecycle.OutcomeRelease {
			// The last go back first, as each call puts its tasks in front of all others.
			for len(group) > 0 {
				n := fitting(len(group), size, func(i int) *ending { return &group[len(group)-1-i] })
				left = append(left, f.send(ctx, lifecycle.OutcomeRelease, group[len(group)-n:])...)
				group = group[:len(group)-n]
			}
		}
		for len(group) > 0 {
			n := fitting(len(group), size, func(i int) *ending { return &group[i] })
			if lifecycle.Outcome(kind) == lifecycle.OutcomeGather {
				n = sameGroup(group[:n])
			}
			left = append(left, f.send(ctx, lifecycle.Outcome(kind), group[:n])...)
			group = group[n:]
		}
	}
	return left
}

// send makes one call for endings of one kind and returns them if there was no answer.
func (f *finisher) send(ctx context.Context, kind lifecycle.Outcome, group []ending) (left []ending) {
	claims := make([]*Claim, len(group))
	for i := range group {
		claims[i] = group[i].claim
	}
	stood, again, err := f.callScript(ctx, kind, claims, group)
	if err != nil {
		f.log.Trouble(&f.trouble, "cannot tell Redis how tasks ended; trying again", err)
		f.lane.noteUnsent(claims)
		for _, c := range claims {
			c.maybeEnded = c.maybeEnded || redisstore.MayHaveRun(err)
		}
		return group
	}
	f.log.Relief(&f.trouble, "Redis has been told how tasks ended")
	lost := 0
	for i := range group {
		e := &group[i]
		if again != nil && again[i] {
			f.endOtherwise(e)
			continue
		}
		f.lane.settle(e.claim)
		if !stood[i] && !e.claim.maybeEnded && kind != lifecycle.OutcomeRelease && kind != lifecycle.OutcomeDefer {
			lost++
			f.reportLost(e.claim)
		}
		if kind == lifecycle.OutcomeForward && stood[i] && e.claim.holdsLock() {
			f.freeForwarded(ctx, e.claim)
		}
	}
	if lost > 0 {
		f.countLost(lost)
	}
	return nil
}

// callScript picks the script. again says which claims still stand and must end in another way, nil for none.
func (f *finisher) callScript(
	ctx context.Context, kind lifecycle.Outcome, claims []*Claim, group []ending,
) (stood, again []bool, err error) {
	end := &lifecycle.Ends[kind]
	s, worker, batches := f.lane.store, f.lane.worker, f.lane.noteSent(claims)
	tokens := make([]string, len(claims))
	for i, c := range claims {
		tokens[i] = c.token
	}
	if end.Script != "complete" && end.Script != "annul" {
		// First, or what it has reported would outlast the task if this process died in between.
		if err := forgetReports(ctx, group); err != nil {
			return nil, nil, err
		}
	}
	switch kind {
	case lifecycle.OutcomeRetry, lifecycle.OutcomePostpone:
		return s.Shelve(ctx, worker, batches, redisstore.ShelfRetry, 0, end.Counters, shelvedOf(group))
	case lifecycle.OutcomeArchive, lifecycle.OutcomeExpire, lifecycle.OutcomeReject:
		for i := range group {
			group[i].wait = f.archiveKeep
		}
		return s.Shelve(ctx, worker, batches, redisstore.ShelfArchived, f.archiveMost, end.Counters, shelvedOf(group))
	case lifecycle.OutcomeSnooze:
		return s.Shelve(ctx, worker, batches, redisstore.ShelfScheduled, 0, end.Counters, shelvedOf(group))
	case lifecycle.OutcomePark:
		return s.Shelve(ctx, worker, batches, redisstore.ShelfParked, 0, end.Counters, shelvedOf(group))
	case lifecycle.OutcomeCancel:
		return s.Annul(ctx, worker, batches, annulledOf(group))
	case lifecycle.OutcomeComplete, lifecycle.OutcomeDrop:
		stood, err = s.Complete(ctx, worker, batches, completedOf(group))
	case lifecycle.OutcomeGather:
		stood, err = s.Join(ctx, worker, batches, tokens, membersOf(group))
	case lifecycle.OutcomeForward:
		stood, err = s.Release(ctx, worker, batches, tokens, f.python, false)
	case lifecycle.OutcomeDefer:
		stood, err = s.Release(ctx, worker, batches, tokens, f.lane.suspects, false)
	default:
		stood, err = s.Release(ctx, worker, batches, tokens, s, true)
	}
	return stood, nil, err
}

// waiting returns how many endings Redis has not answered for.
func (f *finisher) waiting() int {
	f.mu.Lock()
	n := len(f.pending)
	f.mu.Unlock()
	return n + f.exec.undone(f.lane)
}

// freeForwarded frees what a task has to itself that was handed on to another queue, whose workers cannot do it. If
// Redis does not answer, it lapses.
func (f *finisher) freeForwarded(ctx context.Context, c *Claim) {
	if err := f.lane.store.Disown(ctx, c.msg.Meta.ID); err != nil {
		f.log.With("function", c.msg.Path).With("id", c.msg.Meta.ID).WithError(err).
			Warn("the lock of a task that was handed on could not be freed, and lasts until it lapses")
	}
}

// endOtherwise has a claim end in another way than it was to: its task was cancelled, or it was not.
func (f *finisher) endOtherwise(e *ending) {
	f.lane.noteUnsent([]*Claim{e.claim})
	again := ending{claim: e.claim, outcome: lifecycle.OutcomeRelease}
	if e.outcome == lifecycle.OutcomeCancel {
		f.lane.forgetRevoked(e.claim.msg.Meta.ID)
		e.claim.canceled.Store(false)
	} else {
		again = f.lateCancellation(e.claim)
	}
	f.add(again)
}

// forgetReports has Redis forget what tasks have reported that do not end by success.
func forgetReports(ctx context.Context, group []ending) error {
	for i := range group {
		c := group[i].claim
		if c.reporter.Load() == nil {
			continue
		}
		if _, err := c.lane.store.Progress(ctx, c.lane.worker, c.token, c.msg.Meta.ID, nil); err != nil {
			return err
		}
	}
	return nil
}
