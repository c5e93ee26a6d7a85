package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// finisher tells Redis how the claims of one lane ended, in batches. It repeats each call until Redis answers.
type finisher struct {
	lane    *lane
	done    doneClaims
	decider *decider
	events  *listeners
	log     loop.Journal
	// archiveMost and archiveKeep bound the number and the age of archived tasks.
	archiveMost int
	archiveKeep time.Duration
	python      *redisstore.Store // the queue for Python tasks; nil: none

	trouble loop.Complaints

	mu      sync.Mutex // protects the following
	pending []ending
	lost    int           // lost claims that the next acknowledgement adds to the counters of the day
	wakes   chan struct{} // has an element if there may be something to tell Redis
}

// doneClaims has the claims that are done, and that no call has acknowledged yet: the executors.
type doneClaims interface {
	// addLane gives a lane its index. wakes gets an element when the lane has done claims for its finisher.
	addLane(l *lane, wakes chan<- struct{})
	// takeDone removes and returns as many done claims of a lane as one call may acknowledge.
	takeDone(l *lane) []*Claim
	// putDone puts claims back whose acknowledgement got no answer.
	putDone(l *lane, claims []*Claim)
	// undone returns how many done claims of a lane no call has taken.
	undone(l *lane) int
	// wakeFetcher makes the fetcher look again.
	wakeFetcher()
}

// newFinisher returns the finisher of a lane. It becomes l.ends, and acknowledges the done claims of the lane.
func newFinisher(l *lane, done doneClaims, d *decider, events *listeners, log loop.Journal) *finisher {
	f := &finisher{
		lane: l, done: done, decider: d, events: events, log: log.With("queue", l.store.Name),
		archiveMost: lifecycle.MaxArchived, archiveKeep: lifecycle.ArchivedLife,
		wakes: make(chan struct{}, 1),
	}
	l.ends = f
	done.addLane(l, f.wakes)
	return f
}

// add adds an ending to those that Redis must be told.
func (f *finisher) add(e ending) {
	f.lane.endsWaiting.Add(1)
	f.mu.Lock()
	f.pending = append(f.pending, e)
	f.mu.Unlock()
	f.wake()
}

// told notes that Redis has been told of n endings.
func (f *finisher) told(n int) {
	wasBehind := f.lane.endsWaiting.Add(-int64(n))+int64(n) >= maxEndsWaiting
	if wasBehind && !f.lane.behind() {
		f.done.wakeFetcher()
	}
}

// release gives claims back unchanged. One call must take all of them: a second call would put its tasks in front of
// those of the first.
func (f *finisher) release(claims []*Claim) {
	f.lane.endsWaiting.Add(int64(len(claims)))
	f.mu.Lock()
	for _, c := range claims {
		f.pending = append(f.pending, ending{claim: c, outcome: lifecycle.OutcomeRelease})
	}
	f.mu.Unlock()
	f.wake()
}

// countLost publishes the loss of claims. The next acknowledgement adds them to the counters of the day.
func (f *finisher) countLost(claims []*Claim) {
	for _, c := range claims {
		f.events.emitFor(c, Event{Kind: event.TaskLost})
	}
	f.addLost(len(claims))
}

func (f *finisher) addLost(n int) {
	f.mu.Lock()
	f.lost += n
	f.mu.Unlock()
	f.wake()
}

func (f *finisher) wake() { loop.Poke(f.wakes) }

