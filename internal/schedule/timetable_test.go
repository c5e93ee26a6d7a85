package schedule

import (
	"strings"
	"testing"
	"time"
)

// table returns the timetable of a valid spec.
func table(t *testing.T, spec string) *Timetable {
	t.Helper()
	tt, err := newTimetable(spec, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	tt.name = "e"
	return tt
}

// utc parses a time such as 2025-01-02 15:04:05.
func utc(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestSpecs(t *testing.T) {
	for _, c := range []struct{ spec, zone, after, want string }{
		{"30 9 * * *", "", "2025-01-02 09:30:00", "2025-01-03 09:30:00"},
		{"30 9 * * *", "", "2025-01-02 09:29:59", "2025-01-02 09:30:00"},
		{" 30  9 * * * ", "", "2025-01-02 00:00:00", "2025-01-02 09:30:00"},
		{"30 9 * * *", "Europe/Berlin", "2025-01-02 00:00:00", "2025-01-02 08:30:00"},
		{"CRON_TZ=Europe/Berlin 30 9 * * *", "", "2025-01-02 00:00:00", "2025-01-02 08:30:00"},
		{"TZ=Europe/Berlin 30 9 * * *", "Europe/Berlin", "2025-01-02 00:00:00", "2025-01-02 08:30:00"},
		{"CRON_TZ=Asia/Kolkata @daily", "", "2025-01-02 00:00:00", "2025-01-02 18:30:00"},
		{"@hourly", "", "2025-01-02 00:00:00", "2025-01-02 01:00:00"},
		{"@weekly", "", "2025-01-02 00:00:00", "2025-01-05 00:00:00"},
		{"0 0 13 * 5", "", "2025-06-01 00:00:00", "2025-06-06 00:00:00"}, // the 13th, and each Friday
		{"@every 1h30m", "", "2025-01-02 00:00:00", "2025-01-02 01:30:00"},
		{"@every 7s", "", "1970-01-01 00:00:14", "1970-01-01 00:00:21"},
		{"@every 1h", "Europe/Berlin", "2025-01-02 00:00:00", "2025-01-02 01:00:00"},
	} {
		tt, err := newTimetable(c.spec, c.zone, 0)
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		if got := tt.Next(utc(t, c.after)); !got.Equal(utc(t, c.want)) {
			t.Errorf("%s: after %s comes %v, expected %s", c.spec, c.after, got, c.want)
		}
	}
	for _, c := range []struct{ spec, zone, want string }{
		{"", "", "expected five fields"},
		{"* * * *", "", "expected exactly 5 fields"},
		{"* * * * * *", "", "expected exactly 5 fields"},
		{"61 * * * *", "", "above maximum"},
		{"@fortnightly", "", "unrecognized descriptor"},
		{"@every", "", "expected five fields"},
		{"@every soon", "", "expected a duration"},
		{"@every -1s", "", "positive"},
		{"@every 1500us", "", "whole milliseconds"},
		{"0 0 31 2 *", "", "never ticks"},
		{", * * * *", "", "never ticks"},
		{"@daily", "Europe/Atlantis", "not known on this machine"},
		{"@daily", "Local", "differs between machines"},
		{"CRON_TZ=Europe/Berlin @daily", "UTC", "names another zone"},
		{"CRON_TZ=Europe/Berlin", "", "expected five fields"},
	} {
		if _, err := newTimetable(c.spec, c.zone, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in %q: %v, expected an error with %q", c.spec, c.zone, err, c.want)
		}
	}
}

func TestTicksWithinBounds(t *testing.T) {
	tt := table(t, "@every 7m")
	tt.from, tt.until = utc(t, "2025-01-02 00:01:00"), utc(t, "2025-01-02 00:16:00")
	var got []string
	for at := utc(t, "2025-01-01 00:00:00"); ; {
		if at = tt.Next(at); at.IsZero() {
			break
		}
		got = append(got, at.Format(time.TimeOnly))
	}
	if want := "00:01:00 00:08:00 00:15:00"; strings.Join(got, " ") != want {
		t.Errorf("ticks at %v, expected %s", got, want)
	}
	tt = table(t, "0 * * * *")
	tt.from, tt.until = utc(t, "2025-01-02 03:00:00"), utc(t, "2025-01-02 04:00:00")
	if got := tt.Next(utc(t, "2025-01-01 00:00:00")); !got.Equal(tt.from) {
		t.Errorf("the first tick is at %v, expected %v", got, tt.from)
	}
	if got := tt.Next(tt.from); !got.IsZero() {
		t.Errorf("a tick at %v, and none was expected from %v on", got, tt.until)
	}
}

// TestJitter: the jitter is the same for the same tick, differs between ticks and entries, and covers its range.
func TestJitter(t *testing.T) {
	tt, other := table(t, "* * * * *"), table(t, "* * * * *")
	tt.jitter, other.jitter, other.name = time.Minute, time.Minute, "f"
	var lowest, highest time.Duration = time.Hour, 0
	same := 0
	at := utc(t, "2025-01-02 00:00:00")
	for range 1000 {
		at = tt.Next(at)
		d := tt.Due(at).Sub(at)
		lowest, highest = min(lowest, d), max(highest, d)
		if d != tt.Due(at.In(time.FixedZone("x", 3600))).Sub(at) {
			t.Fatalf("the jitter of %v depends on more than the tick", at)
		}
		if other.Due(at).Equal(tt.Due(at)) {
			same++
		}
	}
	if lowest < 0 || lowest > time.Second || highest > time.Minute || highest < 59*time.Second || same > 10 {
		t.Errorf("jitter from %v to %v, %d of 1000 like those of another entry", lowest, highest, same)
	}
	tt.jitter = 0
	if !tt.Due(at).Equal(at) {
		t.Errorf("without jitter, %v is due at %v", at, tt.Due(at))
	}
}

func TestLastTicks(t *testing.T) {
	for _, c := range []struct {
		spec, after, upTo string
		n                 int
		want              string
	}{
		{"@every 1s", "2025-01-01 00:00:00", "2025-03-01 00:00:00", 2, "2025-02-28 23:59:59,2025-03-01 00:00:00"},
		{"@every 1s", "2025-01-01 00:00:00", "2025-01-01 00:00:01", 5, "2025-01-01 00:00:01"},
		{"@every 24h", "2025-01-01 00:00:00", "2025-01-05 12:00:00", 2, "2025-01-04 00:00:00,2025-01-05 00:00:00"},
		{
			"0 0 1 1 *", "2000-01-01 00:00:00", "2025-06-01 00:00:00", 3,
			"2023-01-01 00:00:00,2024-01-01 00:00:00,2025-01-01 00:00:00",
		},
		{"* * * * *", "2024-01-01 00:00:00", "2025-06-01 00:00:30", 2, "2025-05-31 23:59:00,2025-06-01 00:00:00"},
		{"* * * * *", "2025-01-01 00:00:00", "2025-01-01 00:00:59", 2, ""},
	} {
		var got []string
		for _, at := range table(t, c.spec).last(utc(t, c.after), utc(t, c.upTo), c.n) {
			got = append(got, at.UTC().Format(time.DateTime))
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("%s: the last %d of (%s, %s] are %v, expected %s", c.spec, c.n, c.after, c.upTo, got, c.want)
		}
	}
	// A tick at the time when the entry ends does not take place, and does not count as the last one.
	ended := table(t, "@every 1s")
	ended.until = utc(t, "2025-03-01 00:00:00")
	got := ended.last(utc(t, "2025-01-01 00:00:00"), ended.until, 2)
	if len(got) != 2 || !got[1].Equal(ended.until.Add(-time.Second)) {
		t.Errorf("the last 2 before the end are %v", got)
	}
}
