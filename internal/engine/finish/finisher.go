// Package finish ends claims: a Finisher sends to Redis how those of one lane ended, in batches, and repeats each call
// until Redis answers. The Decider says what becomes of a task whose handler has returned an error.
package finish

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Finisher reports the endings of one lane's claims to Redis, in batches. It repeats each call until Redis answers.
type Finisher struct {
	Lane    *lane.Lane
	Done    doneClaims
	decider *Decider
	log     loop.Journal
	// ArchiveMost and ArchiveKeep bound the number and the age of archived tasks.
	ArchiveMost int
	ArchiveKeep time.Duration
	Python      *redisstore.Store // the queue for Python tasks; nil: none

	trouble loop.Complaints

	Mu      sync.Mutex // protects the following
	Pending []lane.Ending
	Lost    int           // lost claims that the next acknowledgement adds to the counters of the day
	Wakes   chan struct{} // has an element if there may be something to report
}

// doneClaims has the claims that are done, and that no call has acknowledged yet: the executors.
type doneClaims interface {
	// AddLane gives a lane its index. wakes gets an element when the lane has done claims for its finisher.
	AddLane(l *lane.Lane, wakes chan<- struct{})
	// TakeDone removes and returns as many done claims of a lane as one call may acknowledge.
	TakeDone(l *lane.Lane) []*lane.Claim
	// PutDone puts claims back whose acknowledgement got no answer.
	PutDone(l *lane.Lane, claims []*lane.Claim)
	// Undone returns how many done claims of a lane no call has taken.
	Undone(l *lane.Lane) int
	// WakeFetcher makes the fetcher look again.
	WakeFetcher()
}

// New returns the finisher of a lane. It becomes l.ends, and acknowledges the done claims of the lane.
func New(l *lane.Lane, done doneClaims, d *Decider) *Finisher {
	f := &Finisher{
		Lane: l, Done: done, decider: d, log: d.Log.With("queue", l.Store.Name), Wakes: make(chan struct{}, 1),
	}
	l.Finisher = f
	done.AddLane(l, f.Wakes)
	return f
}

// Add adds an ending to those that are to be reported.
func (f *Finisher) Add(e lane.Ending) {
	f.Lane.Unconfirmed.Add(1)
	f.Mu.Lock()
	f.Pending = append(f.Pending, e)
	f.Mu.Unlock()
	f.wake()
}

// Confirmed subtracts n from the endings that Redis has not confirmed.
func (f *Finisher) Confirmed(n int) {
	wasBehind := f.Lane.Unconfirmed.Add(-int64(n))+int64(n) >= lane.MaxUnconfirmed
	if wasBehind && !f.Lane.Behind() {
		f.Done.WakeFetcher()
	}
}

// Release gives claims back unchanged. One call must take all of them: a second call would put its tasks in front of
// those of the first.
func (f *Finisher) Release(claims []*lane.Claim) {
	f.Lane.Unconfirmed.Add(int64(len(claims)))
	f.Mu.Lock()
	for _, c := range claims {
		f.Pending = append(f.Pending, lane.Ending{Claim: c, Outcome: lifecycle.OutcomeRelease})
	}
	f.Mu.Unlock()
	f.wake()
}

// CountLost publishes the loss of claims. The next acknowledgement adds them to the counters of the day.
func (f *Finisher) CountLost(claims []*lane.Claim) {
	for _, c := range claims {
		f.decider.Events.EmitFor(c, events.Event{Kind: event.TaskLost})
	}
	f.AddLost(len(claims))
}

// AddLost adds n lost claims to those that the next acknowledgement counts.
func (f *Finisher) AddLost(n int) {
	f.Mu.Lock()
	f.Lost += n
	f.Mu.Unlock()
	f.wake()
}

func (f *Finisher) wake() { loop.Poke(f.Wakes) }

// Run reports endings until stop ends and none is left, or until abandon ends.
func (f *Finisher) Run(stop, abandon context.Context) {
	var wait loop.Backoff
	for {
		worked, ok := f.Publish() //nolint:contextcheck // see ack
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
		case <-f.Wakes:
		case <-stop.Done():
			if f.Waiting() == 0 {
				return
			}
		}
	}
}

