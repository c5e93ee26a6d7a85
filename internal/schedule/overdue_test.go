package schedule

import (
	"testing"
	"time"
)

// With CatchUp < 0 the latest tick is enqueued if it is at most 30 s late, counted from when its jitter ended.
func TestSkippedCatchUpCountsFromTheJitter(t *testing.T) {
	r := planned(t, "@every 1h", "2026-01-01 10:00:00", func(r *Record) {
		r.Def.Missed, r.Def.Jitter = MissedSkip, 30*time.Minute
	})
	table, err := r.timetable()
	if err != nil {
		t.Fatal(err)
	}
	latest := utc(t, "2026-01-01 14:00:00")
	due := table.Due(latest)
	if due.Sub(latest) <= onTime {
		t.Fatalf("the jitter of this tick is %v: choose another name or spec", due.Sub(latest))
	}
	for _, tt := range []struct {
		late time.Duration
		runs bool
	}{{0, true}, {10 * time.Second, true}, {onTime, true}, {onTime + time.Second, false}} {
		ticks, missed, seen := r.overdue(table, due.Add(tt.late), MaxTicks)
		if got := len(ticks) == 1 && ticks[0].Equal(latest); got != tt.runs || missed.IsZero() || !seen.Equal(latest) {
			t.Errorf("%v after it was due: ticks %v, missed %v, seen %v, expected it enqueued: %t", tt.late, ticks,
				missed, seen, tt.runs)
		}
	}
}

// TestTickBeforeTheEntryWasSet: after a time without schedulers, a tick from before the entry was set does not come
// again, although its jitter has not ended; those after it do.
func TestTickBeforeTheEntryWasSet(t *testing.T) {
	r := planned(t, "@every 1m", "2026-01-01 12:00:30", func(r *Record) { r.Def.Jitter = 5 * time.Minute })
	table, err := r.timetable()
	if err != nil {
		t.Fatal(err)
	}
	first := table.Next(r.Prev)
	before := first.Add(-time.Minute)
	// A tick whose jitter ends long after that of the next one.
	for table.Due(before).Sub(table.Due(first)) <= onTime+time.Second {
		before, first, r.Prev = first, first.Add(time.Minute), r.Prev.Add(time.Minute)
	}
	now := table.Due(before).Add(-time.Second)
	latest := first
	for tick := first; !table.Due(tick).After(now); tick = table.Next(tick) {
		latest = tick
	}
	ticks, missed, seen := r.overdue(table, now, MaxTicks)
	if len(ticks) != 1 || !ticks[0].Equal(latest) || !seen.Equal(latest) || missed.IsZero() == latest.After(first) {
		t.Errorf("set at %v, at %v: ticks %v, missed %v, seen %v, expected the tick of %v", r.Prev, now, ticks, missed,
			seen, latest)
	}
}
