package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the same rules on every machine
)

// dstZones are zones, with years in which their clocks change.
var dstZones = []struct {
	zone  string
	years []int
}{
	{"Europe/Berlin", []int{1945, 1980, 2024, 2025, 2040, 2050}}, // 1945: two hours forward
	{"America/New_York", []int{2006, 2007, 2025, 2040}},
	{"Australia/Sydney", []int{2040}},                   // summer time at the end of the year
	{"Australia/Lord_Howe", []int{1981, 2024, 2025}},    // half an hour
	{"America/Sao_Paulo", []int{2017, 2018, 2019}},      // at midnight
	{"Asia/Kolkata", []int{1945, 2025}},                 // without
	{"Pacific/Apia", []int{2011, 2012}},                 // has left out December 30, 2011
	{"Africa/Casablanca", []int{2024, 2025}},            // around Ramadan
	{"Europe/Dublin", []int{2025}},                      // summer time by name is winter time
	{"Africa/Monrovia", []int{1971, 1972}},              // 44 minutes and 30 seconds at once
	{"Antarctica/Troll", []int{2024}},                   // two hours
	{"Asia/Pyongyang", []int{2015, 2018}},               // half an hour for good
	{"Europe/Lisbon", []int{1992, 1996}},                // changes of the zone beside summer time
	{"America/Caracas", []int{2007, 2016}},              //
	{"Asia/Gaza", []int{2023, 2025}},                    // several times a year
	{"Antarctica/Casey", []int{2018, 2019, 2020, 2023}}, // three hours, at any time of the year
	{"UTC", []int{2025}},
}

var dstSpecs = []string{
	"* * * * *", "*/15 * * * *", "30 * * * *", "0 * * * *", "30 2 * * *", "0 2 * * *", "0 3 * * *", "*/10 1-3 * * *",
	"0 0 * * *", "30 0 * * *",
	"59 23 * * *", "0 */2 * * *", "15,45 0,1,2,3,12 * * 0", "0 12 30 12 *", "0 9 * * mon-fri", "0 0 29 2 *",
	"0 0 1 * *", "*/20 0-23/3 * * *", "0 0,1 13 * 5",
}

var dstPolicies = []DST{0, DSTSkipMissing, DSTRunTwice, DSTSkipMissing | DSTRunTwice}

// glance is what a clock shows at a point in time. Both are in s since 1970, the second as if it were in UTC.
type glance struct{ at, shows int64 }

// readEvery is how often a clock is read, in s, because no offset is finer.
const readEvery = 30

// watch reads a clock all the time.
func watch(loc *time.Location, from, to time.Time) (all []glance) {
	for at := from; at.Before(to); at = at.Add(readEvery * time.Second) {
		_, offset := at.In(loc).Zone()
		all = append(all, glance{at.Unix(), at.Unix() + int64(offset)})
	}
	return all
}

// allows reports whether the fields of a spec match what a clock shows.
func (t *Timetable) allows(shows int64) bool {
	const star = 1 << 63
	minutes := shows/60 + 100*366*24*60 // at least 0 for years since 1870
	if shows%60 != 0 || t.spec.Minute>>(minutes%60)&1 == 0 || t.spec.Hour>>(minutes/60%24)&1 == 0 {
		return false
	}
	w := time.Unix(shows, 0).UTC()
	day, weekday := t.spec.Dom>>w.Day()&1 == 1, t.spec.Dow>>int(w.Weekday())&1 == 1
	if t.spec.Dom&star != 0 || t.spec.Dow&star != 0 {
		day = day && weekday
	} else {
		day = day || weekday
	}
	return day && t.spec.Month>>int(w.Month())&1 == 1
}

// expectedTicks finds the ticks from a time on in another way than the code: by reading the clock all the time.
func expectedTicks(t *Timetable, clock []glance, from time.Time) (ticks []time.Time) {
	high := clock[0].shows - 1
	for _, g := range clock {
		again := g.shows <= high
		// What the clock has skipped since the last reading.
		missing := false
		for m := high + readEvery; !again && m < g.shows && !t.free && t.dst&DSTSkipMissing == 0; m += readEvery {
			missing = missing || t.allows(m)
		}
		if g.at >= from.Unix() && (missing || (!again || t.free || t.dst&DSTRunTwice != 0) && t.allows(g.shows)) {
			ticks = append(ticks, time.Unix(g.at, 0))
		}
		if !again {
			high = g.shows
		}
	}
	return ticks
}

