package schedule

import "time"

// DST defines what happens to ticks at times that a clock leaves out or shows twice. The zero value runs each once.
// Values may be combined with |. They are Entry.SkipClockGap and Entry.RepeatClockOverlap of the root package.
type DST uint8

// Values of DST.
const (
	DSTSkipMissing DST = 1 << iota // no tick at times that the clock leaves out
	DSTRunTwice                    // two ticks at times that the clock shows twice
)

// farthest is the step of the search for a tick that is years away, such as February 29 around 2100.
const farthest = 4 * 365 * 24 * time.Hour

// maxPeriods bounds the periods of a zone that a search for a tick goes through. A year has up to five, since some end
// with the year although no change follows; the limit covers more years than any fields need.
const maxPeriods = 64

// period is a time in which a zone's offset does not change. Times that its clock shows are written as if in UTC.
type period struct {
	start, end time.Time     // zero: without limit
	offset     time.Duration // of the clock, from UTC
}

func periodAt(t time.Time, loc *time.Location) period {
	t = t.In(loc)
	start, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		// Where a zone follows a rule, package time takes all years for 365 days long: on December 31 of a leap year it
		// returns a period that has ended.
		end = end.Add(24 * time.Hour)
	}
	_, offset := t.Zone()
	return period{start, end, time.Duration(offset) * time.Second}
}

// shows returns what the clock shows.
func (p *period) shows(t time.Time) time.Time { return t.UTC().Add(p.offset) }

// shown returns the latest time that the clock has shown before the period.
func (p *period) shown(loc *time.Location) time.Time {
	const day = 24 * time.Hour
	before := periodAt(p.start.Add(-1), loc)
	latest := before.shows(p.start)
	for !before.start.IsZero() && before.start.After(p.start.Add(-2*day)) {
		end := before.start
		before = periodAt(end.Add(-1), loc)
		if w := before.shows(end); w.After(latest) {
			latest = w
		}
	}
	return latest
}

// Next returns the first tick after a time, without jitter. Zero: none.
func (t *Timetable) Next(after time.Time) time.Time {
	if !t.from.IsZero() && after.Before(t.from) {
		after = t.from.Add(-time.Millisecond)
	}
	var tick time.Time
	if t.every > 0 {
		tick = t.nextEvery(after)
	} else {
		tick = t.nextCron(after)
	}
	if tick.IsZero() || !t.until.IsZero() && !tick.Before(t.until) {
		return time.Time{}
	}
	return tick
}

// nextCron returns the first tick of the fields after a time. Zero: none.
func (t *Timetable) nextCron(after time.Time) time.Time {
	p := periodAt(after, t.loc)
	for range maxPeriods {
		tick, none := t.within(&p, after)
		switch {
		case none:
			return time.Time{}
		case !tick.IsZero():
			return tick.In(t.loc)
		case p.end.IsZero():
			return time.Time{}
		}
		p = periodAt(p.end, t.loc)
	}
	return time.Time{}
}

// within returns the first tick after a time within a period, zero if there is none. none reports that there will be
// none after the period either.
func (t *Timetable) within(p *period, after time.Time) (tick time.Time, none bool) {
	from := p.shows(after)
	if !p.start.IsZero() {
		opens, shown := p.shows(p.start), p.shown(t.loc)
		if p.start.After(after) {
			from = opens.Add(-time.Second)
			if shown.Before(opens) && !t.free && t.dst&DSTSkipMissing == 0 {
				missed := t.wall(shown.Add(-time.Second))
				if !missed.IsZero() && missed.Before(opens) {
					return p.start, false
				}
			}
		}
		if again := shown.Add(-time.Second); from.Before(again) && !t.free && t.dst&DSTRunTwice == 0 {
			from = again
		}
	}
	w := t.wall(from)
	if w.IsZero() {
		return w, true
	}
	if tick = w.Add(-p.offset); !p.end.IsZero() && !tick.Before(p.end) {
		return time.Time{}, false
	}
	return tick, false
}

// wall returns the first time after w that the fields allow, zero for none. Times are those that a clock shows, written
// as if in UTC.
func (t *Timetable) wall(w time.Time) time.Time {
	// cron looks five years ahead, and leap days may be eight years apart.
	for range 2 {
		if next := t.spec.Next(w); !next.IsZero() {
			return next
		}
		w = w.Add(farthest)
	}
	return time.Time{}
}
