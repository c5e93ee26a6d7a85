package delayed

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// planned is an entry whose ticks up to a time have been seen to.
func planned(t *testing.T, spec, prev string, change func(r *record)) *record {
	t.Helper()
	msg := wire.Message{Kind: wire.GoExtended, Path: "f"}
	r := &record{
		was: schedule.EntryValue{Name: "e"},
		def: definition{spec: spec, missed: missedLatest, message: msg.Append(nil)},
	}
	r.prev = utc(t, prev)
	if change != nil {
		change(r)
	}
	r.defRaw = r.def.encode()
	r.was.Raw = r.encode()
	return r
}

// showPlan says what a call does with which ticks, when the lock is free or held, and what the entry waits for
// afterwards.
func showPlan(t *testing.T, c *schedule.Plan, held bool) string {
	t.Helper()
	var parts []string
	for _, r := range c.Ticks {
		outcome := r.Free
		if held {
			outcome = r.Held
		}
		parts = append(parts, r.At.UTC().Format("15:04:05")+" "+outcome)
		if (outcome == schedule.TickEnqueued) != (r.Message != nil) && !held {
			t.Errorf("%v is %s with the message %q", r.At, outcome, r.Message)
		}
	}
	raw, due := c.Free, c.DueFree
	if held {
		raw, due = c.Held, c.DueHeld
	}
	after, err := decodeRecord(schedule.EntryValue{Name: "e", Raw: raw})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(parts, ", ") + "; seen " + after.prev.Format("15:04:05")
	if !after.queued.IsZero() {
		text += " waits " + after.queued.Format("15:04:05")
	}
	if due.IsZero() {
		return text + " due never"
	}
	return text + " due " + due.UTC().Format("15:04:05")
}

func TestPlans(t *testing.T) {
	const prev = "2025-01-02 10:00:00"
	missed := func(n int) func(r *record) { return func(r *record) { r.def.missed = n } }
	overlap := func(o overlapPolicy) func(r *record) { return func(r *record) { r.def.overlap = o } }
	waiting := func(r *record) {
		r.def.overlap = overlapQueue
		r.queued = r.prev
	}
	for _, c := range []struct {
		name, spec, now string
		change          func(r *record)
		free, held      string
	}{
		{"not due", "@every 1m", "10:00:59", nil, "; seen 10:00:00 due 10:01:00", ""},
		{"due", "@every 1m", "10:01:00", nil, "10:01:00 enqueued; seen 10:01:00 due 10:02:00", ""},
		{
			"a little late", "@every 10s", "10:00:35", missed(missedSkip),
			"10:00:10 enqueued, 10:00:20 enqueued, 10:00:30 enqueued; seen 10:00:30 due 10:00:40", "",
		},
		{
			"missed: latest", "@every 10s", "10:00:41", nil,
			"10:00:10 missed, 10:00:40 enqueued; seen 10:00:40 due 10:00:50", "",
		},
		{"one missed", "@every 1h", "11:30:00", nil, "11:00:00 enqueued; seen 11:00:00 due 12:00:00", ""},
		{
			"missed: two", "@every 1h", "14:30:00", missed(2),
			"11:00:00 missed, 13:00:00 enqueued, 14:00:00 enqueued; seen 14:00:00 due 15:00:00", "",
		},
		{
			"missed: more than there are", "@every 1h", "12:30:00", missed(100),
			"11:00:00 enqueued, 12:00:00 enqueued; seen 12:00:00 due 13:00:00", "",
		},
		{
			"missed: skip", "@every 1h", "14:30:00", missed(missedSkip), "11:00:00 missed; seen 14:00:00 due 15:00:00",
			"",
		},
		{
			"missed: skip, but the latest is in time", "@every 1h", "14:00:10", missed(missedSkip),
			"11:00:00 missed, 14:00:00 enqueued; seen 14:00:00 due 15:00:00", "",
		},
		{"paused", "@every 1m", "10:05:00", func(r *record) { r.paused = true }, "; seen 10:00:00 due never", ""},
		{
			"over", "@every 1m", "10:05:00", func(r *record) { r.def.until = r.prev.Add(90 * time.Second) },
			"10:01:00 enqueued; seen 10:01:00 due never", "",
		},
		{
			"skip", "@every 1m", "10:01:00", overlap(overlapSkip), "10:01:00 enqueued; seen 10:01:00 due 10:02:00",
			"10:01:00 overlap; seen 10:01:00 due 10:02:00",
		},
		{
			"skip several", "@every 10s", "10:00:20", overlap(overlapSkip),
			"10:00:10 enqueued, 10:00:20 overlap; seen 10:00:20 due 10:00:30",
			"10:00:10 overlap, 10:00:20 overlap; seen 10:00:20 due 10:00:30",
		},
		{
			"queue", "@every 1m", "10:01:00", overlap(overlapQueue), "10:01:00 enqueued; seen 10:01:00 due 10:02:00",
			"10:01:00 queued; seen 10:01:00 waits 10:01:00 due 10:01:00",
		},
		{
			"queue several", "@every 10s", "10:00:30", overlap(overlapQueue),
			"10:00:10 enqueued, 10:00:20 queued, 10:00:30 overlap; seen 10:00:30 waits 10:00:20 due 10:00:20",
			"10:00:10 queued, 10:00:20 overlap, 10:00:30 overlap; seen 10:00:30 waits 10:00:10 due 10:00:10",
		},
		{
			"one waits", "@every 1m", "10:00:30", waiting, "10:00:00 enqueued; seen 10:00:00 due 10:01:00",
			"10:00:00 ; seen 10:00:00 waits 10:00:00 due 10:00:00",
		},
		{
			"one waits, and another is due", "@every 1m", "10:01:00", waiting,
			"10:00:00 enqueued, 10:01:00 queued; seen 10:01:00 waits 10:01:00 due 10:01:00",
			"10:00:00 , 10:01:00 overlap; seen 10:01:00 waits 10:00:00 due 10:00:00",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := planned(t, c.spec, prev, c.change)
			tt, err := r.def.timetable("e")
			if err != nil {
				t.Fatal(err)
			}
			call, err := r.plan(tt, utc(t, "2025-01-02 "+c.now))
			if err != nil {
				t.Fatal(err)
			}
			if got := showPlan(t, call, false); got != c.free {
				t.Errorf("free: %s\nexpected %s", got, c.free)
			}
			if got := showPlan(t, call, true); c.held != "" && got != c.held {
				t.Errorf("held: %s\nexpected %s", got, c.held)
			}
		})
	}
}

