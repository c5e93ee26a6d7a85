//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"fmt"
	"math"
)

// Check reports whether b is exactly one well-formed MessagePack value within lim: nothing cut off, nothing after it,
// only strings, integers and booleans as map keys, and no extensions except timestamps. The error is a *FormatError.
// Check does not recurse and, when it accepts, does not allocate. It refuses a header whose length exceeds the rest of
// b as soon as it reads that header.
func Check(b []byte, lim Limits) error {
	if len(b) > lim.Bytes {
		return TooLong(len(b), lim)
	}
	next, _, err := skim(b, 0, lim.Elems, lim.Depth, strict)
	if err != nil {
		return err
	}
	if next != len(b) {
		return trailing(b, next)
	}
	return nil
}

// Skip returns the bytes after the first value of b, and the number of values in that one, itself included. It returns
// no error for bytes that Check or Parse has accepted. It does not recurse or allocate.
func Skip(b []byte) (rest []byte, values int, err error) {
	next, left, err := skim(b, 0, math.MaxInt32, depthCap, strict)
	if err != nil {
		return nil, 0, err
	}
	return b[next:], math.MaxInt32 - left, nil
}

// Whether skim accepts values beyond those that the codecs read.
const (
	strict = false // no
	loose  = true  // also every map key and extension: values of Python, which Go passes on without decoding them
)

// nesting is what errors expect of values that are nested too deep.
const nesting = "at most %d arrays and maps inside one another"

// skim walks over the value at b[i:] and returns the position after it and how many of elems are left.
func skim(b []byte, i, elems, depth int, anything bool) (next, left int, err error) {
	depth, elems = min(depth, depthCap), min(elems, math.MaxInt32)
	var outer [depthCap + 1]uint32 // values that are still to come in each enclosing container
	var maps uint64                // bit d is set if container d is a map
	d, owed, total := 0, uint32(1), 1
	if elems < 1 {
		return 0, 0, tooMany(i, elems)
	}
	for {
		for owed == 0 {
			if d == 0 {
				return i, elems, nil
			}
			d--
			owed = outer[d]
		}
		// Every value that is still to come takes at least one byte, so more such values than bytes left show that a
		// header gives a false length.
		if total > len(b)-i {
			return 0, 0, cutOff(b, i, total)
		}
		key := maps>>d&1 == 1 && owed&1 == 0
		owed--
		total--
		elems--
		at, c := i, b[i]
		i++
		n, header, badKey := uint64(0), false, false // n bytes to skip, or n values to come
		width := 0                                   // of the number after c that says n; 0: there is none
		switch {
		case c <= 0x7f || c >= 0xe0:
			continue
		case c <= 0x8f:
			n, header = uint64(c&15)*2, true
		case c <= 0x9f:
			n, header = uint64(c&15), true
		case c <= 0xbf:
			n = uint64(c & 31)
		case c == codeNil:
			badKey = true
		case c == codeTrue || c == codeFalse:
		case c >= codeBin8 && c <= codeBin32:
			width, badKey = 1<<(c-codeBin8), true
		case c == codeFloat32 || c == codeFloat64:
			n, badKey = 4<<(c-codeFloat32), true
		case c >= codeUint8 && c <= codeInt64:
			n = 1 << (c & 3)
		case c >= codeStr8 && c <= codeStr32:
			width = 1 << (c - codeStr8)
		case c == codeArray16 || c == codeArray32:
			width, header = 2<<(c-codeArray16), true
		case c == codeMap16 || c == codeMap32:
			width, header = 2<<(c-codeMap16), true
		case c == codeNever:
			return 0, 0, wrong(b, at, "a value")
		default: // extensions
			if _, end := timeAt(b, at); end < 0 && !anything {
				return 0, 0, wrong(b, at, "a value, with timestamps as the only extension")
			}
			if n, badKey = 1, true; c <= codeExt32 { // n: the extension's type
				width = 1 << (c - codeExt8)
			} else {
				n += 1 << (c - codeFixExt1)
			}
		}
		ok := true
		if width > 0 {
			var v uint64
			v, ok = uintBE(b, i, width)
			if n, i = n+v, i+width; c >= codeMap16 {
				n += v // keys and values
			}
		}
		if !ok || n > uint64(len(b)-i) {
			return 0, 0, wrong(b, at, "a whole value")
		}
		if key && (header || badKey) && !anything {
			return 0, 0, wrong(b, at, "a string, integer or boolean as map key")
		}
		if !header {
			i += int(n)
			continue
		}
		if d >= depth {
			return 0, 0, &FormatError{at, fmt.Sprintf(nesting, depth), "one more"}
		}
		total += int(n)
		if total > elems {
			return 0, 0, tooMany(at, total-elems)
		}
		outer[d] = owed
		d++
		owed = uint32(n)
		if c <= 0x8f || c >= codeMap16 {
			maps |= 1 << d
		} else {
			maps &^= 1 << d
		}
	}
}

// wrong returns the error for what is at raw[i:].
func wrong(raw []byte, i int, want string, args ...any) error {
	return &FormatError{Offset: i, Want: fmt.Sprintf(want, args...), Got: found(raw, i)}
}

// TooLong returns the error for a message of n bytes, which is more than lim allows.
func TooLong(n int, lim Limits) error {
	return &FormatError{Offset: lim.Bytes, Want: "at most " + count(lim.Bytes, "byte"), Got: count(n, "byte")}
}

func tooMany(at, more int) error {
	return &FormatError{at, "no more values than the limit allows", fmt.Sprintf("%d too many", max(more, 1))}
}

func cutOff(b []byte, at, total int) error {
	return &FormatError{Offset: at, Want: count(total, "value") + " more", Got: "only " + count(len(b)-at, "byte")}
}

func trailing(b []byte, next int) error {
	return &FormatError{Offset: next, Want: "the end", Got: count(len(b)-next, "byte") + " more"}
}

// TextKeys reports whether all keys of the maps in b are strings. Check must have accepted b.
func TextKeys(b []byte) bool {
	_, ok := textKeys(b, 0)
	return ok
}

// textKeys is TextKeys for the value at b[i:]; next is the position after that value. It may recurse, since values are
// nested at most depthCap deep.
func textKeys(b []byte, i int) (next int, ok bool) {
	pairs, next := mapAt(b, i)
	if next >= 0 {
		for range pairs {
			_, end := strAt(b, next)
			if end < 0 {
				return next, false
			}
			if next, ok = textKeys(b, end); !ok {
				return next, false
			}
		}
		return next, true
	}
	values, next := arrayAt(b, i)
	if next >= 0 {
		for range values {
			if next, ok = textKeys(b, next); !ok {
				return next, false
			}
		}
		return next, true
	}
	next, _, err := skim(b, i, 1, 0, loose)
	return next, err == nil
}
