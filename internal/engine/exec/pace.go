package exec

import "time"

const (
	// paceTime is how much work a worker claims ahead: as much as its executors do in that time. It covers several
	// round trips to Redis. It is so short that it hardly delays a task that another worker could have started at once.
	paceTime = 5 * time.Millisecond
	// MaxAhead bounds how many tasks a worker claims ahead, however short they are. More gained nothing when measured.
	MaxAhead = 800
	// MaxAheadPerCall bounds how many tasks one call claims ahead. Measured: in calls of several hundred, Redis takes
	// longer for each task.
	MaxAheadPerCall = 200
	// paceWindow is the shortest time over which pace measures handlers.
	paceWindow = time.Millisecond
	// OverdueTime is how long a task that was claimed ahead waits while all executors are busy. Then the worker gives
	// it back.
	OverdueTime = 20 * time.Millisecond
)

// pace measures how long handlers take and decides how many tasks to claim ahead: many short ones, so that no executor
// waits for Redis, and no long ones, which another worker could start. It is not safe for concurrent use.
type pace struct {
	fixed int // tasks to claim ahead; negative: measure

	Mean       time.Duration // of recent handlers; 0: unknown
	took       time.Duration // total time of handlers since the last measurement
	runs       int           // number of these handlers
	MeasuredAt time.Time
	Found      int // result of the last measurement
}

// add notes how long a handler took.
func (p *pace) add(took time.Duration) {
	p.took += took
	p.runs++
}

// ahead returns how many tasks to claim beyond those that n executors can start at once.
func (p *pace) ahead(n int, now time.Time) int {
	if p.fixed >= 0 {
		return p.fixed
	}
	if p.runs == 0 || now.Sub(p.MeasuredAt) < paceWindow {
		return p.Found
	}
	mean := max(p.took/time.Duration(p.runs), 1)
	if p.Mean == 0 || mean > p.Mean {
		p.Mean = mean // handlers take longer now: believe it at once
	} else {
		p.Mean = (p.Mean + mean) / 2
	}
	p.took, p.runs, p.MeasuredAt = 0, 0, now
	p.Found = int(min(time.Duration(n)*paceTime/p.Mean, MaxAhead))
	return p.Found
}

// stall forgets the measurements, because tasks that were claimed ahead have waited for too long.
func (p *pace) stall(now time.Time) {
	p.Mean, p.Found, p.took, p.runs, p.MeasuredAt = 0, 0, 0, 0, now
}
