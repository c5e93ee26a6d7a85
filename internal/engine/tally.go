package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/wire"
)

// maxTallied is how many seconds a tally keeps apart. While Redis cannot be told, all later ones count as the last.
const maxTallied = 30

// tally counts the tasks of one lane that have run, by second and function, until a heartbeat tells Redis.
// executors.mu protects it. The zero value is empty.
type tally struct {
	seconds []talliedSecond

	// The counts to which the last task was added, because the next one is often of the same function.
	fn   *function.Function
	into *metrics.Sample
}

type talliedSecond struct {
	at  int64 // s since 1970, by Redis's clock
	fns map[*function.Function]*metrics.Sample
}

// add counts a task whose handler has returned after it ran for took. skew is how far Redis's clock is ahead. A snoozed
// task does not count: a semaphore that turns tasks away would make the mean run as short as that takes, and an
// autoscaler would take a long queue for a short one.
func (t *tally) add(c *Claim, took, skew time.Duration) {
	if !c.ran || c.outcome == lifecycle.OutcomeSnooze {
		return
	}
	began := c.started.UnixMilli() + skew.Milliseconds()
	s := t.sampleOf(c.fn, (began+took.Milliseconds())/1000)
	s.Runs++
	if c.outcome.Failed() {
		s.Failed++
		if lifecycle.Ends[c.outcome].To == lifecycle.StateArchived {
			s.Archived++
		}
	}
	s.Run.Add(took)
	if since := readySince(&c.msg.Meta); since > 0 {
		s.Wait.Add(time.Duration(began-since) * time.Millisecond)
	}
}

// sampleOf returns the counts of a function in a second.
func (t *tally) sampleOf(fn *function.Function, second int64) *metrics.Sample {
	n := len(t.seconds)
	if n == 0 || t.seconds[n-1].at < second && n < maxTallied {
		t.seconds = append(t.seconds, talliedSecond{second, map[*function.Function]*metrics.Sample{}})
		t.fn = nil
		n++
	}
	if fn != t.fn {
		fns := t.seconds[n-1].fns
		if fns[fn] == nil {
			fns[fn] = new(metrics.Sample)
		}
		t.fn, t.into = fn, fns[fn]
	}
	return t.into
}

// take removes and returns what was counted.
func (t *tally) take() []talliedSecond {
	taken := t.seconds
	*t = tally{}
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
