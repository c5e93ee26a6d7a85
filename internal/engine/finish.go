package engine

import (
	"context"
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Outcome is how a claim ends other than by being done. The set is closed.
type Outcome uint8

const (
	OutcomeRetry    Outcome = iota // failed, to be tried again
	OutcomeArchive                 // failed for good
	OutcomeSnooze                  // not failed, to run again later
	OutcomePark                    // not for this worker
	OutcomeRelease                 // given back unchanged
	OutcomeDefer                   // given back unchanged, to the end of the queue's suspects
	outcomeForward                 // handed on to the queue for Python tasks
	OutcomeComplete                // succeeded, and more is to be done than to acknowledge it
	outcomeGather                  // was scheduled, and is to be gathered in a group
	outcomeCancel                  // cancelled
	Outcomes                       // their number
)

// Tally says how an ending is counted beside the set that its task is filed in.
type Tally uint8

const (
	TallyNone    Tally = iota // it is not
	TallyFailed               // as processed and failed
	TallyExpired              // as expired
)

// counters returns the counters of the day that an ending raises which files its task: set is that of the set.
func (t Tally) counters(set string) []string {
	switch t {
	case TallyFailed:
		return []string{"processed", "failed", set}
	case TallyExpired:
		return []string{"expired", set}
	case TallyNone:
	}
	return []string{set}
}

// Ending is a claim whose end Redis must be told.
type Ending struct {
	Claim   *Claim
	Outcome Outcome
	Tally   Tally         // how it is counted
	Wait    time.Duration // until it is due or expires; 0 if it is completed and nothing is kept
	ID      string        // to file it under
	Message []byte        // as it goes on; none: as it was claimed
	Info    []byte        // what is to be known of it then
	reason  string        // for listeners
	certain bool          // cancelled, whatever Redis knows of it
}

// finisher tells Redis how the claims of one lane ended, in batches, again and again until Redis answers.
type finisher struct {
	lane *Lane
	Exec *Executors
	log  loop.Journal
	// archiveMost and archiveKeep bound the archive.
	archiveMost int
	archiveKeep time.Duration
	forward     *redisstore.Store // of the queue for Python tasks; nil: none
	// canceled is the ending of a claim whose task turns out to be cancelled.
	canceled func(*Claim) Ending

	trouble loop.Complaints

	mu      sync.Mutex // protects the following
	Pending []Ending
	Lost    int           // claims found lost that the day's counters lack
	Signal  chan struct{} // holds an element while pending may be non-empty
	done    chan struct{}
}

func NewFinisher(l *Lane, log loop.Journal, forward *redisstore.Store) *finisher {
	return &finisher{
		lane: l, log: log, forward: forward, archiveMost: lifecycle.MaxArchived, archiveKeep: lifecycle.ArchivedLife,
		Signal: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Add hands over endings. It never blocks.
func (f *finisher) Add(endings ...Ending) {
	f.mu.Lock()
	f.Pending = append(f.Pending, endings...)
	f.mu.Unlock()
	f.wake()
}

// CountLost has lost claims counted.
func (f *finisher) CountLost(n int) {
	f.mu.Lock()
	f.Lost += n
	f.mu.Unlock()
	f.wake()
}

func (f *finisher) wake() {
	select {
	case f.Signal <- struct{}{}:
	default:
	}
}

// run works until stop ends and nothing is left to tell, or until abandon ends.
func (f *finisher) run(stop, abandon context.Context) {
	defer close(f.done)
	var wait loop.Backoff
	for {
		worked, ok := f.Work() //nolint:contextcheck // see flush
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
		case <-f.Signal:
		case <-stop.Done():
			if f.waiting() == 0 {
				return
			}
		}
	}
}

// Work tells Redis what there is to tell. ok is false if Redis has not answered for all of it.
func (f *finisher) Work() (worked, ok bool) {
	f.mu.Lock()
	endings, lost := f.Pending, f.Lost
	f.Pending, f.Lost = nil, 0
	f.mu.Unlock()
	done := f.Exec.TakeDone(f.lane)
	if len(endings) == 0 && len(done) == 0 && lost == 0 {
		return false, true
	}
	ok = f.Ack(done, lost)
	if left := f.Flush(endings); len(left) > 0 {
		f.mu.Lock()
		f.Pending = append(left, f.Pending...)
		f.mu.Unlock()
		ok = false
	}
	return true, ok
}

// Ack acknowledges claims that are done and has lost ones counted. The call is not cut off when the worker stops: an
// answer that arrives late is better than a task that runs again.
func (f *finisher) Ack(done []*Claim, lost int) bool {
	done, e := f.lane.Ending(done)
	if len(done) == 0 && lost == 0 {
		return true
	}
	stood, err := f.lane.Store.Ack(context.Background(), f.lane.worker, e, lost)
	if err != nil {
		f.log.Trouble(&f.trouble, "cannot tell Redis how tasks ended; trying again", err)
		f.unanswered(done, err)
		if !redisstore.MayHaveRun(err) {
			f.CountLost(lost)
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
		if stood != nil && !stood[i] && !c.Unclear {
			lost++
			f.tooLate(c)
		}
	}
	f.lane.Settle(done...)
	if lost > 0 {
		f.CountLost(lost)
	}
}

// unanswered puts claims back that are done and of which Redis could not be told.
func (f *finisher) unanswered(done []*Claim, err error) {
	if len(done) == 0 {
		return
	}
	for _, c := range done {
		c.Unclear = c.Unclear || redisstore.MayHaveRun(err)
	}
	f.lane.Reopen(done)
	f.Exec.PutDone(f.lane, done)
	f.wake()
}

func (f *finisher) tooLate(c *Claim) {
	f.lane.owner.tell(c, Event{Kind: KindTaskLost})
	f.log.With("function", c.Msg.Path).With("id", c.Msg.Meta.ID).
		Warn("claim was lost before the task ended: another worker may run it again")
}

// Flush tells Redis about endings and returns those it did not answer for.
func (f *finisher) Flush(endings []Ending) (left []Ending) {
	ctx := context.Background() // as in ack
	var sorted [Outcomes][]Ending
	for _, e := range endings {
		sorted[e.Outcome] = append(sorted[e.Outcome], e)
	}
	for kind, group := range sorted {
		size := redisstore.MaxTokens
		switch Outcome(kind) {
		case OutcomeRetry, OutcomeSnooze, OutcomeArchive, OutcomePark, OutcomeComplete, outcomeCancel:
			size = redisstore.MaxShelved
		default:
		}
		if kind == int(OutcomeRelease) {
			// The last go back first, as each call puts its tasks in front of all others.
			for len(group) > 0 {
				n := fitting(len(group), size, func(i int) *Ending { return &group[len(group)-1-i] })
				left = append(left, f.tell(ctx, OutcomeRelease, group[len(group)-n:])...)
				group = group[:len(group)-n]
			}
		}
		for len(group) > 0 {
			n := fitting(len(group), size, func(i int) *Ending { return &group[i] })
			n = sameTally(group[:n])
			if Outcome(kind) == outcomeGather {
				n = sameGroup(group[:n])
			}
			left = append(left, f.tell(ctx, Outcome(kind), group[:n])...)
			group = group[n:]
		}
	}
	return left
}

// fitting returns how many of n endings, at most size, go into one call that moves their messages: it must neither stop
// Redis for long nor take longer than redisstore.CallTimeout on a slow line, or it would be repeated for ever.
func fitting(n, size int, at func(int) *Ending) (fit int) {
	bytes := 0
	for fit < min(n, size) {
		bytes += len(at(fit).Claim.Raw) + at(fit).Claim.large() + len(at(fit).Info)
		if fit > 0 && bytes > redisstore.MaxClaimBytes {
			break
		}
		fit++
	}
	return fit
}

// sameTally returns how many of the first endings are counted alike: they share one call, as its counters hold for all.
func sameTally(group []Ending) int {
	n := 1
	for n < len(group) && group[n].Tally == group[0].Tally {
		n++
	}
	return n
}

// tell makes one call for endings of one kind and returns them if there was no answer.
func (f *finisher) tell(ctx context.Context, kind Outcome, group []Ending) (left []Ending) {
	claims := make([]*Claim, len(group))
	for i := range group {
		claims[i] = group[i].Claim
	}
	stood, again, err := f.call(ctx, kind, claims, group)
	if err != nil {
		f.log.Trouble(&f.trouble, "cannot tell Redis how tasks ended; trying again", err)
		f.lane.Reopen(claims)
		for _, c := range claims {
			c.Unclear = c.Unclear || redisstore.MayHaveRun(err)
		}
		return group
	}
	f.log.Relief(&f.trouble, "Redis has been told how tasks ended")
	lost := 0
	for i := range group {
		e := &group[i]
		if again != nil && again[i] {
			f.endAgain(e)
			continue
		}
		f.lane.Settle(e.Claim)
		if !stood[i] && !e.Claim.Unclear && kind != OutcomeRelease && kind != OutcomeDefer {
			lost++
			f.tooLate(e.Claim)
		}
		if kind == outcomeForward && stood[i] && e.Claim.Held() {
			f.disown(ctx, e.Claim)
		}
	}
	if lost > 0 {
		f.CountLost(lost)
	}
	return nil
}

// call picks the script. again says which claims still stand and must end in another way, nil for none.
func (f *finisher) call(
	ctx context.Context, kind Outcome, claims []*Claim, group []Ending,
) (stood, again []bool, err error) {
	s, worker, batches := f.lane.Store, f.lane.worker, f.lane.finished(claims)
	tokens := make([]string, len(claims))
	for i, c := range claims {
		tokens[i] = c.Token
	}
	if kind != OutcomeComplete && kind != outcomeCancel {
		// First, or what it has reported would outlast the task if this process died in between.
		if err := forgetReports(ctx, group); err != nil {
			return nil, nil, err
		}
	}
	switch kind {
	case OutcomeRetry:
		return s.Shelve(ctx, worker, batches, redisstore.ShelfRetry, 0, group[0].Tally.counters("retried"),
			shelvedOf(group))
	case OutcomeArchive:
		for i := range group {
			group[i].Wait = f.archiveKeep
		}
		return s.Shelve(ctx, worker, batches, redisstore.ShelfArchived, f.archiveMost,
			group[0].Tally.counters("archived"),
			shelvedOf(group))
	case OutcomeSnooze:
		return s.Shelve(ctx, worker, batches, redisstore.ShelfScheduled, 0, []string{"snoozed"}, shelvedOf(group))
	case OutcomePark:
		return s.Shelve(ctx, worker, batches, redisstore.ShelfParked, 0, []string{"parked"}, shelvedOf(group))
	case outcomeCancel:
		return s.Annul(ctx, worker, batches, annulledOf(group))
	case OutcomeComplete:
		stood, err = s.Complete(ctx, worker, batches, completedOf(group))
	case outcomeGather:
		stood, err = s.Join(ctx, worker, batches, tokens, membersOf(group))
	case outcomeForward:
		stood, err = s.Release(ctx, worker, batches, tokens, f.forward, false)
	case OutcomeDefer:
		stood, err = s.Release(ctx, worker, batches, tokens, f.lane.suspects, false)
	default:
		stood, err = s.Release(ctx, worker, batches, tokens, s, true)
	}
	return stood, nil, err
}

// waiting returns how many endings Redis has not answered for.
func (f *finisher) waiting() int {
	f.mu.Lock()
	n := len(f.Pending)
	f.mu.Unlock()
	f.Exec.Mu.Lock()
	defer f.Exec.Mu.Unlock()
	return n + len(f.lane.Done)
}

func shelvedOf(group []Ending) []redisstore.Shelved {
	tasks := make([]redisstore.Shelved, len(group))
	for i := range group {
		e := &group[i]
		tasks[i] = redisstore.Shelved{
			Token: e.Claim.Token, ID: e.ID, Wait: e.Wait, Message: e.Message, Info: e.Info,
			Path: e.Claim.Msg.Path,
		}
		tasks[i].Awaited = e.Outcome == OutcomeArchive && e.Claim.Msg.Meta.Extra.Keeps()
	}
	return tasks
}

// membersOf are the claimed tasks of endings that join a group.
func membersOf(endings []Ending) []group.Member {
	members := make([]group.Member, len(endings))
	for i := range endings {
		members[i], _ = group.NewMember(endings[i].Claim.Raw) // which it was when the ending was made
	}
	return members
}

// sameGroup returns how many of the first endings join the same group.
func sameGroup(group []Ending) int {
	n := 1
	for n < len(group) && group[n].ID == group[0].ID {
		n++
	}
	return n
}
