package loop

import (
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// Journal is what the worker's loops log through. Fields have fixed names: queue, function, id, worker. Arguments of
// tasks never appear in it.
type Journal struct {
	logrus.FieldLogger
}

// NewJournal returns a journal that logs through l, by default through the standard logger of logrus.
func NewJournal(l logrus.FieldLogger) Journal {
	if l == nil {
		l = logrus.StandardLogger()
	}
	return Journal{l}
}

// MaxLogField bounds a field of a log line, in bytes. Ids and names of this package are shorter; others are what
// somebody has written to Redis.
const MaxLogField = 1024

// With adds a field. Of a text that is too long it adds the beginning and the size.
func (j Journal) With(key string, value any) Journal {
	if text, ok := value.(string); ok && len(text) > MaxLogField {
		value = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:MaxLogField], ""), len(text))
	}
	return Journal{j.WithField(key, value)}
}

// Counted says that a line is about n tasks, unless it is about one.
func (j Journal) Counted(n int) Journal {
	if n == 1 {
		return j
	}
	return j.With("count", n)
}

// Trouble logs err at most once in ten seconds for one c.
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

// Relief logs that the trouble is over, if there was any.
func (j Journal) Relief(c *Complaints, what string) {
	if c.over() {
		j.Info(what)
	}
}
