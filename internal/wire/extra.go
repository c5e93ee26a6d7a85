//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// Limits of what one message may carry besides its arguments.
const (
	MaxRetryDelays = 64   // in Extra.RetryDelays
	MaxHeaders     = 64   // in Extra.Headers
	MaxHeaderBytes = 8192 // of all keys and values in Extra.Headers together
)

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

// Keeps reports whether the task or its result is kept after success.
func (x *Extra) Keeps() bool { return x != nil && (x.KeepResult > 0 || x.Retention > 0) }

// isZero reports whether all fields are zero, so that there is nothing to write.
func (x *Extra) isZero() bool { return x == nil || x.pairs() == 0 }

func (x *Extra) pairs() (n int) {
	for _, present := range [...]bool{
		x.Timeout != 0, x.Deadline != 0, x.Expiry != 0, x.Retention != 0, x.KeepResult != 0, len(x.RetryDelays) > 0,
		x.RetryUntil != 0,
		x.RetryCap != 0, x.FirstFailed != 0, x.Due != 0, x.Lock != "", x.LockLife != 0, x.AloneDeaths != 0, x.LockStart,
		x.Group != "", x.Gather != nil, len(x.Failures) > 0, len(x.Headers) > 0,
	} {
		if present {
			n++
		}
	}
	return n
}

// Bits that stand for the keys that parse has read; the bits of Meta's keys are lower.
const (
	seenTO = seenDA << (iota + 1)
	seenDL
	seenXP
	seenRN
	seenKR
	seenRD
	seenRU
	seenRC
	seenFF
	seenDU
	seenUK
	seenUL
	seenAL
	seenUS
	seenG
	seenGP
	seenER
	seenH
)

// isExtra reports whether key is one that Extra.parse can read.
func isExtra(key string) bool {
	switch key {
	case "to", "dl", "xp", "rn", "kr", "rd", "ru", "rc", "ff", "du", "uk", "ul", "al", "us", "g", "gp", "er", "h":
		return true
	}
	return false
}

// number returns the bit and the field for a key whose value is a number; it returns nil for other keys.
func (x *Extra) number(key string) (bit int, dst *int64) {
	switch key {
	case "to":
		return seenTO, &x.Timeout
	case "dl":
		return seenDL, &x.Deadline
	case "xp":
		return seenXP, &x.Expiry
	case "rn":
		return seenRN, &x.Retention
	case "kr":
		return seenKR, &x.KeepResult
	case "ru":
		return seenRU, &x.RetryUntil
	case "rc":
		return seenRC, &x.RetryCap
	case "ff":
		return seenFF, &x.FirstFailed
	case "du":
		return seenDU, &x.Due
	case "ul":
		return seenUL, &x.LockLife
	case "al":
		return seenAL, &x.AloneDeaths
	}
	return 0, nil
}

// parse reads the value of a key for which isExtra is true.
func (x *Extra) parse(key string, raw []byte, i int, lim Limits) (bit, next int, err error) {
	bit, dst := x.number(key)
	if dst != nil && key == "al" {
		var n int
		n, next, err = metaInt(raw, i, key, 0)
		*dst = int64(n)
		return bit, next, err
	}
	if dst != nil {
		*dst, next, err = metaTime(raw, i, key)
		return bit, next, err
	}
	switch key {
	case "rd":
		bit = seenRD
		x.RetryDelays, next, err = metaDelays(raw, i, key)
	case "uk":
		bit = seenUK
		x.Lock, next, err = metaID(raw, i, lim)
	case "us":
		bit = seenUS
		x.LockStart, next, err = metaBool(raw, i, key)
	case "g":
		bit = seenG
		x.Group, next, err = metaID(raw, i, lim)
	case "gp":
		bit = seenGP
		x.Gather, next, err = metaGather(raw, i, key)
	case "er":
		bit = seenER
		if next, _, err = skim(raw, i, lim.Elems, lim.Depth-2, strict); err == nil {
			x.Failures = raw[i:next:next]
		}
	case "h":
		bit = seenH
		x.Headers, next, err = metaHeaders(raw, i, key)
	}
	return bit, next, err
}

