package loop

import (
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// Journal is the log of the worker's loops. Its fields have fixed names: queue, function, id, worker. It never contains
// arguments of tasks.
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

// MaxLogField bounds a field of a log line, in bytes. Ids and names of this package are shorter; longer texts come from
// others who write to Redis.
const MaxLogField = 1024

// With adds a field. It cuts a text that is too long, and adds its size.
func (j Journal) With(key string, value any) Journal {
	if text, ok := value.(string); ok && len(text) > MaxLogField {
		value = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:MaxLogField], ""), len(text))
	}
	return Journal{j.WithField(key, value)}
}

// Counted adds a field that says that the line is about n tasks, unless n is 1.
func (j Journal) Counted(n int) Journal {
	if n == 1 {
		return j
	}
	return j.With("count", n)
}

// Trouble logs err as a warning, at most every ten seconds for the same c.
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

// Relief logs that the trouble with c is over, if there was any.
func (j Journal) Relief(c *Complaints, what string) {
	if c.clear() {
		j.Info(what)
	}
}
