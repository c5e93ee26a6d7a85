package delayed_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

// The ticks of an entry are those that its scheduler will enqueue: in its zone, over a change of its clocks, with its
// jitter, and up to its end.
func TestTicksOfEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	control := b.q.Periodic()
	berlin, err := time.LoadLocation("Europe/Berlin")
	b.Must(err)
	day := time.Date(2100, 3, 27, 2, 30, 0, 0, berlin) // the day before summer time begins
	entry := delayed.Entry{
		Name: "nightly", Spec: "30 2 * * *", Zone: "Europe/Berlin", Task: delayed.Call(b.fn("f", func() {})), From: day,
	}
	b.Must(control.Set(t.Context(), entry))
	ticks := func() []time.Time {
		t.Helper()
		entries, err := control.List(t.Context())
		b.Must(err)
		if len(entries) != 1 {
			t.Fatalf("%+v", entries)
		}
		if first := entries[0].Ticks(1); len(first) > 1 || entries[0].Ticks(0) != nil {
			t.Errorf("more ticks than were asked for: %v", first)
		}
		return entries[0].Ticks(5)
	}
	expect := func(got []time.Time, want ...time.Time) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%v, expected %v", got, want)
		}
		for i := range want {
			if !got[i].Equal(want[i]) {
				t.Errorf("tick %d is at %v, expected %v", i, got[i], want[i])
			}
		}
	}
	gap := time.Date(2100, 3, 28, 3, 0, 0, 0, berlin)
	after := func(n int) time.Time { return time.Date(2100, 3, 28+n, 2, 30, 0, 0, berlin) }
	expect(ticks(), day, gap, after(1), after(2), after(3))

	entry.SkipClockGap, entry.Until, entry.Jitter = true, after(2), time.Minute
	b.Must(control.Set(t.Context(), entry))
	got := ticks()
	expect(got, day, after(1))
	entries, err := control.List(t.Context())
	b.Must(err)
	for _, tick := range got {
		if late := entries[0].DelayOf(tick); late <= 0 || late > time.Minute {
			t.Errorf("%v is enqueued %v later", tick, late)
		}
	}
	b.Must(control.Pause(t.Context(), "nightly"))
	expect(ticks())

	// A worker of another machine may know zones that this one does not.
	strange := delayed.PeriodicEntry{Spec: "@daily", Zone: "Moon/Base", Next: day}
	expect(strange.Ticks(5), day)
	if late := strange.DelayOf(day); late != 0 {
		t.Errorf("a tick in an unknown zone is %v late", late)
	}
}
