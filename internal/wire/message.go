//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Kind is the form of a message.
type Kind uint8

// The forms of messages. The function's path alone decides which language runs a task: a path with a colon is Python's.
const (
	GoBare     Kind = iota + 1 // "path": a function without arguments, as keakon's Python package sends it
	GoPlain                    // [path], [path, nil] or [path, payload]
	GoExtended                 // [path, payload or nil, meta]
	Py                         // ["module:func"] to ["module:func", args, kwargs, retry]
	PyExtended                 // ["module:func", args, kwargs, retry, meta]
)

var kindNames = [...]string{
	"no kind", "bare Go task", "plain Go task", "extended Go task", "Python task",
	"extended Python task",
}

// String returns the name that docs/PROTOCOL.md uses.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Message is a task as Redis holds it in a queue. After Parse its strings and byte slices share memory with the parsed
// bytes.
type Message struct {
	Kind    Kind
	Path    string  // of the function: "example.com/app/mail.Send" or "module.path:func"
	Payload []byte  // Go kinds: the arguments, MessagePack inside a bin; nil if there are none
	Py      *PyCall // Python kinds: the arguments; nil if there are none
	Retry   int64   // Python kinds: how often Python tries again; negative means for ever
	Meta    Meta    // the metadata of the extended kinds
}

// PyCall holds the arguments of a Python function. Copies of a Message share it, so it must not be changed.
type PyCall struct {
	Args   []byte // the array of arguments, or nil as MessagePack, as it is in the message; nil when absent
	Kwargs []byte // the map of keyword arguments, or nil as MessagePack; nil when absent
}

// Args returns the arguments of a call of a Python function; nil when absent.
func (m *Message) Args() []byte {
	if m.Py == nil {
		return nil
	}
	return m.Py.Args
}

// Kwargs returns the keyword arguments of a call of a Python function; nil when absent.
func (m *Message) Kwargs() []byte {
	if m.Py == nil {
		return nil
	}
	return m.Py.Kwargs
}

// Python reports whether the function is Python's.
func (m *Message) Python() bool { return m.Kind == Py || m.Kind == PyExtended }

// Extend turns a bare or plain Go message into an extended one, which can carry meta, and leaves others unchanged.
func (m *Message) Extend() {
	if m.Kind == GoBare || m.Kind == GoPlain {
		m.Kind = GoExtended
	}
}

// The most elements of an array that is a message. Only an array with that many can carry meta.
const (
	goElems = 3
	pyElems = 5
)

// Parse splits a message. It checks all of raw: length, depth and number of values against lim, that the payload is one
// well-formed value, and that the arguments of a Python function are well-formed. Values for Go must pass Check; values
// for Python may hold map keys and extensions that only Python can read. The error is a *FormatError with the offset in
// raw. For Go messages Parse allocates nothing but Extra and Rest, which few messages have. The caller must not modify
// raw afterwards.
func Parse(raw []byte, lim Limits) (m Message, err error) {
	if err = m.parse(raw, lim); err != nil {
		return Message{}, err
	}
	return m, nil
}

func (m *Message) parse(raw []byte, lim Limits) (err error) {
	if len(raw) > lim.Bytes {
		return TooLong(len(raw), lim)
	}
	n, i := arrayAt(raw, 0)
	if i < 0 {
		return m.parseBare(raw, lim)
	}
	if n == 0 {
		return &FormatError{Offset: 0, Want: "an array that begins with a function path", Got: "an empty one"}
	}
	if n >= lim.Elems {
		return tooMany(0, n+1-lim.Elems)
	}
	if m.Path, i, err = parsePath(raw, i, lim); err != nil {
		return err
	}
	if strings.IndexByte(m.Path, ':') < 0 {
		return m.parseGo(raw, i, n, lim)
	}
	return m.parsePy(raw, i, n, lim)
}

