//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"
)

// The first bytes of MessagePack values. The first two hold a length in their lower four bits; others that hold a value
// or a length themselves are not listed.
const (
	codeMap      = 0x80
	codeArray    = 0x90
	codeNil      = 0xc0
	codeNever    = 0xc1
	codeFalse    = 0xc2
	codeTrue     = 0xc3
	codeBin8     = 0xc4
	codeBin16    = 0xc5
	codeBin32    = 0xc6
	codeExt8     = 0xc7
	codeExt16    = 0xc8
	codeExt32    = 0xc9
	codeFloat32  = 0xca
	codeFloat64  = 0xcb
	codeUint8    = 0xcc
	codeUint16   = 0xcd
	codeUint32   = 0xce
	codeUint64   = 0xcf
	codeInt8     = 0xd0
	codeInt16    = 0xd1
	codeInt32    = 0xd2
	codeInt64    = 0xd3
	codeFixExt1  = 0xd4
	codeFixExt4  = 0xd6
	codeFixExt8  = 0xd7
	codeFixExt16 = 0xd8
	codeStr8     = 0xd9
	codeStr16    = 0xda
	codeStr32    = 0xdb
	codeArray16  = 0xdc
	codeArray32  = 0xdd
	codeMap16    = 0xde
	codeMap32    = 0xdf

	extTime = 0xff // extension type −1
)

// The functions below read b[i:]. They return the position where the value's content or the next value begins, or a
// negative number if there is another kind of value or the bytes end too early. They accept every width that
// MessagePack has for a number or length, even a wider one than necessary.

// uintBE reads the w bytes of a length or number at b[i:]; ok is false if b ends before them.
func uintBE(b []byte, i, w int) (v uint64, ok bool) {
	if i < 0 || w > len(b)-i {
		return 0, false
	}
	switch w {
	case 1:
		return uint64(b[i]), true
	case 2:
		return uint64(binary.BigEndian.Uint16(b[i:])), true
	case 4:
		return uint64(binary.BigEndian.Uint32(b[i:])), true
	default:
		return binary.BigEndian.Uint64(b[i:]), true
	}
}

// spanBE reads a length of w bytes at b[i:] and returns the range of the content that follows it.
func spanBE(b []byte, i, w int) (start, end int) {
	n, ok := uintBE(b, i, w)
	if !ok || n > uint64(len(b)-i-w) {
		return 0, -1
	}
	return i + w, i + w + int(n)
}

// strAt reads a string: its bytes are b[start:end].
func strAt(b []byte, i int) (start, end int) {
	if uint(i) >= uint(len(b)) {
		return 0, -1
	}
	switch c := b[i]; {
	case c&0xe0 == 0xa0:
		if n := int(c & 31); n <= len(b)-i-1 {
			return i + 1, i + 1 + n
		}
		return 0, -1
	case c >= codeStr8 && c <= codeStr32:
		return spanBE(b, i+1, 1<<(c-codeStr8))
	}
	return 0, -1
}

// binAt reads binary data: its bytes are b[start:end].
func binAt(b []byte, i int) (start, end int) {
	if uint(i) >= uint(len(b)) {
		return 0, -1
	}
	if c := b[i]; c >= codeBin8 && c <= codeBin32 {
		return spanBE(b, i+1, 1<<(c-codeBin8))
	}
	return 0, -1
}

// arrayAt reads the header of an array of n values. It fails when fewer than n bytes follow, so callers may allocate
// for n values.
func arrayAt(b []byte, i int) (n, next int) { return headerAt(b, i, codeArray, codeArray16, 1) }

// mapAt reads the header of a map of n pairs. It fails when fewer than 2n bytes follow.
func mapAt(b []byte, i int) (n, next int) { return headerAt(b, i, codeMap, codeMap16, 2) }

// headerAt reads a header as appendHeader writes it, of n elements of at least size bytes each.
func headerAt(b []byte, i int, code, code16 byte, size int) (n, next int) {
	if uint(i) >= uint(len(b)) {
		return 0, -1
	}
	switch c := b[i]; {
	case c&0xf0 == code:
		n, next = int(c&15), i+1
	case c == code16 || c == code16+1:
		w := 2 << (c - code16)
		v, ok := uintBE(b, i+1, w)
		if !ok || v > uint64(len(b)) {
			return 0, -1
		}
		n, next = int(v), i+1+w
	default:
		return 0, -1
	}
	if n*size > len(b)-next {
		return 0, -1
	}
	return n, next
}

// intAt reads an integer. u holds its two's complement: a negative number when neg is true, else up to 2⁶⁴−1.
func intAt(b []byte, i int) (u uint64, neg bool, next int) {
	if uint(i) >= uint(len(b)) {
		return 0, false, -1
	}
	c := b[i]
	if c <= 0x7f {
		return uint64(c), false, i + 1
	}
	if c >= 0xe0 {
		return uint64(int8(c)), true, i + 1
	}
	var s int64
	switch rest := b[i+1:]; {
	case c == codeUint8 && len(rest) >= 1:
		return uint64(rest[0]), false, i + 2
	case c == codeUint16 && len(rest) >= 2:
		return uint64(binary.BigEndian.Uint16(rest)), false, i + 3
	case c == codeUint32 && len(rest) >= 4:
		return uint64(binary.BigEndian.Uint32(rest)), false, i + 5
	case c == codeUint64 && len(rest) >= 8:
		return binary.BigEndian.Uint64(rest), false, i + 9
	case c == codeInt8 && len(rest) >= 1:
		s, next = int64(int8(rest[0])), i+2
	case c == codeInt16 && len(rest) >= 2:
		s, next = int64(int16(binary.BigEndian.Uint16(rest))), i+3
	case c == codeInt32 && len(rest) >= 4:
		s, next = int64(int32(binary.BigEndian.Uint32(rest))), i+5
	case c == codeInt64 && len(rest) >= 8:
		s, next = int64(binary.BigEndian.Uint64(rest)), i+9
	default:
		return 0, false, -1
	}
	return uint64(s), s < 0, next
}