// run tells Redis how claims ended, until stop ends and nothing is left to tell, or until abandon ends.
func (f *finisher) run(stop, abandon context.Context) {
	var wait loop.Backoff
	for {
		worked, ok := f.tellRedis() //nolint:contextcheck // see ack
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

// tellRedis tells Redis once about all that has ended so far. worked is false if that is nothing; ok is false if a call
// got no answer.
func (f *finisher) tellRedis() (worked, ok bool) {
	f.mu.Lock()
	endings, lost := f.pending, f.lost
	f.pending, f.lost = nil, 0
	f.mu.Unlock()
	done := f.done.takeDone(f.lane)
	if len(endings) == 0 && len(done) == 0 && lost == 0 {
		return false, true
	}
	err := f.ack(done, lost)
	left, answered := endings, err == nil || answer.Is(err)
	if answered {
		left, answered = f.flush(endings)
	}
	f.mu.Lock()
	f.pending = append(left, f.pending...)
	f.mu.Unlock()
	ok = err == nil && len(left) == 0
	f.lane.endsRefused.Store(answered && !ok)
	return true, ok
}

// ack acknowledges done claims and reports the number of lost ones. The call is not cancelled when the worker stops:
// without it, the tasks would run again.
func (f *finisher) ack(done []*Claim, lost int) error {
	done, e := f.lane.prepareAcks(done)
	if len(done) == 0 && lost == 0 {
		return nil
	}
	stood, err := f.lane.store.Ack(context.Background(), f.lane.worker, e, lost)
	if err != nil {
		f.log.Trouble(&f.trouble, "cannot tell Redis how tasks ended; trying again", err)
		f.ackFailed(done, err)
		if !redisstore.MayHaveRun(err) {
			f.addLost(lost)
		}
		return err
	}
	f.acknowledged(done, stood)
	return nil
}

// acknowledged settles claims that Redis has acknowledged. stood says which of them still belonged to this worker; nil:
// all.
func (f *finisher) acknowledged(done []*Claim, stood []bool) {
	if len(done) == 0 {
		return
	}
	f.log.Relief(&f.trouble, "Redis has been told how tasks ended")
	var lost []*Claim
	for i, c := range done {
		if stood != nil && !stood[i] && !c.maybeEnded {
			lost = append(lost, c)
		}
	}
	f.lane.settle(done...)
	f.reportLost(lost)
}

// ackFailed takes back claims whose acknowledgement got no answer, to send it again.
func (f *finisher) ackFailed(done []*Claim, err error) {
	if len(done) == 0 {
		return
	}
	for _, c := range done {
		c.maybeEnded = c.maybeEnded || redisstore.MayHaveRun(err)
	}
	f.lane.noteUnsent(done)
	f.done.putDone(f.lane, done)
	f.wake()
}

// reportLost logs and counts claims that were lost before Redis knew how their tasks had ended.
func (f *finisher) reportLost(claims []*Claim) {
	if len(claims) == 0 {
		return
	}
	for _, c := range claims {
		f.log.With("function", c.msg.Path).With("id", c.msg.Meta.ID).
			Warn("claim was lost before the task ended: another worker may run it again")
	}
	f.countLost(claims)
}

// flush sends endings and returns those that Redis was not told. It makes no more calls after one that Redis did not
// answer: a worker that stops could not wait for all of them.
func (f *finisher) flush(endings []ending) (left []ending, answered bool) {
	ctx := context.Background() // as in ack
	var sorted [lifecycle.Outcomes][]ending
	for _, e := range endings {
		sorted[e.outcome] = append(sorted[e.outcome], e)
	}
	answered = true
	for i, group := range sorted {
		kind := lifecycle.Outcome(i)
		if !answered {
			left = append(left, group...)
			continue
		}
		size, atOnce := redisstore.MaxTokens, 1 // the others keep the order of their tasks
		switch lifecycle.Ends[kind].Script {
		case "shelve", "complete", "annul":
			size, atOnce = redisstore.MaxShelved, 2
		}
		parts := partsOf(kind, group, size)
		parts, answered = f.sendAll(ctx, kind, parts, atOnce)
		if kind == lifecycle.OutcomeRelease {
			slices.Reverse(parts)
		}
		left = append(left, slices.Concat(parts...)...)
	}
	return left, answered
}

// sendAll makes a call for each part of the endings of one kind, some at once, so that Redis need not wait for the next
// call to be made. It returns the parts that Redis was not told, in their order; answered is false if it did not answer
// a call.
func (f *finisher) sendAll(
	ctx context.Context, kind lifecycle.Outcome, parts [][]ending, atOnce int,
) (unsent [][]ending, answered bool) {
	unsent, errs := make([][]ending, len(parts)), make([]error, len(parts))
	failed := map[string]bool{} // groups of which a part has failed: later parts must not overtake it
	for first := 0; first < len(parts); first += atOnce {
		next := min(first+atOnce, len(parts))
		var calls sync.WaitGroup
		for i := first; i < next; i++ {
			if atOnce == 1 && failed[groupOf(&parts[i][0])] {
				unsent[i] = parts[i]
				continue
			}
			calls.Go(func() {
				if errs[i] = f.send(ctx, kind, parts[i]); errs[i] != nil {
					unsent[i] = parts[i]
				}
			})
		}
		calls.Wait()
		for i := first; i < next; i++ {
			if errs[i] != nil && !answer.Is(errs[i]) {
				copy(unsent[next:], parts[next:])
				return unsent, false
			}
			if errs[i] != nil {
				failed[groupOf(&parts[i][0])] = true
			}
		}
	}
	return unsent, true
}

// send makes one call for endings of one kind. If it returns an error, they must be sent again.
func (f *finisher) send(ctx context.Context, kind lifecycle.Outcome, group []ending) error {
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
		return err
	}
	f.log.Relief(&f.trouble, "Redis has been told how tasks ended")
	f.told(len(group))
	var lost []*Claim
	for i := range group {
		e := &group[i]
		if again != nil && again[i] {
			f.endOtherwise(e)
			continue
		}
		f.lane.settle(e.claim)
		if !stood[i] && !e.claim.maybeEnded && kind != lifecycle.OutcomeRelease && kind != lifecycle.OutcomeDefer {
			lost = append(lost, e.claim)
		}
		if kind == lifecycle.OutcomeForward && stood[i] && e.claim.lock() != "" {
			f.freeForwarded(ctx, e.claim)
		}
	}
	f.reportLost(lost)
	return nil
}

// callScript calls the script for endings of one kind. stood says which claims still belonged to this worker; again,
// which still do because they must end in another way; nil: none.
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
		// This must come first: if this process died in between, the report would outlast the task.
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

// waiting returns how many ends of claims Redis has not confirmed.
func (f *finisher) waiting() int {
	f.mu.Lock()
	n := len(f.pending)
	f.mu.Unlock()
	return n + f.done.undone(f.lane)
}

// freeForwarded frees the lock and the id of a task that was forwarded to another queue, whose workers cannot do so. If
// Redis does not answer, they expire.
func (f *finisher) freeForwarded(ctx context.Context, c *Claim) {
	if err := f.lane.store.FreeForwarded(ctx, c.msg.Meta.ID, c.lock()); err != nil {
		f.log.With("function", c.msg.Path).With("id", c.msg.Meta.ID).WithError(err).
			Warn("the lock of a forwarded task could not be freed; it lasts until it expires")
	}
}

// endOtherwise ends a claim in another way than e says, after Redis has answered that its task was cancelled, or that
// it was not.
func (f *finisher) endOtherwise(e *ending) {
	f.lane.noteUnsent([]*Claim{e.claim})
	again := ending{claim: e.claim, outcome: lifecycle.OutcomeRelease}
	if e.outcome == lifecycle.OutcomeCancel {
		f.lane.forgetRevoked(e.claim.msg.Meta.ID)
		e.claim.canceled.Store(false)
	} else {
		again = f.decider.lateCancellation(e.claim)
	}
	f.add(again)
}

// forgetReports removes from Redis the progress that the tasks have reported.
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
