package loop

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/wire"
)

// Journal is the logger of the worker's loops. Fields have fixed names: queue, function, id, worker. Arguments of tasks
// are never logged.
type Journal struct {
	logrus.FieldLogger
	// enabled says whether the log wants lines of a level; nil: the level of logrus decides.
	enabled func(Level) bool
}

// NewJournal returns a journal that logs through l, by default through the standard logger of logrus. A logger whose
// level does not say which lines it wants has a method Enabled(Level) bool.
func NewJournal(l logrus.FieldLogger) Journal {
	if l == nil {
		l = logrus.StandardLogger()
	}
	j := Journal{FieldLogger: l}
	if chooser, ok := l.(interface{ Enabled(level Level) bool }); ok {
		j.enabled = chooser.Enabled
	}
	return j
}

// MaxLogField bounds a field of a log line, in bytes. Ids and names that this package writes are shorter, but others
// may be in Redis.
const MaxLogField = 1024

// maxLogError bounds the text of an error in a log line, in bytes. Handlers may return errors of any length.
const maxLogError = 8 << 10

// Fields are fields of a line by name.
type Fields = logrus.Fields

// Level is how grave a line is.
type Level = logrus.Level

// The levels of lines.
const (
	ErrorLevel = logrus.ErrorLevel
	WarnLevel  = logrus.WarnLevel
	InfoLevel  = logrus.InfoLevel
	DebugLevel = logrus.DebugLevel
)

// With adds a field. A text is escaped, whatever the formatter of the log does, and cut if it is too long.
func (j Journal) With(key string, value any) Journal { return j.WithAll(Fields{key: value}) }

// WithAll adds fields as With does. It keeps the map, and takes less time than With for each, which copies all fields
// that the log has.
func (j Journal) WithAll(fields Fields) Journal {
	return Journal{j.WithFields(escaped(fields)), j.enabled}
}

// escaped escapes the texts in fields.
func escaped(fields Fields) Fields {
	for key, value := range fields {
		if text, ok := value.(string); ok {
			fields[key] = logText(text, MaxLogField)
		}
	}
	return fields
}

// Wants reports whether the log has lines of a level.
func (j Journal) Wants(level Level) bool {
	if j.enabled != nil {
		return j.enabled(level)
	}
	switch l := j.FieldLogger.(type) {
	case *logrus.Entry:
		return l.Logger.IsLevelEnabled(level)
	case *logrus.Logger:
		return l.IsLevelEnabled(level)
	default:
		return true
	}
}

// Line logs a line with an error, as WithAll, WithError and Log do, but copies the fields that the log has only once.
// It keeps the map. Who makes a map for it asks Wants before.
func (j Journal) Line(level Level, fields Fields, err error, text string) {
	if !j.Wants(level) {
		return
	}
	escaped(fields)[logrus.ErrorKey] = loggedError{err}
	j.WithFields(fields).Log(level, text)
}

// WithError adds an error, whose text is escaped and cut like those of With. Hooks of the log can still unwrap it.
func (j Journal) WithError(err error) *logrus.Entry { return j.FieldLogger.WithError(loggedError{err}) }

// loggedError is an error as it is logged.
type loggedError struct{ error }

func (e loggedError) Error() string { return logText(e.error.Error(), maxLogError) }
func (e loggedError) Unwrap() error { return e.error }

// logText returns a text as it is logged: on one line, without control characters. Of one that is too long it returns
// the beginning and the size.
func logText(text string, most int) string {
	if len(text) <= most {
		return wire.OneLine(text)
	}
	return fmt.Sprintf("%s… (%d bytes)", wire.OneLine(strings.ToValidUTF8(text[:most], "")), len(text))
}

// Counted adds the field count if a line is about more than one task.
func (j Journal) Counted(n int) Journal {
	if n == 1 {
		return j
	}
	return j.With("count", n)
}

// Trouble logs err at most every ten seconds for one c.
func (j Journal) Trouble(c *Complaints, what string, err error) {
	skipped, ok := c.due(time.Now())
	if !ok {
		return
	}
	entry := j.WithError(err)
	if skipped > 0 {
		entry = entry.WithField("repeated", skipped)
	}
	entry.Warn(what)
}

// Relief logs that the trouble is over, if c has logged any.
func (j Journal) Relief(c *Complaints, what string) {
	if c.over() {
		j.Info(what)
	}
}

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
