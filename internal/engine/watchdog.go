package engine

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/state"
)

const (
	// longRun is after which time a handler without a time limit is reported.
	longRun = 30 * time.Minute
	// shortestLook is the shortest time between two checks.
	shortestLook = 10 * time.Millisecond
	// maxReports bounds how many handlers each check reports one by one.
	maxReports = 10
)

// watchdog looks for handlers that do not return. If a handler ignores the end of its context for too long, another
// executor replaces its own. The watchdog sleeps until a running handler could be stuck, so handlers that return in
// time cost it nothing.
type watchdog struct {
	exec      *executors
	limits    timeLimiter
	after     time.Duration // how long a handler may ignore the end of its context
	longAfter time.Duration // longRun, but in tests
	events    *listeners
	worker    stopper
	log       loop.Journal

	reported map[*Claim]bool // handlers that were reported; true: the executor was given up
	fatal    *StuckError     // why the watchdog has stopped the worker; written before the worker is stopped
}

// timeLimiter knows the time limits of handlers: the runner, but in tests.
type timeLimiter interface {
	timeLimit(c *Claim, ran time.Duration) time.Duration
}

func newWatchdog(
	exec *executors, limits timeLimiter, after time.Duration, events *listeners, worker stopper, log loop.Journal,
) *watchdog {
	return &watchdog{
		exec: exec, limits: limits, after: after, longAfter: longRun, events: events, worker: worker, log: log,
		reported: map[*Claim]bool{},
	}
}

// run checks the handlers until ctx ends.
func (d *watchdog) run(ctx context.Context) {
	for loop.Sleep(ctx, d.check(time.Now())) {
	}
}

// overrun is a handler that runs for too long.
type overrun struct {
	claim *Claim
	slot  int
	ran   time.Duration
	limit time.Duration // 0: none
}

// check reports and replaces stuck handlers. It returns how long until another one could be stuck.
func (d *watchdog) check(now time.Time) (wait time.Duration) {
	// Handlers that start after this check have that time at least.
	wait = min(d.after, d.longAfter)
	var found []overrun
	running := map[*Claim]bool{}
	for i := range d.exec.slots {
		c := d.exec.slots[i].Load()
		if c == nil {
			continue
		}
		if _, told := d.reported[c]; told {
			running[c] = true
			continue
		}
		l := overrun{claim: c, slot: i, ran: now.Sub(c.started)}
		l.limit = d.limits.timeLimit(c, l.ran)
		end := d.longAfter
		if l.limit > 0 {
			end = min(l.limit, math.MaxInt64-d.after) + d.after
		}
		if l.ran < end {
			wait = min(wait, end-l.ran)
			continue
		}
		found = append(found, l)
	}
	for c := range d.reported {
		if !running[c] {
			delete(d.reported, c)
		}
	}
	if len(found) > 0 {
		d.handleOverruns(found)
	}
	return max(wait, shortestLook)
}

// handleOverruns reports handlers that run for too long, and replaces those that ignore the end of their context.
func (d *watchdog) handleOverruns(found []overrun) {
	slices.SortFunc(found, func(a, b overrun) int { return int(min(max(b.ran-a.ran, -1), 1)) })
	dump := dumpStacks()
	full := false
	for i, l := range found {
		var stuck, replaced bool
		if l.limit > 0 {
			stuck, replaced = d.exec.replace(l.slot, l.claim)
		} else {
			stuck = d.exec.slots[l.slot].Load() == l.claim
		}
		if !stuck {
			continue // it has just returned
		}
		d.reported[l.claim] = l.limit > 0
		full = full || l.limit > 0 && !replaced
		if i < maxReports {
			d.report(l, replaced, stackIn(dump, d.exec.goroutines[l.slot].Load()))
		}
	}
	if more := len(found) - maxReports; more > 0 {
		d.log.WithField("handlers", more).Error("more handlers run for too long")
	}
	if full && d.fatal == nil {
		d.tooManyStuck()
	}
}

// report logs one handler and tells listeners.
func (d *watchdog) report(l overrun, replaced bool, stack string) {
	c := l.claim
	log := d.log.With("queue", c.lane.store.Name).With("function", c.msg.Path).With("id", c.msg.Meta.ID).With("ran",
		l.ran.Round(time.Millisecond).String())
	if stack != "" {
		log = log.With("stack", stack)
	}
	var reason state.Reason
	switch {
	case l.limit == 0:
		reason = state.StuckLong
		log.Warn("handler has been running for very long; if that is too long, give it a Timeout")
	case replaced:
		reason = state.StuckReplaced
		log.With("limit", l.limit.Round(time.Millisecond).String()).
			Error("handler is stuck: it ignores that its context has ended; another task may run in its place")
	default:
		reason = state.StuckGivenUp
		log.With("limit", l.limit.Round(time.Millisecond).String()).
			Error("handler is stuck: it ignores that its context has ended; too many handlers are stuck to go on")
	}
	d.events.emit(Event{Kind: event.TaskStuck, Queue: c.lane.store.Name, Claim: c, Duration: l.ran, Reason: reason})
}

// tooManyStuck stops the worker because no spare executor is left.
func (d *watchdog) tooManyStuck() {
	d.fatal = &StuckError{}
	for c, stuck := range d.reported {
		if stuck {
			d.fatal.Funcs = append(d.fatal.Funcs, c.fn.Path())
			d.fatal.IDs = append(d.fatal.IDs, c.msg.Meta.ID)
		}
	}
	d.log.WithError(d.fatal).
		Error("too many handlers are stuck; the worker stops, so that the process can be restarted")
	d.worker.stopFor(state.StopStuck)
}
