package wire

import (
	"strings"
	"time"

	"github.com/godelayed/delayed/state"
)

// maxInfoText is the longest text of an error that Redis keeps with a task, in bytes.
const maxInfoText = 4096

// Info is what Redis keeps about a task besides its message, while the task is retrying, parked or archived, and what
// it keeps of a completed task.
type Info struct {
	Reason      state.Reason
	Function    string
	Fields      []string // fields of Function.UnknownFields that the worker which parked the task lacks
	Error       string
	Stack       string
	Attempts    int
	Deaths      int
	At          time.Time // when the worker or sweeper learned this
	FirstFailed time.Time // zero if it has not failed
	Worker      string
	Progress    Progress // the last progress that the handler reported

	// Only completed tasks have the following.
	Enqueued time.Time // by the producer's clock
	Began    time.Time // when the successful run began
	Result   []byte    // one MessagePack value; nil if there is none
	Message  []byte    // the task's message; nil if it is not kept
}

// Encode writes the info as a MessagePack map. It leaves out empty fields and escapes control characters in texts.
func (i *Info) Encode() []byte {
	pairs := make([]byte, 0, 512) // does not outlive the call
	n := 0
	key := func(key string) {
		n++
		pairs = AppendString(pairs, key)
	}
	text := func(name, value string) {
		if value != "" {
			key(name)
			pairs = AppendString(pairs, strings.ToValidUTF8(value, "�"))
		}
	}
	number := func(name string, value int64) {
		if value > 0 {
			key(name)
			pairs = AppendInt(pairs, value)
		}
	}
	moment := func(name string, t time.Time) {
		if !t.IsZero() {
			key(name)
			pairs = AppendInt(pairs, t.UnixMilli())
		}
	}
	text("reason", string(i.Reason))
	moment("at", i.At)
	moment("first", i.FirstFailed)
	moment("enqueued", i.Enqueued)
	moment("began", i.Began)
	text("function", OneLine(i.Function))
	if len(i.Fields) > 0 {
		key("fields")
		pairs = AppendArrayHeader(pairs, len(i.Fields))
		for _, path := range i.Fields {
			pairs = AppendString(pairs, path)
		}
	}
	text("error", clip(OneLine(i.Error)))
	text("stack", clip(manyLines(i.Stack)))
	text("worker", i.Worker)
	number("attempts", int64(i.Attempts))
	number("deaths", int64(i.Deaths))
	number("done", i.Progress.Done)
	number("total", i.Progress.Total)
	text("note", clip(OneLine(i.Progress.Note)))
	for _, b := range [...]struct {
		name  string
		value []byte
	}{{"result", i.Result}, {"message", i.Message}} {
		if b.value != nil {
			key(b.name)
			pairs = AppendBin(pairs, b.value)
		}
	}
	return append(AppendMapHeader(make([]byte, 0, len(pairs)+3), n), pairs...)
}

// InfoLimits are large enough for the info of a completed task: its message, its result and some text.
var InfoLimits = Limits{Bytes: 2*Default.Bytes + 64<<10, Elems: 64, Depth: 2, Path: Default.Path}

// ParseInfo parses the output of Encode or of another program. It leaves out what it cannot parse.
func ParseInfo(b []byte) (i Info) {
	if Check(b, InfoLimits) != nil {
		return i
	}
	value, _, err := DecodeAny(b)
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
	text((*string)(&i.Reason), "reason")
	text(&i.Function, "function")
	paths, _ := fields["fields"].([]any)
	for _, path := range paths[:min(len(paths), MaxUnknownFields)] {
		if path, ok := path.(string); ok {
			i.Fields = append(i.Fields, path)
		}
	}
	text(&i.Error, "error")
	text(&i.Stack, "stack")
	text(&i.Worker, "worker")
	number(&i.Attempts, "attempts")
	number(&i.Deaths, "deaths")
	moment(&i.At, "at")
	moment(&i.FirstFailed, "first")
	moment(&i.Began, "began")
	moment(&i.Enqueued, "enqueued")
	i.Progress.Done, _ = fields["done"].(int64)
	i.Progress.Total, _ = fields["total"].(int64)
	text(&i.Progress.Note, "note")
	i.Result, _ = fields["result"].([]byte)
	i.Message, _ = fields["message"].([]byte)
	return i
}

// clip shortens s to at most maxInfoText bytes without cutting a character in two.
func clip(s string) string { return clipTo(s, maxInfoText) }

// clipTo is clip for another number of bytes.
func clipTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// MaxUnknownFields is the most paths that ParseInfo reads into Info.Fields.
const MaxUnknownFields = 16

// Progress is one report of how far a running task is.
type Progress struct {
	Done, Total int64
	Note        string
}
