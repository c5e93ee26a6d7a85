package wire

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
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

// Extra holds the metadata that few messages have. Fields that are zero are not written. Copies of a Meta share it, so
// copy it before a change.
type Extra struct {
	Timeout     int64             // "to": longest run, ms
	Deadline    int64             // "dl": when a run ends at the latest, ms since 1970
	Expiry      int64             // "xp": when it is too late to begin, ms since 1970
	Retention   int64             // "rn": how long the completed task is kept, ms
	KeepResult  int64             // "kr": how long its result is kept, ms
	RetryDelays []int64           // "rd": waits before the retries, ms; the last one holds for all further
	RetryUntil  int64             // "ru": after which it is not tried again, ms since 1970
	RetryCap    int64             // "rc": longest wait before a retry, ms
	FirstFailed int64             // "ff": when it failed for the first time, ms since 1970
	Due         int64             // "du": when it may start, if that is later than it was enqueued, ms since 1970
	Lock        string            // "uk": the name of the lock that it holds in its queue
	LockLife    int64             // "ul": how long that lock lasts at most, ms
	AloneDeaths int64             // "al": of Meta.Deaths, those with nothing else in the worker's hands
	LockStart   bool              // "us": the lock ends when the task starts, not when it ends
	Group       string            // "g": the group in which it is gathered
	Gather      *Gather           // "gp": how it is gathered there; nil for defaults
	Failures    []byte            // "er": attempts that have failed, as AddFailure writes them; nil if there are none
	Headers     map[string]string // "h": values from producers for middleware, such as trace contexts
}

// Gather defines how workers gather the task in its group.
type Gather struct {
	Fixed    int   // number of arguments before the list that is combined; they are equal within a group
	Grace    int64 // how long the group waits for another task, ms
	MaxDelay int64 // how long the first task of the group waits at most, ms; 0 means without a limit
	MaxSize  int   // how many tasks the group has at most
}

// Limits of what one message may carry besides its arguments.
const (
	MaxRetryDelays = 64   // in Extra.RetryDelays
	MaxHeaders     = 64   // in Extra.Headers
	MaxHeaderBytes = 8192 // of all keys and values in Extra.Headers together
	gatherParts    = 4    // integers that a Gather is written as
)

// Unlimited is the duration, in ms, that stands for "no bound" in messages. It is the longest that a time.Duration can
// hold.
const Unlimited = math.MaxInt64 / int64(time.Millisecond)

// Milliseconds converts a duration from a message, in ms. Durations longer than Unlimited become Unlimited.
func Milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, Unlimited)) * time.Millisecond
}

// Pairs holds encoded keys and values in their order. Copies of a Meta share it, so nobody may change it.
type Pairs struct {
	N   int // their number
	Raw []byte
}

// Keeps reports whether the task or its result is kept after success.
func (x *Extra) Keeps() bool { return x != nil && (x.KeepResult > 0 || x.Retention > 0) }

// metaKeys are the keys of meta that this version knows, those of Extra last. Their positions are the bits by which
// parse notices a key that comes twice.
var metaKeys = [...]string{
	"id", "n", "at", "mr", "rt", "d", "da",
	"to", "dl", "xp", "rn", "kr", "rd", "ru", "rc", "ff", "du", "uk", "ul", "al", "us", "g", "gp", "er", "h",
}

// extraNumber is a field of Extra that is a number, with its key and the highest value.
type extraNumber struct {
	key  string
	at   *int64
	most int64
}

// numbers returns the fields that are numbers, in the order in which they are written.
func (x *Extra) numbers() [11]extraNumber {
	const most = math.MaxInt64
	return [...]extraNumber{
		{"to", &x.Timeout, most},
		{"dl", &x.Deadline, most},
		{"xp", &x.Expiry, most},
		{"rn", &x.Retention, most},
		{"kr", &x.KeepResult, most},
		{"ru", &x.RetryUntil, most},
		{"rc", &x.RetryCap, most},
		{"ff", &x.FirstFailed, most},
		{"du", &x.Due, most},
		{"ul", &x.LockLife, most},
		{"al", &x.AloneDeaths, math.MaxInt32},
	}
}