// TestPlansOverTime lets schedulers look at random times, sometimes after an outage: each tick is enqueued once, in
// order, unless it was missed; and none before it is due.
func TestPlansOverTime(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		spec := []string{"@every 1s", "@every 7s", "* * * * *", "*/5 * * * *", "0 * * * *"}[rnd.IntN(5)]
		r := planned(t, spec, "2025-01-02 10:00:00", func(r *record) {
			r.def.missed = []int{missedSkip, missedLatest, 3, 100}[rnd.IntN(4)]
			r.def.jitter = []time.Duration{0, 0, 20 * time.Second, 3 * time.Minute}[rnd.IntN(4)]
		})
		tt, err := r.def.timetable("e")
		if err != nil {
			t.Fatal(err)
		}
		expected := tt.next(r.prev)
		now := r.prev
		for range 300 {
			away := rnd.IntN(20) == 0
			if away {
				now = now.Add(time.Duration(rnd.IntN(4*3600)) * time.Second)
			} else {
				now = now.Add(time.Duration(rnd.IntN(25_000)) * time.Millisecond)
			}
			c, err := r.plan(tt, now)
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			for _, row := range c.Ticks {
				if row.Free == schedule.TickMissed {
					if !row.At.Equal(expected) || now.Sub(tt.due(expected)) <= onTime {
						t.Fatalf("seed %d, %s: at %v the tick %v was missed, expected %v", seed, spec, now, row.At,
							expected)
					}
					expected = time.Time{}
					continue
				}
				made++
				if expected.IsZero() {
					expected = row.At // the first after a gap
				}
				if !row.At.Equal(expected) || tt.due(row.At).After(now) || c.NotBefore.Before(tt.due(row.At)) {
					t.Fatalf("seed %d, %s: at %v the tick %v, due %v, expected %v", seed, spec, now, row.At,
						tt.due(row.At), expected)
				}
				expected = tt.next(row.At)
			}
			if expected.IsZero() {
				// All that was missed is skipped.
				if r.def.missed != missedSkip {
					t.Fatalf("seed %d, %s: nothing is made up for", seed, spec)
				}
			} else if late := now.Sub(tt.due(expected)); late >= 0 && made < schedule.MaxTicks {
				t.Fatalf("seed %d, %s: at %v the tick %v is %v late", seed, spec, now, expected, late)
			}
			if r, err = decodeRecord(schedule.EntryValue{Name: "e", Raw: c.Free}); err != nil {
				t.Fatal(err)
			}
			if expected.IsZero() {
				expected = tt.next(r.prev)
			}
			if !r.next.Equal(expected) && !r.paused {
				t.Fatalf("seed %d, %s: next is %v, expected %v", seed, spec, r.next, expected)
			}
		}
	}
}