// TestTicksOverChangesOfClocks compares the ticks around every change of a zone with those that expectedTicks finds:
// none is missing, none appears twice, and each is at a time that the spec allows or the policy requires.
func TestTicksOverChangesOfClocks(t *testing.T) {
	for _, z := range dstZones {
		loc, err := time.LoadLocation(z.zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, year := range z.years {
			t.Run(fmt.Sprintf("%s %d", z.zone, year), func(t *testing.T) {
				t.Parallel()
				for _, change := range changesOf(t, loc, year) {
					from, to := change.Add(-14*time.Hour).Truncate(time.Minute), change.Add(14*time.Hour)
					clock := watch(loc, from.Add(-26*time.Hour), to) // before the times that it shows twice
					for _, spec := range dstSpecs {
						for i, policy := range dstPolicies {
							if i > 0 && strings.Fields(spec)[1] == "*" {
								continue // policies do not apply to it
							}
							checkTicks(t, spec, z.zone, policy, clock, from, to)
						}
					}
				}
			})
		}
	}
}

// changesOf returns the moments of a year at which the zone changes, or one in its middle.
func changesOf(t *testing.T, loc *time.Location, year int) (changes []time.Time) {
	t.Helper()
	at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	for end := at.AddDate(1, 0, 0); at.Before(end); {
		next := periodAt(at, loc).end
		if next.IsZero() || !next.Before(end) {
			break
		}
		if !next.After(at) {
			t.Fatalf("the period of %v ends at %v", at, next)
		}
		changes, at = append(changes, next), next
	}
	if len(changes) == 0 {
		changes = append(changes, time.Date(year, 6, 15, 12, 0, 0, 0, time.UTC))
	}
	return changes
}

func checkTicks(t *testing.T, spec, zone string, policy DST, clock []glance, from, to time.Time) {
	t.Helper()
	table, err := newTimetable(spec, zone, policy)
	if err != nil {
		t.Fatal(err)
	}
	want := expectedTicks(table, clock, from)
	var got []time.Time
	for tick := table.Next(from.Add(-time.Millisecond)); !tick.IsZero() && tick.Before(to); tick = table.Next(tick) {
		if len(got) > 0 && !tick.After(got[len(got)-1]) {
			t.Fatalf("%s in %s, policy %d: %v follows %v", spec, zone, policy, tick, got[len(got)-1])
		}
		got = append(got, tick)
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !got[i].Equal(want[i]) {
			show := func(list []time.Time) time.Time {
				if i < len(list) {
					return list[i].In(table.loc)
				}
				return time.Time{}
			}
			t.Fatalf("%s in %s, policy %d, from %v: tick %d of %d is %v, expected %v of %d", spec, zone, policy, from,
				i, len(got), show(got), show(want), len(want))
		}
	}
	// A call with a time in between finds the same ticks.
	for i := 0; i < len(got); i += 1 + len(got)/8 {
		for _, ask := range []time.Time{got[i].Add(-1), got[i].Add(-999 * time.Millisecond), got[i].Add(-time.Second)} {
			if i > 0 && !ask.After(got[i-1]) {
				ask = got[i-1]
			}
			if next := table.Next(ask); !next.Equal(got[i]) {
				t.Fatalf("%s in %s, policy %d: after %v comes %v, expected %v", spec, zone, policy, ask, next, got[i])
			}
		}
	}
	// So does a call that looks back.
	upTo := to.Add(-time.Second)
	for _, n := range []int{1, 7} {
		last := table.last(from.Add(-time.Millisecond), upTo, n)
		want := got[max(0, len(got)-n):]
		if len(want) > 0 && want[len(want)-1].After(upTo) {
			continue
		}
		if fmt.Sprint(last) != fmt.Sprint(want) {
			t.Fatalf("%s in %s, policy %d: the last %d up to %v are %v, expected %v", spec, zone, policy, n, upTo, last,
				want)
		}
	}
}

// TestDSTPolicies shows what each policy means, with examples that readers can check.
func TestDSTPolicies(t *testing.T) {
	for _, c := range []struct {
		spec, zone string
		policy     DST
		after      string
		want       []string // in local time
	}{
		// Berlin, March 30, 2025: 2:00 becomes 3:00.
		{
			"30 2 * * *", "Europe/Berlin", 0, "2025-03-29T03:00:00+01:00",
			[]string{"2025-03-30T03:00:00+02:00", "2025-03-31T02:30:00+02:00"},
		},
		{
			"30 2 * * *", "Europe/Berlin", DSTSkipMissing, "2025-03-29T03:00:00+01:00",
			[]string{"2025-03-31T02:30:00+02:00"},
		},
		{
			"*/20 2,3 * * *", "Europe/Berlin", 0, "2025-03-30T00:00:00+01:00",
			[]string{"2025-03-30T03:00:00+02:00", "2025-03-30T03:20:00+02:00"},
		},
		{"30 * * * *", "Europe/Berlin", 0, "2025-03-30T01:30:00+01:00", []string{"2025-03-30T03:30:00+02:00"}},
		// October 26, 2025: 3:00 becomes 2:00.
		{
			"30 2 * * *", "Europe/Berlin", 0, "2025-10-26T00:00:00+02:00",
			[]string{"2025-10-26T02:30:00+02:00", "2025-10-27T02:30:00+01:00"},
		},
		{
			"30 2 * * *", "Europe/Berlin", DSTRunTwice, "2025-10-26T00:00:00+02:00",
			[]string{"2025-10-26T02:30:00+02:00", "2025-10-26T02:30:00+01:00", "2025-10-27T02:30:00+01:00"},
		},
		{
			"30 * * * *", "Europe/Berlin", 0, "2025-10-26T02:00:00+02:00",
			[]string{"2025-10-26T02:30:00+02:00", "2025-10-26T02:30:00+01:00", "2025-10-26T03:30:00+01:00"},
		},
		// Lord Howe: half an hour.
		{
			"15 2 * * *", "Australia/Lord_Howe", 0, "2025-10-04T12:00:00+10:30",
			[]string{"2025-10-05T02:30:00+11:00", "2025-10-06T02:15:00+11:00"},
		},
		// São Paulo, November 4, 2018: midnight becomes 1:00.
		{
			"0 0 * * *", "America/Sao_Paulo", 0, "2018-11-03T00:00:00-03:00",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		},
		{
			"0 0 * * *", "America/Sao_Paulo", DSTSkipMissing, "2018-11-03T00:00:00-03:00",
			[]string{"2018-11-05T00:00:00-02:00"},
		},
		// Apia, December 2011: the 29th is followed by the 31st.
		{
			"0 9 * * *", "Pacific/Apia", 0, "2011-12-29T08:00:00-10:00",
			[]string{"2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"},
		},
		{
			"0 9 * * *", "Pacific/Apia", DSTSkipMissing, "2011-12-29T09:00:00-10:00",
			[]string{"2011-12-31T09:00:00+14:00"},
		},
		{
			"0 0 * * *", "Pacific/Apia", 0, "2011-12-29T00:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
		},
		// Without summer time, and leap days.
		{"30 2 * * *", "Asia/Kolkata", 0, "2025-03-30T00:00:00+05:30", []string{"2025-03-30T02:30:00+05:30"}},
		{"0 0 29 2 *", "", 0, "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		// A leap year beyond the tables of zones, which go on by rule.
		{
			"0 9 * * *", "Europe/Berlin", 0, "2040-12-30T10:00:00+01:00",
			[]string{"2040-12-31T09:00:00+01:00", "2041-01-01T09:00:00+01:00"},
		},
		{"0 9 1 1 *", "America/New_York", 0, "2040-01-02T00:00:00-05:00", []string{"2041-01-01T09:00:00-05:00"}},
		{"59 23 31 12 *", "Australia/Sydney", 0, "2040-01-02T00:00:00+11:00", []string{"2040-12-31T23:59:00+11:00"}},
		{"0 0 29 2 *", "Europe/Berlin", 0, "2096-03-01T00:00:00+01:00", []string{"2104-02-29T00:00:00+01:00"}},
	} {
		table, err := newTimetable(c.spec, c.zone, c.policy)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			at = table.Next(at)
			if got := at.Format(time.RFC3339); got != want {
				t.Errorf("%s in %s, policy %d: tick %d after %s is %s, expected %s", c.spec, c.zone, c.policy, i+1,
					c.after, got, want)
				break
			}
		}
	}
}
