package delayedprom

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFunctionLabel(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":                              "",
		"example.com/app/mail.Welcome":  "example.com/app/mail.Welcome",
		"a\x1b[31m\n\u202e\xff":         `a\x1b[31m\n\u202e\xff`,
		strings.Repeat("x", 200):        strings.Repeat("x", 200),
		strings.Repeat("x", 201):        strings.Repeat("x", 197) + "…",
		"x" + strings.Repeat("ü", 1000): "x" + strings.Repeat("ü", 98) + "…",
	} {
		if got := functionLabel(path); got != want || len(got) > longestLabel || !utf8.ValidString(got) {
			t.Errorf("%q: %q, expected %q", path, got, want)
		}
	}
}
