package engine

import "time"

const (
	// paceTime is how much work a worker claims ahead: what its executors do in that time. It covers a round trip to
	// Redis and back several times, and is short enough not to matter to a task that another worker could have begun at
	// once.
	paceTime = 5 * time.Millisecond
	// maxAhead bounds what is claimed ahead however short the handlers are. Measured: further tasks ahead gain nothing.
	maxAhead = 800
	// maxAheadPerCall bounds what is claimed ahead by one call. Measured: calls of several hundred tasks cost Redis more for
	// each.
	maxAheadPerCall = 200
	// paceWindow is the shortest time over which the length of handlers is taken.
	paceWindow = time.Millisecond
	// overdueTime is how long a task that was claimed ahead waits while all executors are busy. Then it goes back for
	// others to take.
	overdueTime = 20 * time.Millisecond
)

// pace finds out how long handlers take, and from that how many tasks to claim ahead: many short ones, so that no
// executor waits for Redis; no long ones, as another worker could begin with them. It is not safe for concurrent use.
type pace struct {
	fixed int // tasks ahead, whatever the handlers take; negative: find out

	mean       time.Duration // of recent handlers; 0: unknown
	took       time.Duration // by handlers that ended since the last look
	runs       int           // their number
	measuredAt time.Time
	found      int // what was found
}

// add notes that a handler has returned.
func (p *pace) add(took time.Duration) {
	p.took += took
	p.runs++
}

// ahead returns how many tasks to claim beyond those that n executors can begin with at once.
func (p *pace) ahead(n int, now time.Time) int {
	if p.fixed >= 0 {
		return p.fixed
	}
	if p.runs == 0 || now.Sub(p.measuredAt) < paceWindow {
		return p.found
	}
	mean := max(p.took/time.Duration(p.runs), 1)
	if p.mean == 0 || mean > p.mean {
		p.mean = mean // handlers have become longer: believe it at once
	} else {
		p.mean = (p.mean + mean) / 2
	}
	p.took, p.runs, p.measuredAt = 0, 0, now
	p.found = int(min(time.Duration(n)*paceTime/p.mean, maxAhead))
	return p.found
}

// stall forgets what was found: tasks claimed ahead had to wait for too long.
func (p *pace) stall(now time.Time) {
	p.mean, p.found, p.took, p.runs, p.measuredAt = 0, 0, 0, 0, now
}
