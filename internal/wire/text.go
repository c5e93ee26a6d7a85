package wire

import (
	"strconv"
	"strings"
	"unicode"
)

// IsControl reports whether r is a control character or a Unicode line or paragraph separator.
func IsControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// misleads reports whether r is a control character, or turns the direction of writing, so that a text looks like
// another one.
func misleads(r rune) bool { return IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// OneLine escapes the control characters of s as Go writes them, and the marks that turn the direction of writing, so
// that a text that comes with a task cannot look like several lines or like another text.
func OneLine(s string) string { return escaped(s, misleads) }

// manyLines is OneLine for a text with several lines, such as a stack: it keeps line feeds and tabs.
func manyLines(s string) string {
	return escaped(s, func(r rune) bool { return misleads(r) && r != '\n' && r != '\t' })
}

// isPrintableASCII reports whether that is all that s has, as most texts do.
func isPrintableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func escaped(s string, which func(rune) bool) string {
	if isPrintableASCII(s) || !strings.ContainsFunc(s, which) {
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
