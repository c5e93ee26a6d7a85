package schedule

import "time"

// DST says which ticks run whose time a clock leaves out or shows twice. The zero value runs each once. Values may be
// combined with |. Users know it as Entry.SkipMissing and Entry.RunTwice.
type DST uint8

// Values of DST.
const (
	DSTSkipMissing DST = 1 << iota // none at times that the clock leaves out
	DSTRunTwice                    // both at times that the clock shows twice
)

// maxPeriods bounds the periods of a zone that a search for a tick passes: up to five a year, as some end with the year
// and have no change behind them, for longer than the fields need.
const maxPeriods = 64

// period is a time in which a zone does not change. What its clock shows is written as if in UTC.
type period struct {
	start, end time.Time     // zero: for ever
	offset     time.Duration // of what the clock shows, from UTC
}

func periodAt(t time.Time, loc *time.Location) period {
	t = t.In(loc)
	start, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		// Where a zone goes on by rule, package time takes all years for 365 days long: on December 31 of a leap year
		// it answers with the period that it says is over.
		end = end.Add(24 * time.Hour)
	}
	_, offset := t.Zone()
	return period{start, end, time.Duration(offset) * time.Second}
}

// shows returns what the clock shows.
func (p *period) shows(t time.Time) time.Time { return t.UTC().Add(p.offset) }

// shown returns up to what time the clock has shown everything before the period.
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

// within returns the first tick after a time within a period, zero if there is none; and whether there will be none
// after it either.
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
