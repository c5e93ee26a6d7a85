//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Meta holds the metadata of an extended message. Fields that are zero are not written.
type Meta struct {
	ID          string // "id": names the task; not empty when present
	N           int    // "n": number of arguments in the payload, which is then always an array
	EnqueuedAt  int64  // "at": when it was enqueued, ms since 1970; 0 unknown
	MaxRetry    int    // "mr": how often it may be tried again
	Retried     int    // "rt": how often it was tried again
	Deaths      int    // "d": how often a worker died that had it in hand
	DiedAt      int64  // "da": when the last of them was noticed, ms since 1970; 0 never
	Extra       *Extra // metadata that few messages have; nil: none
	Rest        *Pairs // pairs that this version does not know; Append writes them after the others; nil: none
	HasN        bool   // "n" is present
	HasMaxRetry bool   // "mr" is present
}

// Pairs holds encoded keys and values in their order. Copies of a Meta share it, so nobody may change it.
type Pairs struct {
	N   int // their number
	Raw []byte
}

// isZero reports whether all fields are zero, so that there is nothing to write.
func (m *Meta) isZero() bool {
	return m.ID == "" && !m.HasN && m.EnqueuedAt == 0 && !m.HasMaxRetry && m.Retried == 0 && m.Deaths == 0 &&
		m.DiedAt == 0 && m.Extra.isZero() && m.Rest == nil
}

// Bits that stand for the keys that parse has read.
const (
	seenID = 1 << iota
	seenN
	seenAt
	seenMR
	seenRT
	seenD
	seenDA
)

// parse reads the map at raw[i:], in which there may be at most elems values.
func (m *Meta) parse(raw []byte, i, elems int, lim Limits) (next int, err error) {
	n, at := mapAt(raw, i)
	if at < 0 {
		return 0, &FormatError{Offset: i, Want: "meta: a map", Got: found(raw, i)}
	}
	if elems < 2*n {
		return 0, tooMany(i, 2*n-elems)
	}
	elems -= 2 * n
	seen, restEnd := 0, -1
	for range n {
		key, val := text(raw, at)
		if val < 0 {
			return 0, &FormatError{Offset: at, Want: "a string as key of meta", Got: found(raw, at)}
		}
		var bit, end int
		switch key {
		case "id":
			bit = seenID
			m.ID, end, err = metaID(raw, val, lim)
		case "n":
			bit, m.HasN = seenN, true
			m.N, end, err = metaInt(raw, val, key, 0)
		case "at":
			bit = seenAt
			m.EnqueuedAt, end, err = metaTime(raw, val, key)
		case "mr":
			bit, m.HasMaxRetry = seenMR, true
			m.MaxRetry, end, err = metaInt(raw, val, key, math.MinInt32)
		case "rt":
			bit = seenRT
			m.Retried, end, err = metaInt(raw, val, key, 0)
		case "d":
			bit = seenD
			m.Deaths, end, err = metaInt(raw, val, key, 0)
		case "da":
			bit = seenDA
			m.DiedAt, end, err = metaTime(raw, val, key)
		default:
			var left int
			if end, left, err = skim(raw, val, elems+1, lim.Depth-2, strict); err == nil {
				elems = left
				if isExtra(key) {
					bit, end, err = m.parseExtra(key, raw, val, lim)
					break
				}
				m.keep(raw, at, end, restEnd)
				restEnd = end
			}
		}
		if err != nil {
			return 0, err
		}
		if seen&bit != 0 {
			return 0, &FormatError{Offset: at, Want: "each key of meta once", Got: fmt.Sprintf("%q again", key)}
		}
		seen |= bit
		at = end
	}
	return at, nil
}

// parseExtra reads the value of a key of Extra.
func (m *Meta) parseExtra(key string, raw []byte, i int, lim Limits) (bit, next int, err error) {
	if m.Extra == nil {
		m.Extra = new(Extra)
	}
	return m.Extra.parse(key, raw, i, lim)
}

