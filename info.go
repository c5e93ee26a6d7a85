package delayed

import (
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// maxInfoText bounds the text of an error that is kept with a task, in bytes.
const maxInfoText = 4096

// taskInfo is what is known of a task beyond its message, kept while it is retrying, parked or archived, and what is
// kept of a completed one.
type taskInfo struct {
	// failed, arguments, undecodable, too large, unknown function, unknown fields, python, deaths, parked too long,
	// expired, snoozed,
	reason string
	// not failed, completed
	function    string
	fields      []string // that the worker lacks which has parked it, by function.unknownFields
	errText     string
	stack       string
	attempts    int
	deaths      int
	at          time.Time // when this became known
	firstFailed time.Time // zero: it has not failed
	worker      string
	progress    progress // the last report of how far it was

	// Of completed tasks only.
	enqueued time.Time // by the producer's clock
	began    time.Time // when the run began that was successful
	result   []byte    // one MessagePack value; nil: none
	message  []byte    // what was called; nil: not kept
}

// encode writes the info as a MessagePack map; empty fields are left out, control characters in texts escaped.
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
			pairs = wire.AppendString(pairs, strings.ToValidUTF8(value, "�"))
		}
	}
	number := func(name string, value int64) {
		if value > 0 {
			key(name)
			pairs = wire.AppendInt(pairs, value)
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
	moment("enqueued", i.enqueued)
	moment("began", i.began)
	text("function", oneLine(i.function))
	if len(i.fields) > 0 {
		key("fields")
		pairs = wire.AppendArrayHeader(pairs, len(i.fields))
		for _, path := range i.fields {
			pairs = wire.AppendString(pairs, path)
		}
	}
	text("error", clip(oneLine(i.errText)))
	text("stack", clip(manyLines(i.stack)))
	text("worker", i.worker)
	number("attempts", int64(i.attempts))
	number("deaths", int64(i.deaths))
	number("done", i.progress.done)
	number("total", i.progress.total)
	text("note", clip(oneLine(i.progress.note)))
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

// infoLimits hold what is kept of a completed task: its message and its result, and some text.
var infoLimits = wire.Limits{Bytes: 2*wire.Default.Bytes + 64<<10, Elems: 64, Depth: 2, Path: wire.Default.Path}

// parseInfo reads what encode has written, and other programs may have. What cannot be read is left out.
func parseInfo(b []byte) (i taskInfo) {
	if wire.Check(b, infoLimits) != nil {
		return i
	}
	value, _, err := wire.DecodeAny(b)
	if err != nil {
		return i
	}
	fields, _ := value.(map[string]any)
	text := func(dst *string, key string) { *dst, _ = fields[key].(string) }
	number := func(dst *int, key string) {
		n, _ := fields[key].(int64)
		*dst = int(n)
	}
	moment := func(dst *time.Time, key string) {
		if ms, ok := fields[key].(int64); ok {
			*dst = time.UnixMilli(ms)
		}
	}
	text(&i.reason, "reason")
	text(&i.function, "function")
	paths, _ := fields["fields"].([]any)
	for _, path := range paths[:min(len(paths), maxUnknownFields)] {
		if path, ok := path.(string); ok {
			i.fields = append(i.fields, path)
		}
	}
	text(&i.errText, "error")
	text(&i.stack, "stack")
	text(&i.worker, "worker")
	number(&i.attempts, "attempts")
	number(&i.deaths, "deaths")
	moment(&i.at, "at")
	moment(&i.firstFailed, "first")
	moment(&i.began, "began")
	moment(&i.enqueued, "enqueued")
	i.progress.done, _ = fields["done"].(int64)
	i.progress.total, _ = fields["total"].(int64)
	text(&i.progress.note, "note")
	i.result, _ = fields["result"].([]byte)
	i.message, _ = fields["message"].([]byte)
	return i
}

// public returns what users see of it.
func (i *taskInfo) public() TaskInfo {
	return TaskInfo{
		Function: i.function, EnqueuedAt: i.enqueued, Began: i.began, At: i.at, FirstFailed: i.firstFailed,
		Reason: i.reason, Error: i.errText, Stack: i.stack,
		Attempts: i.attempts, Deaths: i.deaths, Worker: i.worker,
		Done: i.progress.done, Total: i.progress.total, Note: i.progress.note,
	}
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