// floatAt reads a float; single reports whether b holds it as a float32.
func floatAt(b []byte, i int) (f float64, single bool, next int) {
	if uint(i) < uint(len(b)) {
		switch b[i] {
		case codeFloat32:
			if v, ok := uintBE(b, i+1, 4); ok {
				return float64(math.Float32frombits(uint32(v))), true, i + 5
			}
		case codeFloat64:
			if v, ok := uintBE(b, i+1, 8); ok {
				return math.Float64frombits(v), false, i + 9
			}
		}
	}
	return 0, false, -1
}

// unixYearOne is the Unix time of year 1, from which time.Time counts its seconds. Times after maxUnix would overflow
// that count.
const (
	unixYearOne = -62135596800
	maxUnix     = math.MaxInt64 + unixYearOne
)

// timeAt reads a timestamp, extension −1, in any of its three widths.
func timeAt(b []byte, i int) (t time.Time, next int) {
	if i < 0 || len(b)-i < 6 {
		return time.Time{}, -1
	}
	var sec int64
	var nsec uint64
	switch {
	case b[i] == codeFixExt4 && b[i+1] == extTime:
		sec, next = int64(binary.BigEndian.Uint32(b[i+2:])), i+6
	case b[i] == codeFixExt8 && b[i+1] == extTime && len(b)-i >= 10:
		v := binary.BigEndian.Uint64(b[i+2:])
		sec, nsec, next = int64(v&(1<<34-1)), v>>34, i+10
	case b[i] == codeExt8 && b[i+1] == 12 && b[i+2] == extTime && len(b)-i >= 15:
		nsec = uint64(binary.BigEndian.Uint32(b[i+3:]))
		sec, next = int64(binary.BigEndian.Uint64(b[i+7:])), i+15
	default:
		return time.Time{}, -1
	}
	if nsec > 999_999_999 || sec > maxUnix {
		return time.Time{}, -1
	}
	return time.Unix(sec, int64(nsec)).UTC(), next
}

// ArrayHeader reads the header of an array from the front of b. ok is false when there is none, or when b is too short
// for n values.
func ArrayHeader(b []byte) (n int, rest []byte, ok bool) {
	n, next := arrayAt(b, 0)
	if next < 0 {
		return 0, nil, false
	}
	return n, b[next:], true
}

// Found names the kind and size of the value at the front of b for error messages. It does not show the content, which
// may be secret, because errors are logged and stored.
func Found(b []byte) string { return found(b, 0) }

func found(b []byte, i int) string {
	if i >= len(b) {
		return "the end of the bytes"
	}
	c := b[i]
	if _, _, next := intAt(b, i); next >= 0 {
		return "integer"
	}
	if _, _, next := floatAt(b, i); next >= 0 {
		return "float"
	}
	if start, end := strAt(b, i); end >= 0 {
		return "string of " + count(end-start, "byte")
	}
	if start, end := binAt(b, i); end >= 0 {
		return "binary of " + count(end-start, "byte")
	}
	if n, next := arrayAt(b, i); next >= 0 {
		return "array of " + count(n, "value")
	}
	if n, next := mapAt(b, i); next >= 0 {
		return "map of " + count(n, "pair")
	}
	if _, next := timeAt(b, i); next >= 0 {
		return "timestamp"
	}
	switch c {
	case codeNil:
		return "nil"
	case codeTrue, codeFalse:
		return "boolean"
	case codeNever:
		return "byte 0xc1, which MessagePack never uses"
	case codeExt8, codeExt16, codeExt32, codeFixExt1, codeFixExt1 + 1, codeFixExt4, codeFixExt8, codeFixExt16:
		return foundExt(b, i)
	}
	return kindOf(c) + " that is cut off"
}

// foundExt names an extension that is not a valid timestamp.
func foundExt(b []byte, i int) string {
	at := i + 1
	if c := b[i]; c <= codeExt32 {
		at += 1 << (c - codeExt8)
	}
	if at >= len(b) {
		return "extension that is cut off"
	}
	if b[at] == extTime {
		return "timestamp that is out of range or cut off"
	}
	return fmt.Sprintf("extension type %d", int8(b[at]))
}

// kindOf names the kind of value that begins with c.
func kindOf(c byte) string {
	switch {
	case c&0xe0 == 0xa0 || c >= codeStr8 && c <= codeStr32:
		return "string"
	case c >= codeBin8 && c <= codeBin32:
		return "binary"
	case c&0xf0 == 0x90 || c == codeArray16 || c == codeArray32:
		return "array"
	case c&0xf0 == 0x80 || c == codeMap16 || c == codeMap32:
		return "map"
	case c == codeFloat32 || c == codeFloat64:
		return "float"
	}
	return "integer"
}

// count returns n and the noun, such as "1 byte" or "2 bytes".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
