package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect/call"
)

// parseSpan reads a positive duration, such as 90s, 1d12h or 2w.
func parseSpan(text string) (time.Duration, error) {
	d, err := call.ParseDuration(strings.ReplaceAll(text, " ", ""))
	if err == nil && d <= 0 {
		err = fmt.Errorf("expected a positive duration, found %.100q", text)
	}
	return d, err
}

// spellSpan writes a duration as parseSpan reads it.
func spellSpan(d time.Duration) string {
	text := ""
	if days := d / day; days > 0 {
		text, d = strconv.Itoa(int(days))+"d", d%day
	}
	if d == 0 && text != "" {
		return text
	}
	text += d.String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}

// parseWhen reads a duration from now on, or a time, in UTC if it has no zone.
func parseWhen(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04",
		time.DateOnly,
	} {
		if t, err := time.Parse(layout, strings.TrimSuffix(text, " UTC")); err == nil {
			return t, nil
		}
	}
	d, err := parseSpan(strings.TrimPrefix(text, "in "))
	if err != nil {
		return time.Time{}, fmt.Errorf("expected a duration from now on, such as 15m, 2h30m or 7d, or a time in UTC, "+
			"such as 2026-01-31 15:04, found %.100q", text)
	}
	return now.Add(d), nil
}
