package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/schedule"
)

// onTime is how late a tick may be enqueued before it counts as missed.
const onTime = 30 * time.Second

// overdue returns the ticks that are to be enqueued now, in their order; the first that is passed over because it was
// missed, zero if none was; and the tick up to which all have been seen to then. most bounds them.
func (r *record) overdue(t *timetable, now time.Time, most int) (ticks []time.Time, missed, seen time.Time) {
	seen = r.prev
	first := t.next(r.prev)
	if first.IsZero() || t.due(first).After(now) {
		return nil, missed, seen
	}
	if now.Sub(t.due(first)) <= onTime {
		for tick := first; len(ticks) < most && !tick.IsZero() && !t.due(tick).After(now); tick = t.next(tick) {
			ticks, seen = append(ticks, tick), tick
		}
		return ticks, missed, seen
	}
	// Nobody was there for a while. A tick may wait for its jitter still, and those behind it wait with it.
	upTo := now
	near := now.Add(-t.jit - 1)
	if near.Before(r.prev) {
		near = r.prev
	}
	for tick := t.next(near); t.jit > 0 && !tick.IsZero() && !tick.After(now); tick = t.next(tick) {
		if t.due(tick).After(now) {
			upTo = tick.Add(-1)
			break
		}
	}
	n := max(r.def.missed, 1)
	ticks = t.last(r.prev, upTo, min(n, most))
	seen = ticks[len(ticks)-1] // first is one of those
	if r.def.missed == missedSkip && now.Sub(t.due(seen)) > onTime {
		return nil, first, seen
	}
	if ticks[0].After(first) {
		missed = first
	}
	return ticks, missed, seen
}

// planOf reads an entry and says how to see to what is due of it.
func planOf(v schedule.EntryValue, now time.Time) (*schedule.Plan, error) {
	r, err := decodeRecord(v)
	if err != nil {
		return nil, err
	}
	t, err := r.timetable()
	if err != nil {
		return nil, err
	}
	return r.plan(t, now)
}

// plan says how to see to what is due of an entry.
func (r *record) plan(t *timetable, now time.Time) (*schedule.Plan, error) {
	p := r.unchanged(time.Time{})
	if r.paused {
		return p, nil // it has no business in the set
	}
	ticks, missed, seen := r.overdue(t, now, schedule.MaxTicks)
	if !missed.IsZero() {
		p.Ticks = append(p.Ticks, schedule.Tick{
			At: missed, Free: schedule.TickMissed, Held: schedule.TickMissed,
		})
	}
	waits := !r.queued.IsZero()
	if waits {
		ticks = append([]time.Time{r.queued}, ticks...)
	}
	for i, tick := range ticks {
		row := schedule.Tick{
			At: tick, ID: tickID(r.was.Name, tick), Free: schedule.TickEnqueued, Held: schedule.TickOverlap,
		}
		queue := r.def.overlap == overlapQueue
		switch {
		case p.Lock == "":
			row.Held = ""
		case i == 0 && waits:
			row.Held = ""
		case i == 0 && queue:
			row.Held = schedule.TickQueued
		case i == 1 && queue:
			row.Free = schedule.TickQueued
		case i > 0:
			row.Free = schedule.TickOverlap
		}
		if row.Free == schedule.TickEnqueued {
			var err error
			if row.Message, err = r.def.taskAt(row.ID, p.Lock, now); err != nil {
				return nil, err
			}
		}
		p.Ticks = append(p.Ticks, row)
		if due := t.due(tick); (i > 0 || !waits) && due.After(p.NotBefore) {
			p.NotBefore = due
		}
	}
	after := *r
	after.prev, after.next, after.queued = seen, t.next(seen), time.Time{}
	held := after
	if r.def.overlap == overlapQueue {
		if len(ticks) > 0 {
			held.queued = ticks[0]
		}
		if len(ticks) > 1 {
			after.queued = ticks[1]
		}
	}
	p.Free, p.DueFree = after.encode(), after.dueBy(t)
	p.Held, p.DueHeld = held.encode(), held.dueBy(t)
	return p, nil
}

// planRun says how to enqueue the entry's task now, beside its ticks.
func (r *record) planRun(id string, now time.Time) (*schedule.Plan, error) {
	due, err := r.due()
	if err != nil {
		return nil, err
	}
	p := r.unchanged(due)
	message, err := r.def.taskAt(id, p.Lock, now)
	if err != nil {
		return nil, entryError(r.was.Name, err)
	}
	p.Ticks = []schedule.Tick{{At: now, ID: id, Message: message, Free: schedule.TickEnqueued}}
	return p, nil
}

// unchanged is a plan without ticks that leaves the entry as it is.
func (r *record) unchanged(due time.Time) *schedule.Plan {
	p := &schedule.Plan{Was: r.was, Free: r.was.Raw, Held: r.was.Raw, DueFree: due, DueHeld: due}
	if r.def.overlap != overlapAllow {
		p.Lock = entryLock(r.was.Name)
	}
	return p
}
