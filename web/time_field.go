package web

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var longUnits = regexp.MustCompile(`^(?:(\d{1,5})w)?(?:(\d{1,5})d)?(.*)$`)

// parseSpan reads a positive duration as Go writes it, with days and weeks besides: 90s, 1d12h, 2w.
func parseSpan(text string) (time.Duration, error) {
	parts := longUnits.FindStringSubmatch(strings.ReplaceAll(text, " ", ""))
	if parts == nil { // a line end
		parts = make([]string, 4)
	}
	weeks, _ := strconv.Atoi(parts[1]) // digits, or nothing
	days, _ := strconv.Atoi(parts[2])
	sum := time.Duration(weeks*7+days) * day
	rest, err := time.Duration(0), error(nil)
	if parts[3] != "" || sum == 0 {
		rest, err = time.ParseDuration(parts[3])
	}
	if err != nil || rest < 0 || rest > math.MaxInt64-sum || sum+rest == 0 {
		return 0, fmt.Errorf("expected a duration such as 90s, 15m, 2h30m or 7d, found %.100q", text)
	}
	return sum + rest, nil
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

// parseWhen reads a time, in UTC if it has no zone, or a duration from now on.
func parseWhen(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly,
	} {
		if t, err := time.Parse(layout, strings.TrimSuffix(text, " UTC")); err == nil {
			return t, nil
		}
	}
	d, err := parseSpan(strings.TrimPrefix(text, "in "))
	if err != nil {
		return time.Time{}, fmt.Errorf("expected a duration from now on, such as 15m, 2h30m or 7d, or a time in UTC, such "+
			"as 2026-01-31 15:04, found %.100q", text)
	}
	return now.Add(d), nil
}