// parseBare reads a message that is only a path, without an array. The path of a Python function is always in an array.
func (m *Message) parseBare(raw []byte, lim Limits) (err error) {
	if !isStr(raw, 0) {
		return wrong(raw, 0, "an array or a function path")
	}
	var i int
	if m.Path, i, err = parsePath(raw, 0, lim); err != nil {
		return err
	}
	if strings.IndexByte(m.Path, ':') >= 0 {
		return &FormatError{Offset: 0, Want: "an array around the path of a Python function", Got: "the path alone"}
	}
	if i != len(raw) {
		return trailing(raw, i)
	}
	m.Kind = GoBare
	return nil
}

// parsePath reads the path at raw[i:] and checks its length and that it is valid UTF-8.
func parsePath(raw []byte, i int, lim Limits) (path string, next int, err error) {
	path, next = text(raw, i)
	switch {
	case next < 0:
		return "", 0, wrong(raw, i, "a function path")
	case path == "":
		return "", 0, &FormatError{Offset: i, Want: "a function path", Got: "an empty string"}
	case len(path) > lim.Path:
		return "", 0, wrong(raw, i, "a path of at most %s", count(lim.Path, "byte"))
	case !utf8.ValidString(path):
		return "", 0, &FormatError{Offset: i, Want: "a path in UTF-8", Got: "other bytes"}
	}
	return path, next, nil
}

// parseGo reads what follows the path of a Go function in an array of n elements.
func (m *Message) parseGo(raw []byte, i, n int, lim Limits) (err error) {
	m.Kind = GoPlain
	if n > goElems {
		return wrong(raw, 0, "an array of 1 to 3 for a Go function")
	}
	if n > 1 {
		if i, err = m.parsePayload(raw, i, lim); err != nil {
			return err
		}
	}
	if n == goElems {
		m.Kind = GoExtended
		if i, err = m.Meta.parse(raw, i, lim.Elems-1-goElems, lim); err != nil {
			return err
		}
	}
	if i != len(raw) {
		return trailing(raw, i)
	}
	return nil
}

// parsePayload reads nil, or binary data that holds exactly one value. Empty data means that there are no arguments.
func (m *Message) parsePayload(raw []byte, i int, lim Limits) (next int, err error) {
	if i < len(raw) && raw[i] == codeNil {
		return i + 1, nil
	}
	start, end := binAt(raw, i)
	if end < 0 {
		return 0, wrong(raw, i, "a payload: binary or nil")
	}
	m.Payload = raw[start:end:end]
	if start == end {
		return end, nil
	}
	// Check raw[:end] instead of only the payload, so that offsets in errors count from the start of the message.
	done, _, err := skim(raw[:end], start, lim.Elems, lim.Depth, strict)
	if err != nil {
		return 0, err
	}
	if done != end {
		return 0, trailing(raw[:end], done)
	}
	return end, nil
}

// parsePy reads what follows the path of a Python function in an array of n elements.
func (m *Message) parsePy(raw []byte, i, n int, lim Limits) (err error) {
	m.Kind = Py
	if n > pyElems {
		return wrong(raw, 0, "an array of 1 to 5 for a Python function")
	}
	left := lim.Elems - 2 // the array and the path
	if n > 1 {
		if _, next := arrayAt(raw, i); next < 0 && !isNil(raw, i) {
			return wrong(raw, i, "arguments: an array or nil")
		}
		m.Py = new(PyCall)
		if m.Py.Args, i, left, err = parseRaw(raw, i, left, lim); err != nil {
			return err
		}
	}
	if n > 2 {
		if _, next := mapAt(raw, i); next < 0 && !isNil(raw, i) {
			return wrong(raw, i, "keyword arguments: a map or nil")
		}
		if m.Py.Kwargs, i, left, err = parseRaw(raw, i, left, lim); err != nil {
			return err
		}
	}
	if n > 3 {
		u, neg, next := intAt(raw, i)
		if next < 0 || !neg && int64(u) < 0 {
			return wrong(raw, i, "a number of retries")
		}
		m.Retry, i = int64(u), next
		left--
	}
	if n == pyElems {
		m.Kind = PyExtended
		if i, err = m.Meta.parse(raw, i, left-1, lim); err != nil {
			return err
		}
	}
	if left < 0 {
		return tooMany(i, -left)
	}
	if i != len(raw) {
		return trailing(raw, i)
	}
	return nil
}

