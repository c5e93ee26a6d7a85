//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"encoding/binary"
	"math"
	"time"
)

// AppendNil appends nil.
func AppendNil(dst []byte) []byte { return append(dst, codeNil) }

// AppendBool appends a boolean.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, codeTrue)
	}
	return append(dst, codeFalse)
}

// AppendInt appends an integer in the fewest bytes. Numbers that are not negative take the unsigned forms, as in
// msgpack for Python.
func AppendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return AppendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, codeInt8, byte(v))
	case v >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, codeInt16), uint16(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, codeInt32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, codeInt64), uint64(v))
}

// AppendUint appends an integer in the fewest bytes.
func AppendUint(dst []byte, v uint64) []byte {
	switch {
	case v <= 0x7f:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, codeUint8, byte(v))
	case v <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, codeUint16), uint16(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, codeUint32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, codeUint64), v)
}

// AppendFloat32 appends a float of 32 bits.
func AppendFloat32(dst []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, codeFloat32), math.Float32bits(v))
}

// AppendFloat64 appends a float of 64 bits.
func AppendFloat64(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, codeFloat64), math.Float64bits(v))
}

// AppendString appends a string of less than 4 GiB. The caller makes sure that it is valid UTF-8.
func AppendString(dst []byte, v string) []byte {
	if len(v) < 32 {
		dst = append(dst, 0xa0|byte(len(v)))
	} else {
		dst = appendLength(dst, codeStr8, len(v))
	}
	return append(dst, v...)
}

// AppendBin appends binary data of less than 4 GiB. It writes a nil slice as empty data.
func AppendBin(dst, v []byte) []byte {
	return append(appendLength(dst, codeBin8, len(v)), v...)
}

// appendLength appends the header of n bytes; code8 is that for up to 255, and the next two are those for more.
func appendLength(dst []byte, code8 byte, n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(dst, code8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, code8+1), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, code8+2), uint32(n))
}

// AppendArrayHeader appends the header of an array; the n values follow it.
func AppendArrayHeader(dst []byte, n int) []byte { return appendHeader(dst, codeArray, codeArray16, n) }

// AppendMapHeader appends the header of a map; n pairs of key and value follow it.
func AppendMapHeader(dst []byte, n int) []byte { return appendHeader(dst, codeMap, codeMap16, n) }

// appendHeader appends the header of an array or map: code is that for up to 15, code16 and the next those for more.
func appendHeader(dst []byte, code, code16 byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, code|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, code16+1), uint32(n))
}

// AppendTime appends t, without its time zone, as the shortest timestamp that holds it with its nanoseconds.
func AppendTime(dst []byte, t time.Time) []byte {
	sec, nsec := uint64(t.Unix()), uint64(t.Nanosecond())
	switch {
	case sec>>34 != 0:
		dst = binary.BigEndian.AppendUint32(append(dst, codeExt8, 12, extTime), uint32(nsec))
		return binary.BigEndian.AppendUint64(dst, sec)
	case nsec != 0 || sec > math.MaxUint32:
		return binary.BigEndian.AppendUint64(append(dst, codeFixExt8, extTime), nsec<<34|sec)
	}
	return binary.BigEndian.AppendUint32(append(dst, codeFixExt4, extTime), uint32(sec))
}

// Nil is the value nil. It must not be changed.
var Nil = AppendNil(nil)
