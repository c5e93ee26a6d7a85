package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// maxInfoText bounds the text of an error that is kept with a task, in bytes.
const maxInfoText = 4096

// taskInfo is what is known of a task beyond its message, kept while it is retrying, parked or archived.
type taskInfo struct {
	reason   string // failed, arguments, undecodable, unknown function, python, deaths, parked too long
	function string
	errText  string
	stack    string
	attempts int
	deaths   int
	at       time.Time
	worker   string
}

// encode writes the info as a MessagePack map; empty fields are left out.
func (i *taskInfo) encode() []byte {
	n := 2
	for _, s := range []string{i.function, i.errText, i.stack, i.worker} {
		if s != "" {
			n++
		}
	}
	for _, v := range []int{i.attempts, i.deaths} {
		if v > 0 {
			n++
		}
	}
	dst := wire.AppendMapHeader(nil, n)
	text := func(key, value string) {
		if value != "" {
			dst = wire.AppendString(wire.AppendString(dst, key), value)
		}
	}
	number := func(key string, value int) {
		if value > 0 {
			dst = wire.AppendInt(wire.AppendString(dst, key), int64(value))
		}
	}
	dst = wire.AppendString(wire.AppendString(dst, "reason"), i.reason)
	dst = wire.AppendInt(wire.AppendString(dst, "at"), i.at.UnixMilli())
	text("function", i.function)
	text("error", clip(i.errText))
	text("stack", clip(i.stack))
	text("worker", i.worker)
	number("attempts", i.attempts)
	number("deaths", i.deaths)
	return dst
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
