package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/schedule"
)

// PeriodicTick is a tick of a periodic entry that is yet to come.
type PeriodicTick struct {
	At  time.Time // by the entry's spec, in its zone
	Due time.Time // when its task is enqueued: later than At by up to the entry's Jitter
}

// Ticks returns the next ticks of the entry, at most n: Next, and those after it, as long as nobody changes the entry.
// There are none while it is paused, and only Next if this machine does not know the entry's zone.
func (e *PeriodicEntry) Ticks(n int) []PeriodicTick {
	if e.Next.IsZero() || n < 1 {
		return nil
	}
	d := schedule.Definition{Spec: e.Spec, Zone: e.Zone, Jitter: e.Jitter, From: e.From, Until: e.Until}
	if e.SkipClockGap {
		d.DST |= schedule.DSTSkipMissing
	}
	if e.RepeatClockOverlap {
		d.DST |= schedule.DSTRunTwice
	}
	table, err := d.Timetable(e.Name)
	if err != nil {
		return []PeriodicTick{{At: e.Next, Due: e.Next}}
	}
	var ticks []PeriodicTick
	for at := e.Next; !at.IsZero() && len(ticks) < n; at = table.Next(at) {
		ticks = append(ticks, PeriodicTick{At: at, Due: table.Due(at)})
	}
	return ticks
}
