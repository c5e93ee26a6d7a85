package schedule

import (
	"testing"
	"time"
)

// TestWhatHoldsFromAChangeOn: a change of when an entry ticks takes effect from then on, and adds no ticks for the
// past. Other changes do not affect the times.
func TestWhatHoldsFromAChangeOn(t *testing.T) {
	const prev, now = "2025-01-02 10:00:00", "2025-01-02 12:30:00"
	for _, c := range []struct {
		name    string
		change  func(d *Definition)
		restart bool
	}{
		{"nothing", func(*Definition) {}, false},
		{"spec", func(d *Definition) { d.Spec = "30 * * * *" }, true},
		{"zone", func(d *Definition) { d.Zone = "Europe/Berlin" }, true},
		{"DST", func(d *Definition) { d.DST = DSTRunTwice }, true},
		{"jitter", func(d *Definition) { d.Jitter = time.Second }, true},
		{"from", func(d *Definition) { d.From = utc(t, "2025-01-01 00:00:00") }, true},
		{"until", func(d *Definition) { d.Until = utc(t, "2026-01-01 00:00:00") }, true},
		{"task", func(d *Definition) { d.Message = []byte("n") }, false},
		{"missed", func(d *Definition) { d.Missed = 2 }, false},
		{"overlap", func(d *Definition) { d.Overlap = OverlapSkip }, false},
		{"relative", func(d *Definition) { d.Relative = relativeDeadline }, false},
	} {
		r := planned(t, "0 * * * *", prev, func(r *Record) { r.Next = utc(t, "2025-01-02 11:00:00") })
		def := r.Def
		c.change(&def)
		if err := r.Define(def, utc(t, now)); err != nil {
			t.Fatal(err)
		}
		want := prev
		if c.restart {
			want = now
		}
		if r = stored(t, r); !r.Prev.Equal(utc(t, want)) || r.Next.After(utc(t, now)) != c.restart {
			t.Errorf("after a change of %s all up to %v has been seen to, next is %v, expected %s", c.name, r.Prev,
				r.Next, want)
		}
	}
}
