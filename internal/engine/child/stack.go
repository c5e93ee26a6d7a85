package child

import (
	"bytes"
	"runtime"
	"strconv"
	"strings"
)

const (
	maxStuckStack = 16 << 10 // bytes of stack in the report of a stuck handler
	firstDump     = 256 << 10
	largestDump   = 16 << 20 // of the stacks of all goroutines
	cut           = "...\n"  // marks where the text was cut
)

// GoroutineID returns the id of the calling goroutine as in stack traces, 0 if unknown. It takes about a microsecond.
func GoroutineID() uint64 {
	var buf [64]byte
	id, _ := goroutineOf(buf[:runtime.Stack(buf[:], false)])
	return id
}

// goroutineOf returns the goroutine id in the first line of a stack trace.
func goroutineOf(stack []byte) (id uint64, ok bool) {
	rest, ok := bytes.CutPrefix(stack, []byte("goroutine "))
	if !ok {
		return 0, false
	}
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	id, err := strconv.ParseUint(string(digits), 10, 64)
	return id, err == nil
}

// DumpStacks returns the stacks of all goroutines, at most largestDump bytes. It stops the world meanwhile.
func DumpStacks() []byte {
	for size := firstDump; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= largestDump {
			return buf[:n]
		}
	}
}

// StackIn returns the stack of a goroutine in a dump, followed by the stacks of goroutines that it has started; "" if
// the dump lacks it. It leaves out the values of arguments, and returns at most maxStuckStack bytes.
func StackIn(dump []byte, goroutine uint64) string {
	parent := []byte(" in goroutine " + strconv.FormatUint(goroutine, 10) + "\n")
	var own, children []byte
	for stack := range bytes.SplitSeq(dump, []byte("\n\n")) {
		switch id, ok := goroutineOf(stack); {
		case !ok:
		case id == goroutine:
			own = stack
		case bytes.Contains(stack, parent) && len(children) < maxStuckStack:
			children = append(append(children, '\n'), stack...)
			children = append(children, '\n')
		}
	}
	if own == nil || goroutine == 0 {
		return ""
	}
	var text strings.Builder
	for line := range bytes.Lines(append(append(bytes.Clone(bytes.TrimSpace(own)), '\n'), children...)) {
		line = withoutArguments(line)
		if text.Len()+len(line)+len(cut) > maxStuckStack {
			text.WriteString(cut)
			break
		}
		text.Write(line)
	}
	return text.String()
}

// withoutArguments removes the arguments from a function's line: they may be secrets.
func withoutArguments(line []byte) []byte {
	if bytes.HasPrefix(line, []byte("\t")) || !bytes.HasSuffix(line, []byte(")\n")) {
		return line
	}
	if i := bytes.LastIndexByte(line, '('); i >= 0 {
		return append(line[:i:i], "(...)\n"...)
	}
	return line
}