// keep adds the unknown pair raw[from:to] to Rest. As long as the unknown pairs are adjacent in raw, Rest shares memory
// with raw; otherwise keep copies them.
func (m *Meta) keep(raw []byte, from, to, restEnd int) {
	if m.Rest == nil {
		m.Rest = &Pairs{1, raw[from:to:to]}
		return
	}
	rest := m.Rest
	rest.N++
	if from == restEnd && &rest.Raw[0] == &raw[from-len(rest.Raw)] {
		rest.Raw = raw[from-len(rest.Raw) : to : to]
	} else {
		rest.Raw = append(rest.Raw, raw[from:to]...)
	}
}

// metaID reads the task id.
func metaID(raw []byte, i int, lim Limits) (id string, next int, err error) {
	id, next = text(raw, i)
	if next < 0 || id == "" || len(id) > lim.Path || !utf8.ValidString(id) {
		return "", 0, &FormatError{
			Offset: i, Want: fmt.Sprintf("an id: a string of 1 to %d bytes in UTF-8", lim.Path),
			Got: found(raw, i),
		}
	}
	return id, next, nil
}

// metaInt reads a number from lowest to 2³¹−1, the range that an int has on every platform.
func metaInt(raw []byte, i int, key string, lowest int64) (v, next int, err error) {
	u, neg, next := intAt(raw, i)
	if s := int64(u); next < 0 || s < lowest || s > math.MaxInt32 || !neg && s < 0 {
		return 0, 0, &FormatError{
			Offset: i,
			Want:   fmt.Sprintf("%q to be an integer from %d to %d", key, lowest, math.MaxInt32), Got: found(raw, i),
		}
	}
	return int(int64(u)), next, nil
}

// metaTime reads milliseconds since 1970.
func metaTime(raw []byte, i int, key string) (ms int64, next int, err error) {
	u, neg, next := intAt(raw, i)
	if next < 0 || neg || int64(u) < 0 {
		return 0, 0, &FormatError{
			Offset: i, Want: fmt.Sprintf("%q to be milliseconds since 1970", key),
			Got: found(raw, i),
		}
	}
	return int64(u), next, nil
}

// append appends the map: the known keys in a fixed order, then Rest.
func (m *Meta) append(dst []byte) []byte {
	n := 0
	for _, present := range [...]bool{
		m.ID != "", m.HasN, m.EnqueuedAt != 0, m.HasMaxRetry, m.Retried != 0,
		m.Deaths != 0, m.DiedAt != 0,
	} {
		if present {
			n++
		}
	}
	if m.Extra != nil {
		n += m.Extra.pairs()
	}
	if m.Rest != nil {
		n += m.Rest.N
	}
	dst = AppendMapHeader(dst, n)
	if m.ID != "" {
		dst = AppendString(append(dst, "\xa2id"...), m.ID)
	}
	if m.HasN {
		dst = AppendInt(append(dst, "\xa1n"...), int64(m.N))
	}
	if m.EnqueuedAt != 0 {
		dst = AppendInt(append(dst, "\xa2at"...), m.EnqueuedAt)
	}
	if m.HasMaxRetry {
		dst = AppendInt(append(dst, "\xa2mr"...), int64(m.MaxRetry))
	}
	if m.Retried != 0 {
		dst = AppendInt(append(dst, "\xa2rt"...), int64(m.Retried))
	}
	if m.Deaths != 0 {
		dst = AppendInt(append(dst, "\xa1d"...), int64(m.Deaths))
	}
	if m.DiedAt != 0 {
		dst = AppendInt(append(dst, "\xa2da"...), m.DiedAt)
	}
	if m.Extra != nil {
		dst = m.Extra.append(dst)
	}
	if m.Rest != nil {
		dst = append(dst, m.Rest.Raw...)
	}
	return dst
}