// parseRaw returns the bytes of the value at raw[i:] without decoding them, because only Python reads them.
func parseRaw(raw []byte, i, elems int, lim Limits) (value []byte, next, left int, err error) {
	next, left, err = skim(raw, i, elems, lim.Depth-1, loose)
	if err != nil {
		return nil, 0, 0, err
	}
	return raw[i:next:next], next, left, nil
}

func isNil(b []byte, i int) bool { return i < len(b) && b[i] == codeNil }

// text reads the string at b[i:] without copying it; next is negative when there is none.
func text(b []byte, i int) (s string, next int) {
	start, end := strAt(b, i)
	if end < 0 {
		return "", -1
	}
	return unsafe.String(unsafe.SliceData(b[start:end]), end-start), end // Parse forbids modifying b
}

// Append appends the message in the form that its Kind names and returns the longer slice. It writes a plain Go message
// without payload as [path, nil]. It leaves out trailing parts of a Python message that are zero or empty, as keakon's
// package does. Append checks nothing; use Parse to see whether others will accept the bytes. Append panics when the
// kind is missing, or when a message has meta or a payload that its kind cannot carry. That is a mistake in the
// program, which should have called Extend.
func (m *Message) Append(dst []byte) []byte {
	if (m.Kind == GoBare || m.Kind == GoPlain || m.Kind == Py) && !m.Meta.isZero() {
		panic(fmt.Sprintf("wire: a %s cannot carry meta", m.Kind))
	}
	switch m.Kind {
	case GoBare:
		if m.Payload != nil {
			panic("wire: a bare Go task cannot carry a payload")
		}
		return AppendString(dst, m.Path)
	case GoPlain:
		dst = AppendString(AppendArrayHeader(dst, 2), m.Path)
		return m.appendPayload(dst)
	case GoExtended:
		dst = AppendString(AppendArrayHeader(dst, goElems), m.Path)
		return m.Meta.append(m.appendPayload(dst))
	case Py:
		return m.appendPy(dst, m.pyElems())
	case PyExtended:
		return m.Meta.append(m.appendPy(dst, pyElems))
	}
	panic("wire: message without a kind")
}

func (m *Message) appendPayload(dst []byte) []byte {
	if m.Payload == nil {
		return AppendNil(dst)
	}
	return AppendBin(dst, m.Payload)
}

// pyElems returns how many parts of a Python message are needed: those up to the last one that differs from Python's
// defaults.
func (m *Message) pyElems() int {
	switch {
	case m.Retry != 0:
		return 4
	case !isEmpty(m.Kwargs()):
		return 3
	case !isEmpty(m.Args()):
		return 2
	}
	return 1
}

// appendPy appends the header of an array of n elements and all of them except meta.
func (m *Message) appendPy(dst []byte, n int) []byte {
	dst = AppendString(AppendArrayHeader(dst, n), m.Path)
	if n > 1 {
		if m.Args() == nil {
			dst = AppendArrayHeader(dst, 0)
		}
		dst = append(dst, m.Args()...)
	}
	if n > 2 {
		if m.Kwargs() == nil {
			dst = AppendMapHeader(dst, 0)
		}
		dst = append(dst, m.Kwargs()...)
	}
	if n > 3 {
		dst = AppendInt(dst, m.Retry)
	}
	return dst
}

// isEmpty reports whether an element of a Python message means that there are no arguments: it is absent, nil, or an
// empty array or map.
func isEmpty(b []byte) bool {
	return len(b) == 0 || len(b) == 1 && (b[0] == codeNil || b[0] == 0x90 || b[0] == 0x80)
}
