package delayed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is how a claim ends. The set is closed.
type outcome uint8

const (
	outcomeAck     outcome = iota // done
	outcomeRetry                  // failed, to be tried again
	outcomeArchive                // failed for good
	outcomePark                   // not for this worker
	outcomeRelease                // given back unchanged
	outcomeDefer                  // given back unchanged, to the end of the queue
	outcomeForward                // handed on to the queue for Python tasks
	outcomes                      // their number
)

// ending is a claim whose end Redis must be told.
type ending struct {
	claim   *claim
	outcome outcome
	failed  bool          // archived after a failed run, not because it could not run
	wait    time.Duration // until it is due or expires
	id      string        // to file it under
	message []byte        // as it goes on
	info    []byte
	unclear bool     // a call for it got no reply, or an error as one
	told    *receipt // who waits for Redis's answer; may be nil
}

// receipt is closed once Redis has answered for a number of endings.
type receipt struct {
	left atomic.Int64
	done chan struct{}
}

func newReceipt(n int) *receipt {
	r := &receipt{done: make(chan struct{})}
	r.left.Store(int64(n))
	return r
}

func (r *receipt) tick() {
	if r.left.Add(-1) == 0 {
		close(r.done)
	}
}

// finisher tells Redis how the claims of one lane ended, in batches, again and again until Redis answers.
type finisher struct {
	lane    *lane
	log     journal
	forward *store // of the queue for Python tasks; nil: none

	trouble complaints

	mu      sync.Mutex // protects the following
	pending []ending
	lost    int           // claims found lost that the day's counters lack
	signal  chan struct{} // holds an element while pending may be non-empty
	done    chan struct{}
}

func newFinisher(l *lane, log journal, forward *store) *finisher {
	return &finisher{lane: l, log: log, forward: forward, signal: make(chan struct{}, 1), done: make(chan struct{})}
}

// add hands over endings. It never blocks.
func (f *finisher) add(endings ...ending) {
	f.mu.Lock()
	f.pending = append(f.pending, endings...)
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
	case f.signal <- struct{}{}:
	default:
	}
}

// run works until stop ends and nothing is pending, or until abandon ends.
func (f *finisher) run(stop, abandon context.Context) {
	defer close(f.done)
	var wait backoff
	for {
		f.mu.Lock()
		endings, lost := f.pending, f.lost
		f.pending, f.lost = nil, 0
		f.mu.Unlock()
		if len(endings) > 0 || lost > 0 {
			left := f.flush(endings, lost) //nolint:contextcheck // see there
			if len(left) == 0 {
				wait.reset()
				continue
			}
			f.mu.Lock()
			f.pending = append(left, f.pending...)
			f.mu.Unlock()
			if !sleep(abandon, wait.next()) {
				return
			}
			continue
		}
		select {
		case <-f.signal:
		case <-stop.Done():
			f.mu.Lock()
			idle := len(f.pending) == 0
			f.mu.Unlock()
			if idle {
				return
			}
		}
	}
}

// flush tells Redis about endings and returns those it did not answer for. It is not cut off when the worker stops: an answer
// that arrives late is better than a task that runs again.
func (f *finisher) flush(endings []ending, lost int) (left []ending) {
	ctx := context.Background()
	if lost > 0 {
		if _, err := f.lane.store.ack(ctx, f.lane.worker, nil, nil, lost); err != nil {
			f.log.trouble(&f.trouble, "cannot count lost claims", err)
		}
	}
	var sorted [outcomes][]ending
	for _, e := range endings {
		sorted[e.outcome] = append(sorted[e.outcome], e)
	}
	for kind, group := range sorted {
		size := maxTokens
		switch outcome(kind) {
		case outcomeRetry, outcomeArchive, outcomePark:
			size = maxShelved
		default:
		}
		if kind == int(outcomeRelease) {
			// The last go back first, as each call puts its tasks in front of all others.
			for len(group) > 0 {
				n := fitting(len(group), size, func(i int) *ending { return &group[len(group)-1-i] })
				left = append(left, f.tell(ctx, outcomeRelease, group[len(group)-n:])...)
				group = group[:len(group)-n]
			}
		}
		for len(group) > 0 {
			n := min(size, len(group))
			if outcome(kind) != outcomeAck {
				n = fitting(len(group), size, func(i int) *ending { return &group[i] })
			}
			if outcome(kind) == outcomeArchive {
				n = sameFailed(group[:n])
			}
			left = append(left, f.tell(ctx, outcome(kind), group[:n])...)
			group = group[n:]
		}
	}
	return left
}

