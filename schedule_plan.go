package delayed

import (
	"strconv"
	"time"

	"github.com/godelayed/delayed/internal/schedule"
)

// onTime is how late a tick may be enqueued before it counts as missed.
const onTime = 30 * time.Second

// entryLock is the name of the lock that tasks of an entry hold.
func entryLock(name string) string { return schedule.LockPrefix + name }

// tickID is the id of the task of a tick.
func tickID(name string, tick time.Time) string {
	return name + "@" + strconv.FormatInt(tick.UnixMilli(), 10)
}

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
	if r.def.missed == MissedSkip && now.Sub(t.due(seen)) > onTime {
		return nil, first, seen
	}
	if ticks[0].After(first) {
		missed = first
	}
	return ticks, missed, seen
}

// plan says how to see to what is due of an entry.
func (r *record) plan(t *timetable, now time.Time) (*schedule.Plan, error) {
	c := &schedule.Plan{Was: r.was}
	if r.paused {
		// It has no business in the set.
		c.Free = r.was.Raw
		c.Held = c.Free
		return c, nil
	}
	ticks, missed, seen := r.overdue(t, now, schedule.MaxTicks)
	if r.def.overlap != OverlapAllow {
		c.Lock = entryLock(r.was.Name)
	}
	if !missed.IsZero() {
		c.Ticks = append(c.Ticks, schedule.Tick{
			At: missed, Free: schedule.TickMissed,
			Held: schedule.TickMissed,
		})
	}
	waits := !r.queued.IsZero()
	if waits {
		ticks = append([]time.Time{r.queued}, ticks...)
	}
	for i, tick := range ticks {
		row := schedule.Tick{
			At: tick, ID: tickID(r.was.Name, tick), Free: schedule.TickEnqueued,
			Held: schedule.TickOverlap,
		}
		queue := r.def.overlap == OverlapQueue
		switch {
		case c.Lock == "":
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
			if row.Message, err = r.def.taskAt(row.ID, c.Lock, now); err != nil {
				return nil, err
			}
		}
		c.Ticks = append(c.Ticks, row)
		if due := t.due(tick); (i > 0 || !waits) && due.After(c.NotBefore) {
			c.NotBefore = due
		}
	}
	after := *r
	after.prev, after.next, after.queued = seen, t.next(seen), time.Time{}
	held := after
	if r.def.overlap == OverlapQueue {
		if len(ticks) > 0 {
			held.queued = ticks[0]
		}
		if len(ticks) > 1 {
			after.queued = ticks[1]
		}
	}
	c.Free, c.DueFree = after.encode(), after.due(t)
	c.Held, c.DueHeld = held.encode(), held.due(t)
	return c, nil
}

// due returns when a scheduler must look at the entry next. Zero: never.
func (r *record) due(t *timetable) time.Time {
	switch {
	case r.paused:
		return time.Time{}
	case !r.queued.IsZero():
		return r.queued // over already: every look shows it until the previous task has ended
	case r.next.IsZero():
		return time.Time{}
	}
	return t.due(r.next)
}

// restart makes the entry tick from now on.
func (r *record) restart(t *timetable, now time.Time) {
	r.prev, r.queued = now, time.Time{}
	r.next = t.next(now)
}
