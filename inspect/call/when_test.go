package call

import (
	"strings"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"90s": "1m30s", "7d": "168h0m0s", "1w": "168h0m0s", "1d12h": "36h0m0s", "0": "0s", "-1h": "-1h0m0s",
	} {
		d, err := ParseDuration(text)
		if err != nil || d.String() != want {
			t.Errorf("%s is %v, %v, expected %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "7", "d", "1y", "99999999999d", "1h7d"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v, expected an error", text, d)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"short": "short", "a\u202eb": `a\u202eb`, strings.Repeat("é", 30): strings.Repeat("é", 9) + "…",
		strings.Repeat("x", 1<<20): strings.Repeat("x", 9) + "…",
	} {
		if got := Clip(given, 10); got != want {
			t.Errorf("%.20q is clipped to %q, expected %q", given, got, want)
		}
	}
	for _, text := range []string{"yesterday", "", "2026-13-01"} {
		if at, err := ParseTime(text, time.Local); err == nil {
			t.Errorf("%q is %v, expected an error", text, at)
		}
	}
	if at, err := ParseTime("2026-01-31T15:04:05Z", nil); err != nil || at.Unix() != 1769871845 {
		t.Errorf("found %v, %v", at, err)
	}
}
