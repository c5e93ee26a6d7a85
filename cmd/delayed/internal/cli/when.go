package cli

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// duration is the value of a flag: a duration as Go writes it, with days and weeks besides: 90s, 1d12h, 2w. It is never
// negative.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(s string) error {
	v, err := parseDuration(s)
	if err == nil && v < 0 {
		return fmt.Errorf("expected a duration that is not negative, found %q", s)
	}
	*d = duration(v)
	return err
}

var longUnits = regexp.MustCompile(`^(?:(\d+)w)?(?:(\d+)d)?(.*)$`)

func parseDuration(s string) (time.Duration, error) {
	parts := longUnits.FindStringSubmatch(s)
	var sum time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(parts[i+1])
		if err != nil || n > 10_000 {
			return 0, fmt.Errorf("expected at most 10000 days or weeks, found %q", s)
		}
		sum += time.Duration(n) * unit
	}
	if parts[3] == "" && sum > 0 {
		return sum, nil
	}
	rest, err := time.ParseDuration(parts[3])
	if err != nil {
		return 0, fmt.Errorf("expected a duration such as 90s, 15m, 2h30m or 7d, found %q", s)
	}
	if sum > 0 && rest > math.MaxInt64-sum {
		return 0, fmt.Errorf("expected at most %s, found %q", term.Duration(math.MaxInt64), s)
	}
	return sum + rest, nil
}

// within returns an error unless a number of a flag or argument lies between bounds.
func within(name string, n, least, most int) error {
	if n < least || n > most {
		return usagef("%s %d: expected %d to %d", name, n, least, most)
	}
	return nil
}

// moment is the value of a flag: a time.
type moment struct{ time.Time }

func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

func (m *moment) Type() string { return "time" }

func (m *moment) Set(s string) error {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		t, err := time.ParseInLocation(layout, s, time.Local)
		if err == nil {
			m.Time = t
			return nil
		}
	}
	return fmt.Errorf("expected a time such as 2026-01-31T15:04:05Z, or 2026-01-31 15:04 in the local zone, "+
		"found %q", s)
}
