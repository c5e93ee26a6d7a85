package engine

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/loop"
)

const (
	// LongRun is after which time a handler without a timeout is reported.
	LongRun = 30 * time.Minute
	// shortestLook is the shortest time between two looks at the handlers.
	shortestLook = 10 * time.Millisecond
	// MostReports bounds how many handlers are reported one by one at each look.
	MostReports = 10
)

// Watchdog looks for handlers that do not return: those that have ignored the end of their context for too long lose
// their executor to the tasks that wait. It sleeps until a handler that runs could be stuck, and costs those that end
// before nothing.
type Watchdog struct {
	Exec    *Executors
	Limit   func(c *Claim, ran time.Duration) time.Duration
	After   time.Duration // for how long a handler may ignore that its time is over
	LongRun time.Duration
	Emit    func(Event)
	Drain   func() // stops the worker
	Log     loop.Journal

	Told  map[*Claim]bool // that were reported; true: its executor was given up
	Fatal *StuckError     // why it has stopped the worker; written before drain is called
}

func newWatchdog(w *Worker) *Watchdog {
	return &Watchdog{
		Exec: w.Exec, Limit: w.Limit, After: w.Cfg.StuckAfter, LongRun: LongRun, Emit: w.Emit, Log: w.Log,
		Drain: func() { w.StopFor(StopStuck) }, Told: map[*Claim]bool{},
	}
}

// run looks at the handlers until ctx ends.
func (d *Watchdog) run(ctx context.Context) {
	for loop.Sleep(ctx, d.Look(time.Now())) {
	}
}

// late is a handler that runs for too long.
type late struct {
	claim *Claim
	slot  int
	ran   time.Duration
	limit time.Duration // 0: it has none
}

// Look reports and replaces handlers that are stuck, and returns how long nobody can be stuck who is not now.
func (d *Watchdog) Look(now time.Time) (wait time.Duration) {
	// Whoever starts after this look has that time at least.
	wait = min(d.After, d.LongRun)
	var found []late
	running := map[*Claim]bool{}
	for i := range d.Exec.Slots {
		c := d.Exec.Slots[i].Load()
		if c == nil {
			continue
		}
		if _, told := d.Told[c]; told {
			running[c] = true
			continue
		}
		l := late{claim: c, slot: i, ran: now.Sub(c.started)}
		l.limit = d.Limit(c, l.ran)
		end := d.LongRun
		if l.limit > 0 {
			end = min(l.limit, math.MaxInt64-d.After) + d.After
		}
		if l.ran < end {
			wait = min(wait, end-l.ran)
			continue
		}
		found = append(found, l)
	}
	for c := range d.Told {
		if !running[c] {
			delete(d.Told, c)
		}
	}
	if len(found) > 0 {
		d.handle(found)
	}
	return max(wait, shortestLook)
}

// handle sees to handlers that were found to run for too long.
func (d *Watchdog) handle(found []late) {
	slices.SortFunc(found, func(a, b late) int { return int(min(max(b.ran-a.ran, -1), 1)) })
	dump := DumpStacks()
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
		d.Told[l.claim] = l.limit > 0
		full = full || l.limit > 0 && !replaced
		if i < MostReports {
			d.report(l, replaced, StackIn(dump, d.Exec.goroutines[l.slot].Load()))
		}
	}
	if more := len(found) - MostReports; more > 0 {
		d.Log.WithField("handlers", more).Error("more handlers run for too long")
	}
	if full && d.Fatal == nil {
		d.giveUp()
	}
}

// report tells of one handler.
func (d *Watchdog) report(l late, replaced bool, stack string) {
	c := l.claim
	log := d.Log.With("queue", c.Lane.Store.Name).With("function", c.Msg.Path).With("id", c.Msg.Meta.ID).With("ran",
		l.ran.Round(time.Millisecond).String())
	if stack != "" {
		log = log.With("stack", stack)
	}
	var reason string
	switch {
	case l.limit == 0:
		reason = "long"
		log.Warn("handler has been running for very long; if that is too long, give it a Timeout")
	case replaced:
		reason = "replaced"
		log.With("limit", l.limit.Round(time.Millisecond).String()).
			Error("handler is stuck: it ignores that its context has ended; another task may run in its place")
	default:
		reason = "given up"
		log.With("limit", l.limit.Round(time.Millisecond).String()).
			Error("handler is stuck: it ignores that its context has ended; too many are to go on")
	}
	d.Emit(Event{Kind: KindTaskStuck, Queue: c.Lane.Store.Name, Claim: c, Duration: l.ran, Reason: reason})
}

// giveUp stops the worker.
func (d *Watchdog) giveUp() {
	d.Fatal = &StuckError{}
	for c, stuck := range d.Told {
		if stuck {
			d.Fatal.Funcs = append(d.Fatal.Funcs, c.Fn.Path())
			d.Fatal.IDs = append(d.Fatal.IDs, c.Msg.Meta.ID)
		}
	}
	d.Log.WithError(d.Fatal).
		Error("too many handlers are stuck; the worker stops, so that the process can be restarted")
	d.Drain()
}

// Replace puts another executor in the place of one whose handler does not return, if there is a spare one. stuck is
// false if the handler has returned. Whatever becomes of it later counts, but its executor ends then.
func (e *Executors) Replace(i int, c *Claim) (stuck, replaced bool) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if e.Slots[i].Load() != c {
		return false, false
	}
	c.stuck = true
	e.Busy--
	if c.Suspicion > 0 {
		e.release(c) // others may run beside it now
	}
	e.spent()
	e.Late.Add(1) // before over may get to zero: who waits for all, waits for those first
	defer e.Over.Done()
	n := len(e.Spare)
	if n == 0 || e.Stopped {
		e.N--
		return true, false
	}
	e.Over.Add(1)
	go e.loop(e.Spare[n-1])
	e.Spare = e.Spare[:n-1]
	e.beckon()
	return true, true
}

// relieved says whether another executor has taken the place of one because of the task that it ran last. Then its slot
// is free. e.mu is held.
func (e *Executors) relieved(i int, last *Claim) bool {
	if !last.stuck {
		return false
	}
	e.Slots[i].Store(nil)
	e.Spare = append(e.Spare, i)
	return true
}

// Reserve provides for so many executors that take the place of others. It is called before start.
func (e *Executors) Reserve(n int) {
	for i := range n {
		e.Spare = append(e.Spare, e.N+i)
	}
	e.allot(e.N + n)
}

// givenUp says whether a claim is one of a stuck handler.
func (e *Executors) givenUp(c *Claim) bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return c.stuck
}
