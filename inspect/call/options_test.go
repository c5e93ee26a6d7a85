package call

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// TestReadOptions has a row for each option, and for each way of writing one wrongly.
func TestReadOptions(t *testing.T) {
	t.Parallel()
	texts := func(pairs ...string) map[string][]string {
		given := map[string][]string{}
		for i := 0; i < len(pairs); i += 2 {
			given[pairs[i]] = append(given[pairs[i]], pairs[i+1])
		}
		return given
	}
	read := map[string]bool{}
	for _, test := range []struct {
		given map[string][]string
		want  string // the options, or behind ! a part of the error
	}{
		{nil, ""},
		{texts("in", "1d12h"), "In(36h0m0s)"},
		{texts("in", "soon"), "!in: expected a duration"},
		{texts("in", "-1h"), "!in: expected a duration that is not negative"},
		{texts("at", "2026-01-31 15:04"), "At(2026-01-31T15:04:00Z)"},
		{texts("at", "tomorrow"), "!at: expected a time"},
		{texts("max-retry", "0"), "MaxRetry(0)"},
		{texts("max-retry", "-1"), "!max-retry: expected a whole number, 0 or more"},
		{texts("max-retry", "many"), "!max-retry: expected a whole number, 0 or more"},
		{texts("backoff", "1s,1m", "backoff", "1h"), "Backoff(1s, 1m0s, 1h0m0s)"},
		{texts("backoff", "1s,soon"), "!backoff: expected a duration"},
		{texts("max-backoff", "1h"), "MaxBackoff(1h0m0s)"},
		{texts("retry-until", "2100-01-01T00:00:00Z"), "RetryUntil(2100-01-01T00:00:00Z)"},
		{texts("timeout", "0"), "Timeout(0s)"},
		{texts("deadline", "2100-01-01"), "Deadline(2100-01-01T00:00:00Z)"},
		{texts("ttl", "2w"), "TTL(336h0m0s)"},
		{texts("unique", "1h"), "Unique(1h0m0s)"},
		{texts("unique", "1h", "unique-key", "k"), `UniqueKey("k", 1h0m0s)`},
		{texts("unique-key", "k"), "!unique-key: expected unique too"},
		{texts("unique-key", "k", "debounce", "1s"), `UniqueKey("k", 168h0m0s) Debounce(1s)`},
		{texts("until-start", "true", "front", "false"), "UntilStart()"},
		{texts("until-start", "yes"), "!until-start: expected true or false"},
		{texts("on-conflict", "skip"), "OnConflict(ConflictSkip)"},
		{texts("on-conflict", "win"), "!on-conflict: expected fail, skip or replace, found \"win\""},
		{texts("id", "a b"), `TaskID("a b")`},
		{texts("retention", "1d", "keep-result", "1h"), "Retention(24h0m0s) KeepResult(1h0m0s)"},
		{texts("group", "g"), `Group("g")`},
		{texts("header", "a=b=c", "header", "d="), `Header("a", "b=c") Header("d", "")`},
		{texts("header", "a"), "!header: expected KEY=VALUE"},
		{texts("front", "true"), "Front()"},
	} {
		options, err := ReadOptions(test.given, time.UTC)
		if want, wrong := strings.CutPrefix(test.want, "!"); wrong {
			if !errors.As(err, new(*OptionError)) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: expected an error with %q, found %v", test.given, want, err)
			}
			continue
		}
		var found []string
		for _, o := range options {
			found = append(found, fmt.Sprint(o))
		}
		if all := strings.Join(found, " "); err != nil || all != test.want {
			t.Errorf("%v: expected %s, found %s, %v", test.given, test.want, all, err)
		}
		for name := range test.given {
			read[name] = true
		}
	}
	for _, o := range Options {
		if !read[o.Name] {
			t.Errorf("no row has the option %s", o.Name)
		}
	}
	if _, err := ReadOptions(texts("at", "2026-01-31 15:04"), nil); err == nil {
		t.Error("expected an error of a time without a zone")
	}
}

// TestConditions writes each condition and reads it back.
func TestConditions(t *testing.T) {
	t.Parallel()
	var f inspect.Filter
	for i := range Conditions {
		c := &Conditions[i]
		text := map[string]string{"text": "a", "number": "3", "duration": "1d12h"}[c.Kind]
		if got := c.Get(&f); got != nil {
			t.Errorf("%s: expected nothing, found %q", c.Name, got)
		}
		if err := c.Set(&f, text); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if got := c.Get(&f); len(got) != 1 || got[0] != text {
			t.Errorf("%s: expected %s, found %q", c.Name, text, got)
		}
		for _, wrong := range map[string][]string{"number": {"0", "x"}, "duration": {"0s", "-1h", "x"}}[c.Kind] {
			if err := c.Set(&f, wrong); err == nil {
				t.Errorf("%s: expected an error for %s", c.Name, wrong)
			}
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 90 * time.Second: "1m30s", 48 * time.Hour: "2d", 2 * time.Hour: "2h", 25 * time.Hour: "1d1h",
	} {
		if got := exactDuration(d); got != want {
			t.Errorf("expected %s, found %s", want, got)
		}
	}
}

func TestFilterText(t *testing.T) {
	t.Parallel()
	f := inspect.Filter{
		Function: "Welcome", Error: strings.Repeat("e", 100), Headers: map[string]string{"b": "2", "a": "\x1b"},
		OlderThan: time.Hour, MaxAttempt: 3,
	}
	want := `function Welcome, error ` + strings.Repeat("e", 59) + `…, header a=\x1b, header b=2, older than 1h, ` +
		`attempt up to 3`
	if got := FilterText(&f); got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
}
