package loop

import (
	"sync"
	"time"
)

const (
	// LineInterval is the shortest time between two log lines with the same key.
	LineInterval = time.Second
	// maxLineKeys bounds the number of keys. Beyond that, all functions share a line.
	maxLineKeys = 100
)

// LineKey says what a log line is about. Function may be empty.
type LineKey struct{ Queue, Reason, Function string }

// LineLimit logs one line a second for each key: the first at once, then one for all that came within a second, with
// their number. The zero value is ready for use.
type LineLimit struct {
	mu     sync.Mutex // protects the following
	lines  map[LineKey]*line
	closed bool
}

// line counts what has come since the last log line of its key, less than LineInterval ago.
type line struct {
	n     int
	write func(n int) // logs the latest, for n of them
	timer *time.Timer
}

// Log calls write(1) at once. If a line with the same key was logged less than LineInterval ago, it calls only the
// latest write, later, with the number of calls.
func (l *LineLimit) Log(key LineKey, write func(n int)) {
	l.mu.Lock()
	if l.lines[key] == nil && len(l.lines) >= maxLineKeys {
		key.Function = ""
	}
	if pending := l.lines[key]; pending != nil {
		pending.n++
		pending.write = write
		l.mu.Unlock()
		return
	}
	if !l.closed {
		if l.lines == nil {
			l.lines = map[LineKey]*line{}
		}
		l.lines[key] = &line{timer: time.AfterFunc(LineInterval, func() { l.due(key) })}
	}
	l.mu.Unlock()
	write(1)
}

// due logs what has come in the last second.
func (l *LineLimit) due(key LineKey) {
	l.mu.Lock()
	pending := l.lines[key]
	if pending == nil {
		l.mu.Unlock()
		return
	}
	n, write := pending.n, pending.write
	if n == 0 {
		delete(l.lines, key)
	} else {
		pending.n, pending.write = 0, nil
		pending.timer.Reset(LineInterval)
	}
	l.mu.Unlock()
	if n > 0 {
		write(n)
	}
}

// Close logs what has not been logged yet. Later lines are logged at once.
func (l *LineLimit) Close() {
	l.mu.Lock()
	lines := l.lines
	l.lines, l.closed = nil, true
	l.mu.Unlock()
	for _, pending := range lines {
		pending.timer.Stop()
		if pending.n > 0 {
			pending.write(pending.n)
		}
	}
}
