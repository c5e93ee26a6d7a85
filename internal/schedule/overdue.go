package schedule

import "time"

// onTime is how late a tick may be enqueued before it counts as missed.
const onTime = 30 * time.Second

// overdue returns the ticks to enqueue now, at most most, in their order; the first tick to skip because it was missed,
// zero for none; and the tick up to which all are dealt with then.
func (r *Record) overdue(t *Timetable, now time.Time, most int) (ticks []time.Time, missed, seen time.Time) {
	seen = r.Prev
	first := t.Next(r.Prev)
	if first.IsZero() || t.Due(first).After(now) {
		return nil, missed, seen
	}
	if now.Sub(t.Due(first)) <= onTime {
		for tick := first; len(ticks) < most && !tick.IsZero() && !t.Due(tick).After(now); tick = t.Next(tick) {
			ticks, seen = append(ticks, tick), tick
		}
		return ticks, missed, seen
	}
	// No scheduler was running for a while. A tick may still wait for its jitter, and those after it wait with it.
	upTo := now
	near := now.Add(-t.jitter - 1)
	if near.Before(r.Prev) {
		near = r.Prev
	}
	for tick := t.Next(near); t.jitter > 0 && !tick.IsZero() && !tick.After(now); tick = t.Next(tick) {
		if t.Due(tick).After(now) {
			upTo = tick.Add(-1)
			break
		}
	}
	n := max(r.Def.Missed, 1)
	ticks = t.last(r.Prev, upTo, min(n, most))
	seen = ticks[len(ticks)-1] // first is one of those
	if r.Def.Missed == MissedSkip && now.Sub(t.Due(seen)) > onTime {
		return nil, first, seen
	}
	if ticks[0].After(first) {
		missed = first
	}
	return ticks, missed, seen
}
