//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Meta is what an extended message says about its task. The zero value says nothing; fields that are zero are not written.
type Meta struct {
	ID          string // "id": names the task; not empty when present
	HasN        bool   // "n" is present
	N           int    // "n": number of arguments in the payload, which is then always an array
	EnqueuedAt  int64  // "at": when it was enqueued, ms since 1970; 0 unknown
	HasMaxRetry bool   // "mr" is present
	MaxRetry    int    // "mr": how often it may be tried again
	Retried     int    // "rt": how often it was tried again
	Deaths      int    // "d": how often a worker died while it ran
	DiedAt      int64  // "da": when the last of them was noticed, ms since 1970; 0 never
	Extra       *Extra // what few messages say; nil when this one says none of it
	Rest        []byte // pairs that this version does not know, as they were and in their order; Append writes them behind its own
	RestN       int    // number of pairs in Rest
}

// isZero says whether there is nothing to write.
func (m *Meta) isZero() bool {
	return m.ID == "" && !m.HasN && m.EnqueuedAt == 0 && !m.HasMaxRetry && m.Retried == 0 && m.Deaths == 0 && m.DiedAt == 0 && m.Extra.isZero() && m.RestN == 0
}

// Bits of the keys that parse has seen.
const (
	seenID = 1 << iota
	seenN
	seenAt
	seenMR
	seenRT
	seenD
	seenDA
)

// parse reads the map at raw[i:], with room for elems values.
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

// parseExtra reads the value of a key that few messages have.
func (m *Meta) parseExtra(key string, raw []byte, i int, lim Limits) (bit, next int, err error) {
	if m.Extra == nil {
		m.Extra = new(Extra)
	}
	return m.Extra.parse(key, raw, i, lim)
}

// keep adds the unknown pair raw[from:to] to Rest. Pairs that stand side by side share memory with raw, others are copied.
func (m *Meta) keep(raw []byte, from, to, restEnd int) {
	m.RestN++
	switch {
	case m.Rest == nil:
		m.Rest = raw[from:to:to]
	case from == restEnd && &m.Rest[0] == &raw[from-len(m.Rest)]:
		m.Rest = raw[from-len(m.Rest) : to : to]
	default:
		m.Rest = append(m.Rest, raw[from:to]...)
	}
}

// metaID reads the task id.
func metaID(raw []byte, i int, lim Limits) (id string, next int, err error) {
	id, next = text(raw, i)
	if next < 0 || id == "" || len(id) > lim.Path || !utf8.ValidString(id) {
		return "", 0, &FormatError{Offset: i, Want: fmt.Sprintf("an id: a string of 1 to %d bytes in UTF-8", lim.Path), Got: found(raw, i)}
	}
	return id, next, nil
}

// metaInt reads a number from lowest to 2³¹−1, so that it is an int everywhere.
func metaInt(raw []byte, i int, key string, lowest int64) (v, next int, err error) {
	u, neg, next := intAt(raw, i)
	if s := int64(u); next < 0 || s < lowest || s > math.MaxInt32 || !neg && s < 0 {
		return 0, 0, &FormatError{Offset: i, Want: fmt.Sprintf("%q to be an integer from %d to %d", key, lowest, math.MaxInt32), Got: found(raw, i)}
	}
	return int(int64(u)), next, nil
}

// metaTime reads milliseconds since 1970.
func metaTime(raw []byte, i int, key string) (ms int64, next int, err error) {
	u, neg, next := intAt(raw, i)
	if next < 0 || neg || int64(u) < 0 {
		return 0, 0, &FormatError{Offset: i, Want: fmt.Sprintf("%q to be milliseconds since 1970", key), Got: found(raw, i)}
	}
	return int64(u), next, nil
}

// append appends the map: the known keys in a fixed order, then Rest.
func (m *Meta) append(dst []byte) []byte {
	n := m.RestN
	for _, present := range [...]bool{m.ID != "", m.HasN, m.EnqueuedAt != 0, m.HasMaxRetry, m.Retried != 0, m.Deaths != 0, m.DiedAt != 0} {
		if present {
			n++
		}
	}
	if m.Extra != nil {
		n += m.Extra.pairs()
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
	return append(dst, m.Rest...)
}
