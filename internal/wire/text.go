package wire

import (
	"strconv"
	"strings"
	"unicode"
)

// IsControl reports whether r is a control character or a Unicode line or paragraph separator.
func IsControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// OneLine escapes the control characters of s as Go writes them, so that a text that comes with a task cannot look like
// several lines.
func OneLine(s string) string { return escaped(s, IsControl) }

// manyLines is OneLine for a text with several lines, such as a stack: it keeps line feeds and tabs.
func manyLines(s string) string {
	return escaped(s, func(r rune) bool { return IsControl(r) && r != '\n' && r != '\t' })
}

func escaped(s string, which func(rune) bool) string {
	if !strings.ContainsFunc(s, which) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if which(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
