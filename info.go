package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// maxInfoText bounds the text of an error that is kept with a task, in bytes.
const maxInfoText = 4096

// taskInfo is what is known of a task beyond its message, kept while it is retrying, parked or archived, and what is kept of a completed one.
type taskInfo struct {
	reason string // failed, arguments, undecodable, unknown function, python, deaths, parked too long, expired, snoozed,
	// not failed, completed
	function    string
	errText     string
	stack       string
	attempts    int
	deaths      int
	at          time.Time // when this became known
	firstFailed time.Time // zero: it has not failed
	worker      string

	// Of completed tasks only.
	began   time.Time // when the run began that was successful
	result  []byte    // one MessagePack value; nil: none
	message []byte    // what was called; nil: not kept
}

// encode writes the info as a MessagePack map; empty fields are left out.
func (i *taskInfo) encode() []byte {
	var pairs []byte
	n := 0
	key := func(key string) {
		n++
		pairs = wire.AppendString(pairs, key)
	}
	text := func(name, value string) {
		if value != "" {
			key(name)
			pairs = wire.AppendString(pairs, value)
		}
	}
	number := func(name string, value int) {
		if value > 0 {
			key(name)
			pairs = wire.AppendInt(pairs, int64(value))
		}
	}
	moment := func(name string, t time.Time) {
		if !t.IsZero() {
			key(name)
			pairs = wire.AppendInt(pairs, t.UnixMilli())
		}
	}
	text("reason", i.reason)
	moment("at", i.at)
	moment("first", i.firstFailed)
	moment("began", i.began)
	text("function", i.function)
	text("error", clip(i.errText))
	text("stack", clip(i.stack))
	text("worker", i.worker)
	number("attempts", i.attempts)
	number("deaths", i.deaths)
	for _, b := range [...]struct {
		name  string
		value []byte
	}{{"result", i.result}, {"message", i.message}} {
		if b.value != nil {
			key(b.name)
			pairs = wire.AppendBin(pairs, b.value)
		}
	}
	return append(wire.AppendMapHeader(make([]byte, 0, len(pairs)+3), n), pairs...)
}

// functionOfInfo returns the function's path that an encoded info names, "" if it names none.
func functionOfInfo(info []byte) string {
	if wire.Check(info, wire.Default) != nil {
		return ""
	}
	value, _, err := wire.DecodeAny(info)
	if err != nil {
		return ""
	}
	fields, _ := value.(map[string]any)
	path, _ := fields["function"].(string)
	return path
}

// clip shortens a text to maxInfoText bytes, at a character's end.
func clip(s string) string {
	if len(s) <= maxInfoText {
		return s
	}
	n := maxInfoText
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
