package schedule

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// planned is an entry whose ticks up to a time have been handled.
func planned(t *testing.T, spec, prev string, change func(r *Record)) *Record {
	t.Helper()
	msg := wire.Message{Kind: wire.GoExtended, Path: "f"}
	r := &Record{
		Was: EntryValue{Name: "e"},
		Def: Definition{Spec: spec, Missed: MissedLatest, Message: msg.Append(nil)},
	}
	r.Prev = utc(t, prev)
	if change != nil {
		change(r)
	}
	r.defRaw = r.Def.encode()
	r.Was.Raw = r.Encode()
	return r
}

// showPlan describes what a call does with each tick, when the lock is free or held, and what the entry waits for
// afterwards.
func showPlan(t *testing.T, c *Plan, held bool) string {
	t.Helper()
	var parts []string
	for _, r := range c.Ticks {
		outcome := r.Free
		if held {
			outcome = r.Held
		}
		parts = append(parts, r.At.UTC().Format("15:04:05")+" "+outcome)
		if (outcome == TickEnqueued) != (r.Message != nil) && !held {
			t.Errorf("%v is %s with the message %q", r.At, outcome, r.Message)
		}
	}
	raw, due := c.Free, c.DueFree
	if held {
		raw, due = c.Held, c.DueHeld
	}
	after, err := Decode(EntryValue{Name: "e", Raw: raw})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(parts, ", ") + "; seen " + after.Prev.Format("15:04:05")
	if !after.Queued.IsZero() {
		text += " waits " + after.Queued.Format("15:04:05")
	}
	if due.IsZero() {
		return text + " due never"
	}
	return text + " due " + due.UTC().Format("15:04:05")
}

func TestPlans(t *testing.T) {
	const prev = "2025-01-02 10:00:00"
	missed := func(n int) func(r *Record) { return func(r *Record) { r.Def.Missed = n } }
	overlap := func(o Overlap) func(r *Record) { return func(r *Record) { r.Def.Overlap = o } }
	waiting := func(r *Record) {
		r.Def.Overlap = OverlapQueue
		r.Queued = r.Prev
	}
	for _, c := range []struct {
		name, spec, now string
		change          func(r *Record)
		free, held      string
	}{
		{"not due", "@every 1m", "10:00:59", nil, "; seen 10:00:00 due 10:01:00", ""},
		{"due", "@every 1m", "10:01:00", nil, "10:01:00 enqueued; seen 10:01:00 due 10:02:00", ""},
		{
			"a little late", "@every 10s", "10:00:35", missed(MissedSkip),
			"10:00:10 enqueued, 10:00:20 enqueued, 10:00:30 enqueued; seen 10:00:30 due 10:00:40", "",
		},
		{
			"late by 30 s", "@every 1m", "10:01:30", missed(MissedSkip),
			"10:01:00 enqueued; seen 10:01:00 due 10:02:00", "",
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
			"missed: skip", "@every 1h", "14:30:00", missed(MissedSkip), "11:00:00 missed; seen 14:00:00 due 15:00:00",
			"",
		},
		{
			"missed: skip, but the latest is in time", "@every 1h", "14:00:10", missed(MissedSkip),
			"11:00:00 missed, 14:00:00 enqueued; seen 14:00:00 due 15:00:00", "",
		},
		{"paused", "@every 1m", "10:05:00", func(r *Record) { r.Paused = true }, "; seen 10:00:00 due never", ""},
		{
			"over", "@every 1m", "10:05:00", func(r *Record) { r.Def.Until = r.Prev.Add(90 * time.Second) },
			"10:01:00 enqueued; seen 10:01:00 due never", "",
		},
		{
			"skip", "@every 1m", "10:01:00", overlap(OverlapSkip), "10:01:00 enqueued; seen 10:01:00 due 10:02:00",
			"10:01:00 overlap; seen 10:01:00 due 10:02:00",
		},
		{
			"skip several", "@every 10s", "10:00:20", overlap(OverlapSkip),
			"10:00:10 enqueued, 10:00:20 overlap; seen 10:00:20 due 10:00:30",
			"10:00:10 overlap, 10:00:20 overlap; seen 10:00:20 due 10:00:30",
		},
		{
			"queue", "@every 1m", "10:01:00", overlap(OverlapQueue), "10:01:00 enqueued; seen 10:01:00 due 10:02:00",
			"10:01:00 queued; seen 10:01:00 waits 10:01:00 due 10:01:00",
		},
		{
			"queue several", "@every 10s", "10:00:30", overlap(OverlapQueue),
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
			tt, err := r.Def.Timetable("e")
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

// TestPlansOverTime: schedulers look at random times, sometimes after an outage. Each tick is enqueued once, in order,
// unless it was missed, and none before it is due.
func TestPlansOverTime(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		spec := []string{"@every 1s", "@every 7s", "* * * * *", "*/5 * * * *", "0 * * * *"}[rnd.IntN(5)]
		r := planned(t, spec, "2025-01-02 10:00:00", func(r *Record) {
			r.Def.Missed = []int{MissedSkip, MissedLatest, 3, 100}[rnd.IntN(4)]
			r.Def.Jitter = []time.Duration{0, 0, 20 * time.Second, 3 * time.Minute}[rnd.IntN(4)]
		})
		tt, err := r.Def.Timetable("e")
		if err != nil {
			t.Fatal(err)
		}
		expected := tt.Next(r.Prev)
		now := r.Prev
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
				if row.Free == TickMissed {
					if !row.At.Equal(expected) || now.Sub(tt.Due(expected)) <= onTime {
						t.Fatalf("seed %d, %s: at %v the tick %v was missed, expected %v", seed, spec, now, row.At,
							expected)
					}
					expected = time.Time{}
					continue
				}
				made++
				if expected.IsZero() {
					expected = row.At // the first one after a gap
				}
				if !row.At.Equal(expected) || tt.Due(row.At).After(now) || c.NotBefore.Before(tt.Due(row.At)) {
					t.Fatalf("seed %d, %s: at %v the tick %v, due %v, expected %v", seed, spec, now, row.At,
						tt.Due(row.At), expected)
				}
				expected = tt.Next(row.At)
			}
			if expected.IsZero() {
				// All missed ticks are skipped.
				if r.Def.Missed != MissedSkip {
					t.Fatalf("seed %d, %s: nothing is made up for", seed, spec)
				}
			} else if late := now.Sub(tt.Due(expected)); late >= 0 && made < MaxTicks {
				t.Fatalf("seed %d, %s: at %v the tick %v is %v late", seed, spec, now, expected, late)
			}
			if r, err = Decode(EntryValue{Name: "e", Raw: c.Free}); err != nil {
				t.Fatal(err)
			}
			if expected.IsZero() {
				expected = tt.Next(r.Prev)
			}
			if !r.Next.Equal(expected) && !r.Paused {
				t.Fatalf("seed %d, %s: next is %v, expected %v", seed, spec, r.Next, expected)
			}
		}
	}
}
