package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/state"
)

// ending says how a claim ends. A finisher sends it to Redis.
type ending struct {
	claim   *Claim
	outcome lifecycle.Outcome
	wait    time.Duration // until the task is due or expires; 0: it is completed and nothing is kept
	id      string        // under which the task is filed
	message []byte        // the message as it is filed; nil: as it was claimed
	info    []byte        // what is kept of the task
	reason  state.Reason  // for listeners
	certain bool          // the task counts as cancelled, even if Redis does not know that it was
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
