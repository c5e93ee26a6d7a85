package loop

import (
	"sync"
	"time"
)

const (
	// LineInterval is the time between two log lines of one key.
	LineInterval = time.Second
	// maxLineKeys bounds the keys that are kept apart; further functions share a line.
	maxLineKeys = 100
)

// LineKey says what a log line is about. Function may be empty.
type LineKey struct{ Queue, Reason, Function string }

// LineLimit lets one log line a second through for each key: the first one at once, then the latest of each second,
// with their number. The zero value is ready.
type LineLimit struct {
	mu     sync.Mutex // protects the following
	lines  map[LineKey]*line
	closed bool
}

// line holds the lines that came since the last log line of their key, which is less than LineInterval ago.
type line struct {
	n     int
	write func(n int) // logs the latest of n
	timer *time.Timer
}

// Log calls write(1) at once, or later write(n) of the latest of n calls.
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

// Close logs what was held back. Later lines are logged at once.
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
