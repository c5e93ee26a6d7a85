package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
)

// ending is a claim whose end Redis must be told.
type ending struct {
	claim   *Claim
	outcome lifecycle.Outcome
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
