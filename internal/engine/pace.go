package engine

import "time"

const (
	// paceTime is how much work a worker claims ahead: what its executors do in that time. It covers a round trip to
	// Redis and back several times, and is short enough not to matter to a task that another worker could have begun at
	// once.
	paceTime = 5 * time.Millisecond
	// PaceMost bounds what is claimed ahead however short the handlers are. Measured: further tasks ahead gain nothing.
	PaceMost = 800
	// ClaimLot bounds what is claimed ahead by one call. Measured: calls of several hundred tasks cost Redis more for
	// each.
	ClaimLot = 200
	// paceWindow is the shortest time over which the length of handlers is taken.
	paceWindow = time.Millisecond
	// OverdueTime is how long a task that was claimed ahead waits while all executors are busy. Then it goes back for
	// others to take.
	OverdueTime = 20 * time.Millisecond
)

// Pace finds out how long handlers take, and from that how many tasks to claim ahead: many short ones, so that no
// executor waits for Redis; no long ones, as another worker could begin with them. It is not safe for concurrent use.
type Pace struct {
	Fixed int // tasks ahead, whatever the handlers take; negative: find out

	Mean   time.Duration // of recent handlers; 0: unknown
	spent  time.Duration // by handlers that ended since the last look
	ended  int           // their number
	Looked time.Time
	Most   int // what was found
}

// End notes that a handler has returned.
func (p *Pace) End(took time.Duration) {
	p.spent += took
	p.ended++
}

// Ahead returns how many tasks to claim beyond those that n executors can begin with at once.
func (p *Pace) Ahead(n int, now time.Time) int {
	if p.Fixed >= 0 {
		return p.Fixed
	}
	if p.ended == 0 || now.Sub(p.Looked) < paceWindow {
		return p.Most
	}
	mean := max(p.spent/time.Duration(p.ended), 1)
	if p.Mean == 0 || mean > p.Mean {
		p.Mean = mean // handlers have become longer: believe it at once
	} else {
		p.Mean = (p.Mean + mean) / 2
	}
	p.spent, p.ended, p.Looked = 0, 0, now
	p.Most = int(min(time.Duration(n)*paceTime/p.Mean, PaceMost))
	return p.Most
}

// Stall forgets what was found: tasks claimed ahead had to wait for too long.
func (p *Pace) Stall(now time.Time) {
	p.Mean, p.Most, p.spent, p.ended, p.Looked = 0, 0, 0, 0, now
}
