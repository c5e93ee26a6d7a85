package exec

import (
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/wire"
)

// MaxTallied is how many seconds a tally keeps apart. While Redis is away, all later ones count as the last.
const MaxTallied = 30

// Tally counts the tasks of one lane that have run, by second and function, until a heartbeat writes
// them to Redis. Executors.Mu protects it. The zero value is empty.
type Tally struct {
	seconds []TalliedSecond

	// The counts to which the last task was added, because the next one is often of the same function.
	fn   *function.Function
	into *metrics.Sample
}

// TalliedSecond has the counts of one second, by function.
type TalliedSecond struct {
	At  int64 // s since 1970, by Redis's clock
	Fns map[*function.Function]*metrics.Sample
}

// Add counts a task whose handler has returned after it ran for took. skew is how far Redis's clock is ahead. A snoozed
// task does not count: a semaphore that turns tasks away would make the mean run as short as that takes, and an
// autoscaler would take a long queue for a short one.
func (t *Tally) Add(c *lane.Claim, took, skew time.Duration) {
	if !c.Ran || c.Outcome == lifecycle.OutcomeSnooze {
		return
	}
	began := c.Started.UnixMilli() + skew.Milliseconds()
	s := t.sampleOf(c.Fn, (began+took.Milliseconds())/1000)
	s.Runs++
	if c.Outcome.Failed() {
		s.Failed++
		if lifecycle.Ends[c.Outcome].To == lifecycle.StateArchived {
			s.Archived++
		}
	}
	s.Run.Add(took)
	if since := readySince(&c.Msg.Meta); since > 0 {
		s.Wait.Add(time.Duration(began-since) * time.Millisecond)
	}
}

// sampleOf returns the counts of a function in a second.
func (t *Tally) sampleOf(fn *function.Function, second int64) *metrics.Sample {
	n := len(t.seconds)
	if n == 0 || t.seconds[n-1].At < second && n < MaxTallied {
		t.seconds = append(t.seconds, TalliedSecond{second, map[*function.Function]*metrics.Sample{}})
		t.fn = nil
		n++
	}
	if fn != t.fn {
		fns := t.seconds[n-1].Fns
		if fns[fn] == nil {
			fns[fn] = new(metrics.Sample)
		}
		t.fn, t.into = fn, fns[fn]
	}
	return t.into
}

// Take removes and returns what was counted.
func (t *Tally) Take() []TalliedSecond {
	taken := t.seconds
	*t = Tally{}
	return taken
}

// readySince returns when a task could start for the first time since it was enqueued or tried, in ms since 1970; 0 if
// that is unknown.
func readySince(m *wire.Meta) int64 {
	if m.Extra != nil {
		return max(m.EnqueuedAt, m.Extra.Due)
	}
	return m.EnqueuedAt
}
