package isolate

import (
	"io"
	"strings"
	"sync"
)

const (
	keptHead = 4 << 10 // bytes that are kept of the beginning of what a job writes to its standard error
	keptTail = 8 << 10 // and of its end
)

// output passes on what a child writes to its standard error, and keeps the beginning and the end of what it wrote
// since the last reset: a crash of Go begins with its reason, and other programs end with theirs. It passes on nothing
// before pass was called: where children crash at their start, one after the other, each crash would write kilobytes.
type output struct {
	to io.Writer

	mu      sync.Mutex
	passes  bool // pass was called
	head    []byte
	tail    []byte // a ring once it is full
	next    int    // where the ring goes on
	skipped bool   // bytes between head and tail are lost
}

// Write implements io.Writer. It never fails: a child must not end because nobody reads the log of its parent.
func (o *output) Write(b []byte) (int, error) {
	if o.keep(b) {
		_, _ = o.to.Write(b)
	}
	return len(b), nil
}

// pass passes on what is kept, and all that comes from now on.
func (o *output) pass() {
	o.mu.Lock()
	o.passes = true
	o.mu.Unlock()
	if text := o.String(); text != "" {
		_, _ = io.WriteString(o.to, text+"\n")
	}
}

// keep keeps the beginning and the end. It reports whether the bytes are passed on.
func (o *output) keep(b []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := b
	if room := keptHead - len(o.head); room > 0 {
		n := min(room, len(rest))
		o.head = append(o.head, rest[:n]...)
		rest = rest[n:]
	}
	for _, c := range rest[max(0, len(rest)-keptTail):] {
		if len(o.tail) < keptTail {
			o.tail = append(o.tail, c)
			continue
		}
		o.skipped = true
		o.tail[o.next] = c
		o.next = (o.next + 1) % keptTail
	}
	o.skipped = o.skipped || len(rest) > keptTail
	return o.passes
}

// reset forgets what was written.
func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.head, o.tail, o.next, o.skipped = o.head[:0], o.tail[:0], 0, false
}

// String returns what is kept.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := string(o.head)
	if o.skipped {
		text += "\n...\n"
	}
	text += string(o.tail[o.next:]) + string(o.tail[:o.next])
	return strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
}
