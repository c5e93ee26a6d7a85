//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"math"
	"math/bits"
	"unicode/utf8"
)

// The functions below check one scalar value at b[i:] against the type of n. They return the position after the value,
// and the value itself where that is not as easily read again.

// mismatch returns the error for a value at b[i:] that does not fit n. more gives the reason if the kind of value fits.
func mismatch(n *node, b []byte, i int, more string) *ValueError {
	return &ValueError{Want: n.want(), Got: found(b, i) + more}
}

const (
	outOfRange = ", out of range"
	inexact    = ", which it cannot hold exactly"
	notUTF8    = " that is not UTF-8"
)

func leafBool(n *node, b []byte, i int) (next int, err *ValueError) {
	if i < len(b) && b[i]|1 == codeTrue {
		return i + 1, nil
	}
	return 0, mismatch(n, b, i, "")
}

func leafInt(n *node, b []byte, i int) (next int, err *ValueError) {
	u, neg, next := intAt(b, i)
	if next < 0 {
		return 0, mismatch(n, b, i, "")
	}
	if v := int64(u); neg != (v < 0) || v>>(n.bits-1) != v>>63 {
		return 0, mismatch(n, b, i, outOfRange)
	}
	return next, nil
}

func leafUint(n *node, b []byte, i int) (next int, err *ValueError) {
	u, neg, next := intAt(b, i)
	if next < 0 {
		return 0, mismatch(n, b, i, "")
	}
	if neg || u>>(n.bits-1)>>1 != 0 {
		return 0, mismatch(n, b, i, outOfRange)
	}
	return next, nil
}

// leafFloat reads a float, or an integer if the float type can hold it exactly.
func leafFloat(n *node, b []byte, i int) (v float64, next int, err *ValueError) {
	v, single, next := floatAt(b, i)
	if next >= 0 {
		if n.bits == 64 || single {
			return v, next, nil
		}
		if f := float64(float32(v)); f == v || math.IsNaN(v) {
			return f, next, nil
		}
		return 0, 0, mismatch(n, b, i, inexact)
	}
	u, neg, next := intAt(b, i)
	if next < 0 {
		return 0, 0, mismatch(n, b, i, "")
	}
	magnitude := u
	if neg {
		magnitude = -u
	}
	digits := 53
	if n.bits == 32 {
		digits = 24
	}
	if bits.Len64(magnitude)-bits.TrailingZeros64(magnitude) > digits {
		return 0, 0, mismatch(n, b, i, inexact)
	}
	v = float64(magnitude)
	if neg {
		v = -v
	}
	return v, next, nil
}

// leafString returns where the text begins and ends; the next value begins at end.
func leafString(n *node, b []byte, i int) (start, end int, err *ValueError) {
	start, end = strAt(b, i)
	if end < 0 {
		return 0, 0, mismatch(n, b, i, "")
	}
	if !utf8.Valid(b[start:end]) {
		return 0, 0, mismatch(n, b, i, notUTF8)
	}
	return start, end, nil
}

// leafBytes returns where the data begins and ends, for []byte and [n]byte. Callers handle nil.
func leafBytes(n *node, b []byte, i int) (start, end int, err *ValueError) {
	start, end = binAt(b, i)
	if end < 0 || n.op == opByteArray && end-start != n.len {
		return 0, 0, mismatch(n, b, i, "")
	}
	return start, end, nil
}

func leafTime(n *node, b []byte, i int) (next int, err *ValueError) {
	if _, next = timeAt(b, i); next < 0 {
		return 0, mismatch(n, b, i, "")
	}
	return next, nil
}
