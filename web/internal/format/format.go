// Package format writes numbers and times for the pages of the dashboard.
package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Number writes a number with thin spaces between thousands.
func Number[N int | int64 | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// Duration writes a duration with two or three significant digits.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + Duration(-d)
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return Significant(float64(d)/1e3) + " µs"
	case d < time.Second:
		return Significant(float64(d)/1e6) + " ms"
	case d < time.Minute:
		return Significant(d.Seconds()) + " s"
	case d < time.Hour:
		return two(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "min")
	case d > 100*365*Day:
		return "for ever"
	}
	return two(d, Day, "d", time.Hour, "h")
}

func two(d, unit time.Duration, name string, small time.Duration, smallName string) string {
	n, rest := d/unit, d%unit/small
	if rest == 0 || n >= 20 {
		return fmt.Sprintf("%d %s", n, name)
	}
	return fmt.Sprintf("%d %s %d %s", n, name, rest, smallName)
}

// Significant writes a number of up to 1,000 with two digits or all before the point.
func Significant(f float64) string {
	if f < 10 {
		return strings.TrimSuffix(strconv.FormatFloat(math.Round(f*10)/10, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(math.Round(f), 'f', 0, 64)
}

// Size writes a number of bytes.
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if f /= 1024; f < 1024 {
			return Significant(f) + " " + unit
		}
	}
	return Significant(f/1024) + " TiB"
}

// Percent writes a share of a whole; nothing of nothing is "–".
func Percent(part, whole uint64) string {
	if whole == 0 {
		return "–"
	}
	return Significant(100*float64(part)/float64(whole)) + " %"
}

// Day is a day of UTC.
const Day = 24 * time.Hour
