package loop

import (
	"fmt"
	"strings"
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
