package term

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// widths measures characters in the same way on every machine, whatever its locale.
var widths = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns how many columns a printable text takes.
func Width(s string) int { return widths.StringWidth(s) }

// Clip returns a text in one printable line of at most width columns. What does not fit is replaced by an ellipsis.
func Clip(s string, width int) string {
	// A text may have a megabyte, also of characters that take no column.
	short := false
	if most := 8*width + 64; len(s) > most {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s, short = s[:most], true
	}
	s = inspect.Printable(s)
	if !short && Width(s) <= width {
		return s
	}
	return widths.Truncate(s, max(width-1, 0), "") + "…"
}

// Number writes a whole number with separators: 12,345.
func Number[N int | int64 | uint64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Count writes a number of things: 1 task, 2,000 tasks.
func Count(n int, noun string) string { return Number(n) + " " + Plural(n, noun) }

// Plural is the form of a noun that follows a number. Its plural has an s more, unless another one is given.
func Plural(n int, noun string, plural ...string) string {
	switch {
	case n == 1:
		return noun
	case len(plural) > 0:
		return plural[0]
	}
	return noun + "s"
}

// Duration writes a duration with the two units that matter, as call.FormatDuration does.
func Duration(d time.Duration) string { return call.FormatDuration(d) }

// Ago writes how far a time is from now: "5m03s ago", "in 2h00m"; "" for the zero time.
func Ago(t, now time.Time) string {
	switch d := max(now.Sub(t), -math.MaxInt64); { // Sub ends at 292 years
	case t.IsZero():
		return ""
	case d >= 0:
		return Duration(d) + " ago"
	default:
		return "in " + Duration(-d)
	}
}

// Moment writes a time in UTC, and how far it is from now; "" for the zero time.
func Moment(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z") + " (" + Ago(t, now) + ")"
}

// Bytes writes a size: 512 B, 1.5 KiB, 20 MiB.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n), -1
	for ; size >= 1024 && unit < 3; unit++ {
		size /= 1024
	}
	text := strconv.FormatFloat(size, 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + " " + string("KMGT"[unit]) + "iB"
}