// fitting returns how many of n endings, at most size, go into one call that moves their messages: it must neither stop Redis for
// long nor take longer than callTimeout on a slow line, or it would be repeated for ever.
func fitting(n, size int, at func(int) *ending) (fit int) {
	bytes := 0
	for fit < min(n, size) {
		bytes += len(at(fit).claim.raw)
		if fit > 0 && bytes > maxClaimBytes {
			break
		}
		fit++
	}
	return fit
}

// sameFailed returns how many of the first endings have failed alike: they share one call, as its counters hold for all.
func sameFailed(group []ending) int {
	n := 1
	for n < len(group) && group[n].failed == group[0].failed {
		n++
	}
	return n
}

// tell makes one call for endings of one kind and returns them if there was no answer.
func (f *finisher) tell(ctx context.Context, kind outcome, group []ending) (left []ending) {
	stood, err := f.call(ctx, kind, group)
	if err != nil {
		f.log.trouble(&f.trouble, "cannot tell Redis how tasks ended; trying again", err)
		for i := range group {
			group[i].unclear = group[i].unclear || mayHaveRun(err)
		}
		return group
	}
	f.log.relief(&f.trouble, "Redis has been told how tasks ended")
	lost := 0
	for i := range group {
		e := &group[i]
		f.lane.settle(e.claim)
		if !stood[i] && !e.unclear && kind != outcomeRelease && kind != outcomeDefer {
			lost++
			f.log.with("function", e.claim.msg.Path).with("id", e.claim.msg.Meta.ID).
				Warn("claim was lost before the task ended: another worker may run it again")
		}
		if e.told != nil {
			e.told.tick()
		}
	}
	if lost > 0 {
		f.countLost(lost)
	}
	return nil
}

// call picks the script.
func (f *finisher) call(ctx context.Context, kind outcome, group []ending) ([]bool, error) {
	s, worker, batches := f.lane.store, f.lane.worker, f.lane.finished(group)
	switch kind {
	case outcomeAck:
		return s.ack(ctx, worker, batches, tokensOf(group), 0)
	case outcomeRetry:
		return s.shelve(ctx, worker, batches, shelfRetry, 0, []string{"processed", "failed", "retried"}, shelvedOf(group))
	case outcomeArchive:
		counters := []string{"archived"}
		if group[0].failed {
			counters = []string{"processed", "failed", "archived"}
		}
		return s.shelve(ctx, worker, batches, shelfArchived, archivedMost, counters, shelvedOf(group))
	case outcomePark:
		return s.shelve(ctx, worker, batches, shelfParked, 0, []string{"parked"}, shelvedOf(group))
	case outcomeForward:
		return s.release(ctx, worker, batches, tokensOf(group), f.forward, false)
	case outcomeDefer:
		return s.release(ctx, worker, batches, tokensOf(group), s, false)
	default:
		return s.release(ctx, worker, batches, tokensOf(group), s, true)
	}
}

// waiting returns how many endings Redis has not answered for.
func (f *finisher) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pending)
}

func tokensOf(group []ending) []string {
	tokens := make([]string, len(group))
	for i := range group {
		tokens[i] = group[i].claim.token
	}
	return tokens
}

func shelvedOf(group []ending) []shelved {
	tasks := make([]shelved, len(group))
	for i := range group {
		e := &group[i]
		tasks[i] = shelved{token: e.claim.token, id: e.id, wait: e.wait, message: e.message, info: e.info}
	}
	return tasks
}
