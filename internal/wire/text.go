package wire

import (
	"crypto/rand"
	"encoding/hex"
	mrand "math/rand/v2"
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

// MaxTaskID is the longest task id that a caller may choose, in bytes.
const MaxTaskID = 256

// idAlphabet is Crockford's base 32: digits and letters without i, l, o and u.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// TaskIDText is a random task id: 120 bits as 24 characters.
type TaskIDText [24]byte

// Fill makes a new id. The runtime's random generator is a cipher (ChaCha8), which the operating system seeds for each
// process and each thread: ids are unique across processes, and nobody can guess one.
func (t *TaskIDText) Fill() {
	const half = len(t) / 2
	a, b := mrand.Uint64(), mrand.Uint64()
	for i := range half {
		t[i], t[half+i] = idAlphabet[a&31], idAlphabet[b&31]
		a, b = a>>5, b>>5
	}
}

// NewTaskID returns a random task id.
func NewTaskID() string {
	var text TaskIDText
	text.Fill()
	return string(text[:])
}

// NewWorkerID returns 128 random bits in hexadecimal. Redis keys contain the id, so two workers must never share one.
func NewWorkerID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it is documented never to fail
	return hex.EncodeToString(random[:])
}
