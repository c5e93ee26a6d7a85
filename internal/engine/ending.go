package engine

import "time"

// outcome is how a claim ends other than by being done. The set is closed.
type outcome uint8

// tally says how an ending is counted beside the set that its task is filed in.
type tally uint8

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
