package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/schedule"
)

// Ticks returns the next ticks of the entry, at most n, without jitter: Next, and those after it, as long as nobody
// changes the entry. There are none while it is paused, and only Next if this machine does not know the entry's zone.
func (e *PeriodicEntry) Ticks(n int) []time.Time {
	if e.Next.IsZero() || n < 1 {
		return nil
	}
	table, err := e.timetable()
	if err != nil {
		return []time.Time{e.Next}
	}
	var ticks []time.Time
	for at := e.Next; !at.IsZero() && len(ticks) < n; at = table.Next(at) {
		ticks = append(ticks, at)
	}
	return ticks
}

// DelayOf returns by how long the entry's Jitter delays one of its ticks.
func (e *PeriodicEntry) DelayOf(tick time.Time) time.Duration {
	table, err := e.timetable()
	if err != nil {
		return 0
	}
	return table.Due(tick).Sub(tick)
}

// timetable returns when the entry ticks.
func (e *PeriodicEntry) timetable() (*schedule.Timetable, error) {
	d := schedule.Definition{Spec: e.Spec, Zone: e.Zone, Jitter: e.Jitter, From: e.From, Until: e.Until}
	if e.SkipClockGap {
		d.DST |= schedule.DSTSkipMissing
	}
	if e.RepeatClockOverlap {
		d.DST |= schedule.DSTRunTwice
	}
	return d.Timetable(e.Name)
}