// Publish reports once all that has ended so far. worked is false if that is nothing; ok is false if a call
// got no answer.
func (f *Finisher) Publish() (worked, ok bool) {
	f.Mu.Lock()
	endings, lost := f.Pending, f.Lost
	f.Pending, f.Lost = nil, 0
	f.Mu.Unlock()
	done := f.Done.TakeDone(f.Lane)
	if len(endings) == 0 && len(done) == 0 && lost == 0 {
		return false, true
	}
	err := f.Ack(done, lost)
	left, answered := endings, err == nil || answer.Is(err)
	if answered {
		left, answered = f.Flush(endings)
	}
	f.Mu.Lock()
	f.Pending = append(left, f.Pending...)
	f.Mu.Unlock()
	ok = err == nil && len(left) == 0
	f.Lane.EndingsRefused.Store(answered && !ok)
	return true, ok
}

// Ack acknowledges done claims and reports the number of lost ones. The call is not canceled when the worker stops:
// without it, the tasks would run again.
func (f *Finisher) Ack(done []*lane.Claim, lost int) error {
	done, e := f.Lane.PrepareAcks(done)
	if len(done) == 0 && lost == 0 {
		return nil
	}
	stood, err := f.Lane.Store.Ack(context.Background(), f.Lane.Worker, e, lost)
	if err != nil {
		f.log.Trouble(&f.trouble, "cannot report ended tasks to Redis; trying again", err)
		f.AckFailed(done, err)
		if !redisstore.MayHaveRun(err) {
			f.AddLost(lost)
		}
		return err
	}
	f.Acknowledged(done, stood)
	return nil
}

// Acknowledged settles claims that Redis has acknowledged. stood says which of them still belonged to this worker; nil:
// all.
func (f *Finisher) Acknowledged(done []*lane.Claim, stood []bool) {
	if len(done) == 0 {
		return
	}
	f.log.Relief(&f.trouble, "reporting ended tasks again")
	var lost []*lane.Claim
	for i, c := range done {
		if stood != nil && !stood[i] && !c.MaybeEnded {
			lost = append(lost, c)
		}
	}
	f.Lane.Settle(done...)
	f.reportLost(lost)
}

// AckFailed takes back claims whose acknowledgement got no answer, to send it again.
func (f *Finisher) AckFailed(done []*lane.Claim, err error) {
	if len(done) == 0 {
		return
	}
	for _, c := range done {
		c.MaybeEnded = c.MaybeEnded || redisstore.MayHaveRun(err)
	}
	f.Lane.NoteUnsent(done)
	f.Done.PutDone(f.Lane, done)
	f.wake()
}

// reportLost logs and counts claims that were lost before Redis knew how their tasks had ended.
func (f *Finisher) reportLost(claims []*lane.Claim) {
	if len(claims) == 0 {
		return
	}
	for _, c := range claims {
		c.Log(f.log).Warn("claim was lost before the task ended: another worker may run it again")
	}
	f.CountLost(claims)
}

