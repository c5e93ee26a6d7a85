package wire

import "strings"

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
	f.Worker = clipTo(OneLine(f.Worker), maxFailureWorker)
	f.Error, f.Stack = clipTo(OneLine(f.Error), maxFailureError), clipTo(manyLines(f.Stack), maxFailureStack)
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