// append appends the pairs in a fixed order.
func (x *Extra) append(dst []byte) []byte {
	for _, p := range [...]struct {
		key   string
		value int64
	}{
		{"\xa2to", x.Timeout},
		{"\xa2dl", x.Deadline},
		{"\xa2xp", x.Expiry},
		{"\xa2rn", x.Retention},
		{"\xa2kr", x.KeepResult},
		{"\xa2ru", x.RetryUntil},
		{"\xa2rc", x.RetryCap},
		{"\xa2ff", x.FirstFailed},
		{"\xa2du", x.Due},
		{"\xa2ul", x.LockLife},
		{"\xa2al", x.AloneDeaths},
	} {
		if p.value != 0 {
			dst = AppendInt(append(dst, p.key...), p.value)
		}
	}
	if len(x.RetryDelays) > 0 {
		dst = AppendArrayHeader(append(dst, "\xa2rd"...), len(x.RetryDelays))
		for _, ms := range x.RetryDelays {
			dst = AppendInt(dst, ms)
		}
	}
	if x.Lock != "" {
		dst = AppendString(append(dst, "\xa2uk"...), x.Lock)
	}
	if x.LockStart {
		dst = AppendBool(append(dst, "\xa2us"...), true)
	}
	if x.Group != "" {
		dst = AppendString(append(dst, "\xa1g"...), x.Group)
	}
	if p := x.Gather; p != nil {
		dst = AppendArrayHeader(append(dst, "\xa2gp"...), gatherParts)
		for _, v := range [gatherParts]int64{int64(p.Fixed), p.Grace, p.MaxDelay, int64(p.MaxSize)} {
			dst = AppendInt(dst, v)
		}
	}
	if len(x.Failures) > 0 {
		dst = append(append(dst, "\xa2er"...), x.Failures...)
	}
	if len(x.Headers) > 0 {
		dst = AppendMapHeader(append(dst, "\xa1h"...), len(x.Headers))
		for _, key := range slices.Sorted(maps.Keys(x.Headers)) {
			dst = AppendString(AppendString(dst, key), x.Headers[key])
		}
	}
	return dst
}

// metaBool reads a boolean.
func metaBool(raw []byte, i int, key string) (v bool, next int, err error) {
	if i < len(raw) && (raw[i] == codeTrue || raw[i] == codeFalse) {
		return raw[i] == codeTrue, i + 1, nil
	}
	return false, 0, &FormatError{Offset: i, Want: fmt.Sprintf("%q to be a boolean", key), Got: found(raw, i)}
}

// metaDelays reads an array of milliseconds.
func metaDelays(raw []byte, i int, key string) (delays []int64, next int, err error) {
	n, at := arrayAt(raw, i)
	if at < 0 || n < 1 || n > MaxRetryDelays {
		return nil, 0, &FormatError{
			Offset: i,
			Want:   fmt.Sprintf("%q to be an array of 1 to %d waits", key, MaxRetryDelays), Got: found(raw, i),
		}
	}
	delays = make([]int64, n)
	for k := range delays {
		u, neg, end := intAt(raw, at)
		if end < 0 || neg || int64(u) < 0 {
			return nil, 0, &FormatError{
				Offset: at, Want: fmt.Sprintf("%q to hold waits in ms", key),
				Got: found(raw, at),
			}
		}
		delays[k], at = int64(u), end
	}
	return delays, at, nil
}

// gatherParts is the number of integers that a Gather is written as.
const gatherParts = 4

// metaGather reads how a task is gathered.
func metaGather(raw []byte, i int, key string) (g *Gather, next int, err error) {
	n, at := arrayAt(raw, i)
	if at < 0 || n != gatherParts {
		return nil, 0, &FormatError{
			Offset: i, Want: fmt.Sprintf("%q to be an array of %d integers", key, gatherParts),
			Got: found(raw, i),
		}
	}
	g = new(Gather)
	for k, most := range [gatherParts]int64{math.MaxInt32, math.MaxInt64, math.MaxInt64, math.MaxInt32} {
		u, neg, end := intAt(raw, at)
		if v := int64(u); end < 0 || neg || v < 0 || v > most {
			return nil, 0, &FormatError{
				Offset: at, Want: fmt.Sprintf("%q to hold integers from 0 to %d", key, most),
				Got: found(raw, at),
			}
		}
		switch v := int64(u); k {
		case 0:
			g.Fixed = int(v)
		case 1:
			g.Grace = v
		case 2:
			g.MaxDelay = v
		default:
			g.MaxSize = int(v)
		}
		at = end
	}
	return g, at, nil
}

// metaHeaders reads a map of strings.
func metaHeaders(raw []byte, i int, key string) (headers map[string]string, next int, err error) {
	n, at := mapAt(raw, i)
	if at < 0 || n < 1 || n > MaxHeaders {
		return nil, 0, &FormatError{
			Offset: i, Want: fmt.Sprintf("%q to be a map of 1 to %d headers", key, MaxHeaders),
			Got: found(raw, i),
		}
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
			return nil, 0, &FormatError{
				Offset: at, Want: fmt.Sprintf("%q to hold strings by string, in UTF-8", key),
				Got: found(raw, at),
			}
		}
		if size += len(name) + len(value); size > MaxHeaderBytes {
			return nil, 0, &FormatError{
				Offset: i,
				Want:   fmt.Sprintf("%q to hold at most %d bytes", key, MaxHeaderBytes), Got: "more",
			}
		}
		if _, twice := headers[name]; twice {
			return nil, 0, &FormatError{
				Offset: at, Want: fmt.Sprintf("each key of %q once", key),
				Got: fmt.Sprintf("%q again", name),
			}
		}
		headers[name], at = value, end
	}
	return headers, at, nil
}