// parse reads the map at raw[i:], in which there may be at most elems values.
func (m *Meta) parse(raw []byte, i, elems int, lim Limits) (next int, err error) {
	n, at := mapAt(raw, i)
	if at < 0 {
		return 0, wrong(raw, i, "meta: a map")
	}
	if elems < 2*n {
		return 0, tooMany(i, 2*n-elems)
	}
	elems -= 2 * n
	seen, restEnd := uint32(0), -1
	for range n {
		key, val := text(raw, at)
		if val < 0 {
			return 0, wrong(raw, at, "a string as key of meta")
		}
		k := slices.Index(metaKeys[:], key)
		var end int
		switch key {
		case "id":
			m.ID, end, err = metaID(raw, val, lim)
		case "n":
			m.HasN = true
			end, err = metaNumber(&m.N, raw, val, key, 0, math.MaxInt32)
		case "at":
			end, err = metaNumber(&m.EnqueuedAt, raw, val, key, 0, math.MaxInt64)
		case "mr":
			m.HasMaxRetry = true
			end, err = metaNumber(&m.MaxRetry, raw, val, key, math.MinInt32, math.MaxInt32)
		case "rt":
			end, err = metaNumber(&m.Retried, raw, val, key, 0, math.MaxInt32)
		case "d":
			end, err = metaNumber(&m.Deaths, raw, val, key, 0, math.MaxInt32)
		case "da":
			end, err = metaNumber(&m.DiedAt, raw, val, key, 0, math.MaxInt64)
		default:
			var left int
			if end, left, err = skim(raw, val, elems+1, lim.Depth-2, strict); err != nil {
				break
			}
			elems = left
			if k >= 0 {
				end, err = m.parseExtra(key, raw, val, lim)
			} else {
				m.keep(raw, at, end, restEnd)
				restEnd = end
			}
		}
		if err != nil {
			return 0, err
		}
		if k >= 0 && seen&(1<<k) != 0 {
			return 0, &FormatError{Offset: at, Want: "each key of meta once", Got: fmt.Sprintf("%q again", key)}
		}
		if k >= 0 {
			seen |= 1 << k
		}
		at = end
	}
	return at, nil
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

// parseExtra reads the value of a key of Extra.
func (m *Meta) parseExtra(key string, raw []byte, i int, lim Limits) (next int, err error) {
	if m.Extra == nil {
		m.Extra = new(Extra)
	}
	x := m.Extra
	switch key {
	case "rd":
		x.RetryDelays, next, err = metaDelays(raw, i)
	case "uk":
		x.Lock, next, err = metaID(raw, i, lim)
	case "us":
		if i >= len(raw) || raw[i]|1 != codeTrue {
			return 0, wrong(raw, i, `"us" to be a boolean`)
		}
		x.LockStart, next = raw[i] == codeTrue, i+1
	case "g":
		x.Group, next, err = metaID(raw, i, lim)
	case "gp":
		x.Gather, next, err = metaGather(raw, i)
	case "er":
		if next, _, err = skim(raw, i, lim.Elems, lim.Depth-2, strict); err == nil {
			x.Failures = raw[i:next:next]
		}
	case "h":
		x.Headers, next, err = metaHeaders(raw, i)
	default:
		for _, n := range x.numbers() {
			if n.key == key {
				return metaNumber(n.at, raw, i, key, 0, n.most)
			}
		}
	}
	return next, err
}

// metaID reads a task id, or another name of that form.
func metaID(raw []byte, i int, lim Limits) (id string, next int, err error) {
	id, next = text(raw, i)
	if next < 0 || id == "" || len(id) > lim.Path || !utf8.ValidString(id) {
		return "", 0, wrong(raw, i, "an id: a string of 1 to %d bytes in UTF-8", lim.Path)
	}
	return id, next, nil
}

// metaNumber reads an integer within bounds.
func metaNumber[T int | int64](dst *T, raw []byte, i int, key string, least, most int64) (next int, err error) {
	u, neg, next := intAt(raw, i)
	v := int64(u) //nolint:gosec // checked below
	if next < 0 || neg != (v < 0) || v < least || v > most {
		return 0, wrong(raw, i, "%q to be an integer from %d to %d", key, least, most)
	}
	*dst = T(v)
	return next, nil
}

// metaDelays reads an array of milliseconds.
func metaDelays(raw []byte, i int) (delays []int64, next int, err error) {
	n, at := arrayAt(raw, i)
	if at < 0 || n < 1 || n > MaxRetryDelays {
		return nil, 0, wrong(raw, i, `"rd" to be an array of 1 to %d waits`, MaxRetryDelays)
	}
	delays = make([]int64, n)
	for k := range delays {
		if at, err = metaNumber(&delays[k], raw, at, "rd", 0, math.MaxInt64); err != nil {
			return nil, 0, err
		}
	}
	return delays, at, nil
}

// metaGather reads how a task is gathered.
func metaGather(raw []byte, i int) (g *Gather, next int, err error) {
	n, at := arrayAt(raw, i)
	if at < 0 || n != gatherParts {
		return nil, 0, wrong(raw, i, `"gp" to be an array of %d integers`, gatherParts)
	}
	g = new(Gather)
	if at, err = metaNumber(&g.Fixed, raw, at, "gp", 0, math.MaxInt32); err == nil {
		at, err = metaNumber(&g.Grace, raw, at, "gp", 0, math.MaxInt64)
	}
	if err == nil {
		at, err = metaNumber(&g.MaxDelay, raw, at, "gp", 0, math.MaxInt64)
	}
	if err == nil {
		at, err = metaNumber(&g.MaxSize, raw, at, "gp", 0, math.MaxInt32)
	}
	return g, at, err
}

// metaHeaders reads a map of strings.
func metaHeaders(raw []byte, i int) (headers map[string]string, next int, err error) {
	n, at := mapAt(raw, i)
	if at < 0 || n < 1 || n > MaxHeaders {
		return nil, 0, wrong(raw, i, `"h" to be a map of 1 to %d headers`, MaxHeaders)
	}
	headers = make(map[string]string, n)
	size := 0
	for range n {
		name, mid := text(raw, at)
		var value string
		end := -1
		if mid >= 0 {
			value, end = text(raw, mid)
		}
		if end < 0 || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, 0, wrong(raw, at, `"h" to hold strings by string, in UTF-8`)
		}
		if size += len(name) + len(value); size > MaxHeaderBytes {
			return nil, 0, &FormatError{i, fmt.Sprintf(`"h" to hold at most %d bytes`, MaxHeaderBytes), "more"}
		}
		if _, twice := headers[name]; twice {
			return nil, 0, &FormatError{at, `each key of "h" once`, fmt.Sprintf("%q again", name)}
		}
		headers[name], at = value, end
	}
	return headers, at, nil
}

