package loop

import (
	"sync"
	"time"
)

const (
	// LineInterval is the time between two log lines about the same.
	LineInterval = time.Second
	// maxLineKeys bounds what is told apart: functions beyond that share a line.
	maxLineKeys = 100
)

// LineKey says what a log line is about. Lines of equal keys are about the same; function may be empty.
type LineKey struct{ Queue, Reason, Function string }

// LineLimit lets one log line a second through for each key: the first at once, and then one for all that came in a
// second, with their number. The zero value is ready.
type LineLimit struct {
	mu     sync.Mutex // protects the following
	lines  map[LineKey]*line
	closed bool
}

// line is what has come since the last log line of its key, which is less than LineInterval ago.
type line struct {
	n     int
	write func(n int) // logs the latest, for n
	timer *time.Timer
}

// Log has write called with 1, or later, for the latest of n, with n.
func (l *LineLimit) Log(key LineKey, write func(n int)) {
	l.mu.Lock()
	if l.lines[key] == nil && len(l.lines) >= maxLineKeys {
		key.Function = ""
	}
	if late := l.lines[key]; late != nil {
		late.n++
		late.write = write
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
	late := l.lines[key]
	if late == nil {
		l.mu.Unlock()
		return
	}
	n, write := late.n, late.write
	if n == 0 {
		delete(l.lines, key)
	} else {
		late.n, late.write = 0, nil
		late.timer.Reset(LineInterval)
	}
	l.mu.Unlock()
	if n > 0 {
		write(n)
	}
}

// Close logs what has not been logged yet. Lines that come later are not held back.
func (l *LineLimit) Close() {
	l.mu.Lock()
	lines := l.lines
	l.lines, l.closed = nil, true
	l.mu.Unlock()
	for _, late := range lines {
		late.timer.Stop()
		if late.n > 0 {
			late.write(late.n)
		}
	}
}
