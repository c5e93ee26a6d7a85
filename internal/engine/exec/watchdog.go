package exec

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/state"
)

const (
	// LongRun is how long a handler without a limit may run before it is logged.
	LongRun = 30 * time.Minute
	// shortestLook is the shortest time between two checks.
	shortestLook = 10 * time.Millisecond
	// MaxReports bounds how many handlers each check reports one by one.
	MaxReports = 10
)

// Watchdog looks for handlers that do not return. If a handler ignores the end of its context for too long, another
// executor replaces its own. The watchdog sleeps until a running handler could be stuck, so handlers that return in
// time cost it nothing.
type Watchdog struct {
	Exec      *Executors
	Limits    timeLimiter
	After     time.Duration // how long a handler may ignore the end of its context
	LongAfter time.Duration // longRun, but in tests
	Events    *events.Listeners
	Log       loop.Journal

	Reported map[*lane.Claim]bool // handlers that were reported; true: the executor was given up
	Fatal    *lane.StuckError     // why the watchdog has stopped the worker; written before the worker is stopped
}

// timeLimiter knows the time limits of handlers: the runner, but in tests.
type timeLimiter interface {
	TimeLimit(c *lane.Claim, ran time.Duration) time.Duration
}

// NewWatchdog returns a watchdog that replaces handlers which have ignored the end of their contexts for longer than
// after.
func NewWatchdog(e *Executors, r *Runner, after time.Duration) *Watchdog {
	return &Watchdog{
		Exec: e, Limits: r, After: after, LongAfter: LongRun, Events: r.Events, Log: r.Log,
		Reported: map[*lane.Claim]bool{},
	}
}

// Run checks the handlers until ctx ends.
func (d *Watchdog) Run(ctx context.Context) {
	for loop.Sleep(ctx, d.Check(time.Now())) {
	}
}

// overrun is a handler that runs for too long.
type overrun struct {
	claim *lane.Claim
	slot  int
	ran   time.Duration
	limit time.Duration // 0: none
}

// Check reports and replaces stuck handlers. It returns how long until another one could be stuck.
func (d *Watchdog) Check(now time.Time) (wait time.Duration) {
	// Handlers that start after this check have that time at least.
	wait = min(d.After, d.LongAfter)
	var found []overrun
	running := map[*lane.Claim]bool{}
	for i := range d.Exec.Slots {
		c := d.Exec.Slots[i].Load()
		if c == nil {
			continue
		}
		if _, known := d.Reported[c]; known {
			running[c] = true
			continue
		}
		l := overrun{claim: c, slot: i, ran: now.Sub(c.Started)}
		l.limit = d.Limits.TimeLimit(c, l.ran)
		end := d.LongAfter
		if l.limit > 0 {
			end = min(l.limit, math.MaxInt64-d.After) + d.After
		}
		if l.ran < end {
			wait = min(wait, end-l.ran)
			continue
		}
		found = append(found, l)
	}
	for c := range d.Reported {
		if !running[c] {
			delete(d.Reported, c)
		}
	}
	if len(found) > 0 {
		d.handleOverruns(found)
	}
	return max(wait, shortestLook)
}

// handleOverruns reports handlers that run for too long, and replaces those that ignore the end of their context.
func (d *Watchdog) handleOverruns(found []overrun) {
	slices.SortFunc(found, func(a, b overrun) int { return int(min(max(b.ran-a.ran, -1), 1)) })
	dump := child.DumpStacks()
	full := false
	for i, l := range found {
		var stuck, replaced bool
		if l.limit > 0 {
			stuck, replaced = d.Exec.Replace(l.slot, l.claim)
		} else {
			stuck = d.Exec.Slots[l.slot].Load() == l.claim
		}
		if !stuck {
			continue // it has just returned
		}
		d.Reported[l.claim] = l.limit > 0
		full = full || l.limit > 0 && !replaced
		if i < MaxReports {
			d.report(l, replaced, child.StackIn(dump, d.Exec.goroutines[l.slot].Load()))
		}
	}
	if more := len(found) - MaxReports; more > 0 {
		d.Log.WithField("handlers", more).Error("more stuck handlers, not listed")
	}
	if full && d.Fatal == nil {
		d.tooManyStuck()
	}
}

// report logs one handler and emits an event.
func (d *Watchdog) report(l overrun, replaced bool, stack string) {
	c := l.claim
	log := c.Log(d.Log).With("ran", l.ran.Round(time.Millisecond).String())
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
	d.Events.EmitFor(c, events.Event{Kind: event.TaskStuck, Duration: l.ran, Reason: reason})
}

// tooManyStuck stops the worker because no spare executor is left.
func (d *Watchdog) tooManyStuck() {
	d.Fatal = &lane.StuckError{}
	for c, stuck := range d.Reported {
		if stuck {
			d.Fatal.Funcs = append(d.Fatal.Funcs, c.Fn.Path())
			d.Fatal.IDs = append(d.Fatal.IDs, c.Msg.Meta.ID)
		}
	}
	d.Log.WithError(d.Fatal).
		Error("too many handlers are stuck; the worker stops, so that the process can be restarted")
	d.Exec.Worker.StopFor(state.StopStuck)
}
