package delayed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// Logger is what workers and sweepers log through: a *logrus.Logger or *logrus.Entry, or what SlogLogger returns.
type Logger = logrus.FieldLogger

// SlogLogger returns a logger for WorkerConfig and SweeperConfig that writes to a handler of log/slog. The handler
// decides which levels it wants. SlogLogger(nil) panics.
func SlogLogger(h slog.Handler) Logger {
	if isNil(h) {
		panic(errors.New("delayed: SlogLogger(nil): expected a handler, such as slog.Default().Handler()"))
	}
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetFormatter(nothing{})
	l.SetLevel(logrus.DebugLevel)
	l.AddHook(slogHook{h})
	return l
}

// nothing formats nothing: the hook has written the entry already.
type nothing struct{}

func (nothing) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

type slogHook struct{ handler slog.Handler }

func (slogHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h slogHook) Fire(e *logrus.Entry) error {
	level := slog.LevelDebug
	switch e.Level {
	case logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel:
		level = slog.LevelError
	case logrus.WarnLevel:
		level = slog.LevelWarn
	case logrus.InfoLevel:
		level = slog.LevelInfo
	case logrus.DebugLevel, logrus.TraceLevel:
	}
	ctx := e.Context
	if ctx == nil {
		ctx = context.Background()
	}
	if !h.handler.Enabled(ctx, level) {
		return nil
	}
	record := slog.NewRecord(e.Time, level, e.Message, 0)
	for k, v := range e.Data {
		if err, ok := v.(error); ok {
			v = err.Error()
		}
		record.AddAttrs(slog.Any(k, v))
	}
	return h.handler.Handle(ctx, record)
}

// journal is what the worker's loops log through. Fields have fixed names: queue, function, id, worker. Arguments of
// tasks never appear in it.
type journal struct {
	logrus.FieldLogger
}

func newJournal(l logrus.FieldLogger) journal {
	if l == nil {
		l = logrus.StandardLogger()
	}
	return journal{l}
}

// maxLogField bounds a field of a log line, in bytes. Ids and names of this package are shorter; others are what
// somebody has written to Redis.
const maxLogField = 1024

// with adds a field. Of a text that is too long it adds the beginning and the size.
func (j journal) with(key string, value any) journal {
	if text, ok := value.(string); ok && len(text) > maxLogField {
		value = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxLogField], ""), len(text))
	}
	return journal{j.WithField(key, value)}
}

// counted says that a line is about n tasks, unless it is about one.
func (j journal) counted(n int) journal {
	if n == 1 {
		return j
	}
	return j.with("count", n)
}

// trouble logs err at most once in ten seconds for one c.
func (j journal) trouble(c *complaints, what string, err error) {
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

// relief logs that the trouble is over, if there was any.
func (j journal) relief(c *complaints, what string) {
	if c.over() {
		j.Info(what)
	}
}

// logTooLarge logs that a message was archived for its size.
func logTooLarge(log journal, lines *lineLimit, s *store, id string, size int) {
	lines.log(lineKey{queue: s.name, reason: reasonTooLarge}, func(n int) {
		log.with("queue", s.name).with("id",
			id).counted(n).WithError(tooLarge(size)).Error("message archived: it is too large, and stays in Redis")
	})
}