// Flush sends endings and returns those that Redis has not confirmed. It makes no more calls after one that Redis did
// not answer: a worker that stops could not wait for all of them.
func (f *Finisher) Flush(endings []lane.Ending) (left []lane.Ending, answered bool) {
	ctx := context.Background() // as in ack
	var sorted [lifecycle.Outcomes][]lane.Ending
	for _, e := range endings {
		sorted[e.Outcome] = append(sorted[e.Outcome], e)
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
		case "shelve", "complete":
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
// call to be made. It returns the parts without an answer, in their order; answered is false if it did not answer
// a call.
func (f *Finisher) sendAll(
	ctx context.Context, kind lifecycle.Outcome, parts [][]lane.Ending, atOnce int,
) (unsent [][]lane.Ending, answered bool) {
	unsent, errs := make([][]lane.Ending, len(parts)), make([]error, len(parts))
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
func (f *Finisher) send(ctx context.Context, kind lifecycle.Outcome, group []lane.Ending) error {
	claims := make([]*lane.Claim, len(group))
	for i := range group {
		claims[i] = group[i].Claim
	}
	stood, again, err := f.callScript(ctx, kind, claims, group)
	if err != nil {
		f.log.Trouble(&f.trouble, "cannot report ended tasks to Redis; trying again", err)
		f.Lane.NoteUnsent(claims)
		for _, c := range claims {
			c.MaybeEnded = c.MaybeEnded || redisstore.MayHaveRun(err)
		}
		return err
	}
	f.log.Relief(&f.trouble, "reporting ended tasks again")
	f.Confirmed(len(group))
	var lost []*lane.Claim
	for i := range group {
		e := &group[i]
		if again != nil && again[i] {
			f.endOtherwise(e)
			continue
		}
		f.Lane.Settle(e.Claim)
		if !stood[i] && !e.Claim.MaybeEnded && kind != lifecycle.OutcomeRelease && kind != lifecycle.OutcomeDefer {
			lost = append(lost, e.Claim)
		}
		if kind == lifecycle.OutcomeForward && stood[i] && e.Claim.Lock() != "" {
			f.freeForwarded(ctx, e.Claim)
		}
	}
	f.reportLost(lost)
	return nil
}

// callScript calls the script for endings of one kind. stood says which claims still belonged to this worker; again,
// which still do because they must end in another way; nil: none.
func (f *Finisher) callScript(
	ctx context.Context, kind lifecycle.Outcome, claims []*lane.Claim, group []lane.Ending,
) (stood, again []bool, err error) {
	end := &lifecycle.Ends[kind]
	s, worker, batches := f.Lane.Store, f.Lane.Worker, f.Lane.NoteSent(claims)
	tokens := make([]string, len(claims))
	for i, c := range claims {
		tokens[i] = c.Token
	}
	if end.Script != "complete" {
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
			group[i].Wait = f.ArchiveKeep
		}
		return s.Shelve(ctx, worker, batches, redisstore.ShelfArchived, f.ArchiveMost, end.Counters, shelvedOf(group))
	case lifecycle.OutcomeSnooze:
		return s.Shelve(ctx, worker, batches, redisstore.ShelfScheduled, 0, end.Counters, shelvedOf(group))
	case lifecycle.OutcomePark:
		return s.Shelve(ctx, worker, batches, redisstore.ShelfParked, 0, end.Counters, shelvedOf(group))
	case lifecycle.OutcomeComplete, lifecycle.OutcomeDrop, lifecycle.OutcomeCancel:
		return s.Complete(ctx, worker, batches, completedOf(group))
	case lifecycle.OutcomeGather:
		stood, err = s.Join(ctx, worker, batches, tokens, membersOf(group))
	case lifecycle.OutcomeForward:
		stood, err = s.Release(ctx, worker, batches, tokens, f.Python, false)
	case lifecycle.OutcomeDefer:
		stood, err = s.Release(ctx, worker, batches, tokens, f.Lane.Suspects, false)
	default:
		stood, err = s.Release(ctx, worker, batches, tokens, s, true)
	}
	return stood, nil, err
}

// Waiting returns how many ends of claims Redis has not confirmed.
func (f *Finisher) Waiting() int {
	f.Mu.Lock()
	n := len(f.Pending)
	f.Mu.Unlock()
	return n + f.Done.Undone(f.Lane)
}

// freeForwarded frees the lock and the id of a task that was forwarded to another queue, whose workers cannot do so. If
// Redis does not answer, they expire.
func (f *Finisher) freeForwarded(ctx context.Context, c *lane.Claim) {
	if err := f.Lane.Store.FreeForwarded(ctx, c.Msg.Meta.ID, c.Lock()); err != nil {
		c.Log(f.log).WithError(err).Warn("the lock of a forwarded task could not be freed; it lasts until it expires")
	}
}

// endOtherwise ends a claim in another way than e says, after Redis has answered that its task was canceled, or that
// it was not.
func (f *Finisher) endOtherwise(e *lane.Ending) {
	f.Lane.NoteUnsent([]*lane.Claim{e.Claim})
	again := lane.Ending{Claim: e.Claim, Outcome: lifecycle.OutcomeRelease}
	if e.Outcome == lifecycle.OutcomeCancel {
		f.Lane.ForgetRevoked(e.Claim.Msg.Meta.ID)
		e.Claim.Canceled.Store(false)
	} else {
		again = f.decider.lateCancellation(e.Claim)
	}
	f.Add(again)
}

// forgetReports removes from Redis the progress that the tasks have reported.
func forgetReports(ctx context.Context, group []lane.Ending) error {
	for i := range group {
		c := group[i].Claim
		if c.Reporter.Load() == nil {
			continue
		}
		if _, err := c.Lane.Store.Progress(ctx, c.Lane.Worker, c.Token, c.Msg.Meta.ID, nil); err != nil {
			return err
		}
	}
	return nil
}
