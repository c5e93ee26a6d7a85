package call

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var longUnits = regexp.MustCompile(`^(?:(\d+)w)?(?:(\d+)d)?(.*)$`)

// ParseDuration reads a duration as Go writes it, with days and weeks besides: 90s, 1d12h, 2w.
func ParseDuration(s string) (time.Duration, error) {
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
		return 0, fmt.Errorf("expected at most %s, found %q", FormatDuration(math.MaxInt64), s)
	}
	return sum + rest, nil
}

// ParseSpan reads a duration that is not negative; blanks in it do not matter.
func ParseSpan(s string) (time.Duration, error) {
	d, err := ParseDuration(strings.ReplaceAll(Clip(s, 100), " ", ""))
	if err == nil && d < 0 {
		err = fmt.Errorf("expected a duration that is not negative, found %s", quote(s))
	}
	return d, err
}

// layouts are the forms of times with a zone or in UTC, and of those without.
var layouts = []string{
	time.RFC3339, "2006-01-02 15:04:05 UTC", "2006-01-02 15:04 UTC",
	"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly,
}

// ParseTime reads a time; one without a zone is of the given one. If that is nil, times have one.
func ParseTime(s string, zone *time.Location) (time.Time, error) {
	some, without := layouts, ""
	switch zone {
	case nil:
		some, zone = layouts[:1], time.UTC
	case time.UTC:
		without = ", or 2026-01-31 15:04 in UTC"
	default:
		without = ", or 2026-01-31 15:04 in the local zone"
	}
	for _, layout := range some {
		if t, err := time.ParseInLocation(layout, strings.TrimSpace(s), zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("expected a time such as 2026-01-31T15:04:05Z%s, found %s", without, quote(s))
}

// ParseWhen reads a time as ParseTime does, or a duration from now on.
func ParseWhen(s string, now time.Time, zone *time.Location) (time.Time, error) {
	if t, err := ParseTime(s, zone); err == nil {
		return t, nil
	}
	d, err := ParseSpan(strings.TrimPrefix(strings.TrimSpace(s), "in "))
	if err != nil {
		return time.Time{}, fmt.Errorf("expected a duration from now on, such as 15m, 2h30m or 7d, or a time, such as "+
			"2026-01-31 15:04, found %s", quote(s))
	}
	return now.Add(d), nil
}

// FormatDuration writes a duration with the two units that matter: 250ms, 1.5s, 2m05s, 3h10m, 4d2h.
func FormatDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + FormatDuration(-max(d, -math.MaxInt64)) // the least number has no positive counterpart
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
