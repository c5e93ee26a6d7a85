package delayedotel

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "abc": "abc", "abcdef": "abcde", "abcdé": "abcd", "\xff": "\uFFFD", "\xff\xff": "\uFFFD",
		"éé\xff": "éé", "日本": "日",
	} {
		if got := text(s, 5); got != want || !utf8.ValidString(got) || len(got) > 5 {
			t.Errorf("%q: expected %q, found %q", s, want, got)
		}
	}
}

func TestNames(t *testing.T) {
	n := names{most: 2}
	long := strings.Repeat("x", 2*maxName)
	for _, test := range [][2]string{
		{"a", "a"}, {long, long[:maxName]}, {"b", other}, {"a", "a"}, {long + "y", long[:maxName]},
	} {
		if got := n.of(test[0]); got != test[1] {
			t.Errorf("%.20q: expected %.20q, found %.20q", test[0], test[1], got)
		}
	}
}
