package wire

import (
	"math"
	"slices"
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
	var w MapWriter
	w.Begin(make([]byte, 0, 512)) // does not outlive the call
	text := func(key, value string) { w.Text(key, strings.ToValidUTF8(value, "\uFFFD")) }
	text("reason", string(i.Reason))
	w.Time("at", i.At)
	w.Time("first", i.FirstFailed)
	w.Time("enqueued", i.Enqueued)
	w.Time("began", i.Began)
	text("function", OneLine(i.Function))
	if len(i.Fields) > 0 {
		w.dst = AppendArrayHeader(w.key("fields"), len(i.Fields))
		for _, path := range i.Fields {
			w.dst = AppendString(w.dst, path)
		}
	}
	text("error", clip(OneLine(i.Error), maxInfoText))
	text("stack", clip(manyLines(i.Stack), maxInfoText))
	text("worker", i.Worker)
	w.Number("attempts", int64(max(i.Attempts, 0)))
	w.Number("deaths", int64(max(i.Deaths, 0)))
	w.Number("done", max(i.Progress.Done, 0))
	w.Number("total", max(i.Progress.Total, 0))
	text("note", clip(OneLine(i.Progress.Note), maxInfoText))
	w.Bin("result", i.Result)
	w.Bin("message", i.Message)
	return slices.Clone(w.End())
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
	r := ReadMap(value)
	number := func(key string) int64 { return r.Number(key, math.MinInt64, math.MaxInt64) }
	i = Info{
		Reason: state.Reason(r.Text("reason")), Function: r.Text("function"), Error: r.Text("error"),
		Stack: r.Text("stack"), Worker: r.Text("worker"),
		Attempts: int(number("attempts")), Deaths: int(number("deaths")),
		At: r.Time("at"), FirstFailed: r.Time("first"), Began: r.Time("began"), Enqueued: r.Time("enqueued"),
		Progress: Progress{number("done"), number("total"), r.Text("note")},
		Result:   r.Bin("result"), Message: r.Bin("message"),
	}
	paths := r.List("fields")
	for _, path := range paths[:min(len(paths), MaxUnknownFields)] {
		if path, ok := path.(string); ok {
			i.Fields = append(i.Fields, path)
		}
	}
	return i
}

// clip shortens s to at most n bytes without cutting a character in two.
func clip(s string, n int) string {
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

// What a message remembers of attempts that have failed. Workers may lengthen a message by 4,096 bytes and 64 values
// (see docs/PROTOCOL.md, Limits), and these must leave room for the other keys that they add.
const (
	MaxFailures      = 6    // in a message
	maxFailureBytes  = 2560 // of all of them, as they are written
	maxFailureWorker = 128  // bytes of one text
	maxFailureError  = 512
	maxFailureStack  = 1024
	failureParts     = 5
)

// Failed is an attempt of a task that has failed.
type Failed struct {
	Attempt int   // 1 for the first
	At      int64 // when it ended, ms since 1970
	Worker  string
	Error   string
	Stack   string // of a panic
}

// AddFailure returns the value of Extra.Failures with one more failure. Texts that are too long lose their end, and the
// oldest failures go if there are too many. What of old cannot be read is left out.
func AddFailure(old []byte, f Failed) []byte {
	f.Worker = clip(OneLine(f.Worker), maxFailureWorker)
	f.Error, f.Stack = clip(OneLine(f.Error), maxFailureError), clip(manyLines(f.Stack), maxFailureStack)
	all := append(ParseFailures(old), f)
	for {
		b := appendFailures(all)
		if len(all) <= MaxFailures && len(b) <= maxFailureBytes {
			return b
		}
		all = all[1:]
	}
}

func appendFailures(all []Failed) []byte {
	size := 8
	for _, f := range all {
		size += 24 + len(f.Worker) + len(f.Error) + len(f.Stack)
	}
	b := AppendArrayHeader(make([]byte, 0, size), len(all))
	for _, f := range all {
		b = AppendInt(AppendInt(AppendArrayHeader(b, failureParts), int64(f.Attempt)), f.At)
		for _, text := range []string{f.Worker, f.Error, f.Stack} {
			b = AppendString(b, strings.ToValidUTF8(text, "�"))
		}
	}
	return b
}

// ParseFailures reads Extra.Failures, oldest first. It leaves out what is no failure: nothing of a task depends on it.
func ParseFailures(b []byte) []Failed {
	if b == nil {
		return nil
	}
	value, _, err := DecodeAny(b)
	if err != nil {
		return nil
	}
	list, _ := value.([]any)
	var all []Failed
	for _, entry := range list[:min(len(list), MaxFailures)] {
		parts, _ := entry.([]any)
		if len(parts) < failureParts {
			continue
		}
		attempt, ok1 := parts[0].(int64)
		at, ok2 := parts[1].(int64)
		f := Failed{Attempt: int(attempt), At: at}
		f.Worker, _ = parts[2].(string)
		f.Error, _ = parts[3].(string)
		f.Stack, _ = parts[4].(string)
		if ok1 && ok2 {
			all = append(all, f)
		}
	}
	return all
}