// append appends the map: the known keys in a fixed order, then Rest.
func (m *Meta) append(dst []byte) []byte {
	var w MapWriter
	w.Begin(dst)
	m.write(&w)
	return w.End()
}

// isZero reports whether there is nothing to write.
func (m *Meta) isZero() bool {
	var w MapWriter
	m.write(&w)
	return w.n == 0
}

func (m *Meta) write(w *MapWriter) {
	w.Text("id", m.ID)
	if m.HasN {
		w.dst = AppendInt(w.key("n"), int64(m.N))
	}
	w.Number("at", m.EnqueuedAt)
	if m.HasMaxRetry {
		w.dst = AppendInt(w.key("mr"), int64(m.MaxRetry))
	}
	w.Number("rt", int64(m.Retried))
	w.Number("d", int64(m.Deaths))
	w.Number("da", m.DiedAt)
	if m.Extra != nil {
		m.Extra.write(w)
	}
	if m.Rest != nil {
		w.n += m.Rest.N
		w.dst = append(w.dst, m.Rest.Raw...)
	}
}

func (x *Extra) write(w *MapWriter) {
	for _, n := range x.numbers() {
		w.Number(n.key, *n.at)
	}
	if len(x.RetryDelays) > 0 {
		w.dst = AppendArrayHeader(w.key("rd"), len(x.RetryDelays))
		for _, ms := range x.RetryDelays {
			w.dst = AppendInt(w.dst, ms)
		}
	}
	w.Text("uk", x.Lock)
	w.Flag("us", x.LockStart)
	w.Text("g", x.Group)
	if p := x.Gather; p != nil {
		w.dst = AppendArrayHeader(w.key("gp"), gatherParts)
		for _, v := range [gatherParts]int64{int64(p.Fixed), p.Grace, p.MaxDelay, int64(p.MaxSize)} {
			w.dst = AppendInt(w.dst, v)
		}
	}
	if len(x.Failures) > 0 {
		w.dst = append(w.key("er"), x.Failures...)
	}
	if len(x.Headers) > 0 {
		w.dst = AppendMapHeader(w.key("h"), len(x.Headers))
		for _, key := range slices.Sorted(maps.Keys(x.Headers)) {
			w.dst = AppendString(AppendString(w.dst, key), x.Headers[key])
		}
	}
}
