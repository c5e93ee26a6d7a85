package engine

import "time"

// outcome is how a claim ends other than by being done. The set is closed.
type outcome uint8

const (
	outcomeRetry    outcome = iota // failed, to be tried again
	outcomeArchive                 // failed for good
	outcomeSnooze                  // not failed, to run again later
	outcomePark                    // not for this worker
	outcomeRelease                 // given back unchanged
	outcomeDefer                   // given back unchanged, to the end of the queue's suspects
	outcomeForward                 // handed on to the queue for Python tasks
	outcomeComplete                // succeeded, and more is to be done than to acknowledge it
	outcomeGather                  // was scheduled, and is to be gathered in a group
	outcomeCancel                  // cancelled
	outcomes                       // their number
)

// tally says how an ending is counted beside the set that its task is filed in.
type tally uint8

const (
	tallyNone    tally = iota // it is not
	tallyFailed               // as processed and failed
	tallyExpired              // as expired
)

// counters returns the counters of the day that an ending raises which files its task: set is that of the set.
func (t tally) counters(set string) []string {
	switch t {
	case tallyFailed:
		return []string{"processed", "failed", set}
	case tallyExpired:
		return []string{"expired", set}
	case tallyNone:
	}
	return []string{set}
}

// ending is a claim whose end Redis must be told.
type ending struct {
	claim   *Claim
	outcome outcome
	tally   tally         // how it is counted
	wait    time.Duration // until it is due or expires; 0 if it is completed and nothing is kept
	id      string        // to file it under
	message []byte        // as it goes on; none: as it was claimed
	info    []byte        // what is to be known of it then
	reason  string        // for listeners
	certain bool          // cancelled, whatever Redis knows of it
}

// giveBack releases claims whose tasks have not started.
func giveBack(claims []*Claim) {
	if len(claims) == 0 {
		return
	}
	byLane := map[*lane][]*Claim{}
	for _, c := range claims {
		byLane[c.lane] = append(byLane[c.lane], c)
	}
	for l, its := range byLane {
		l.ends.release(its)
	}
}
