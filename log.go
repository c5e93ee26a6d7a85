package delayed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/wire"
)

// SlogLogger returns a logger for the configurations of workers, sweepers and schedulers that writes to a handler of
// log/slog. The handler decides which levels it wants. SlogLogger(nil) panics.
func SlogLogger(h slog.Handler) logrus.FieldLogger {
	if wire.IsNil(h) {
		panic(errors.New("delayed: SlogLogger(nil): expected a handler, such as slog.Default().Handler()"))
	}
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetFormatter(noFormat{})
	l.SetLevel(logrus.DebugLevel)
	l.AddHook(slogHook{h})
	return slogLogger{l, h}
}

// slogLogger knows which lines its handler wants before they are made.
type slogLogger struct {
	*logrus.Logger
	handler slog.Handler
}

// Enabled is what internal/loop asks.
func (l slogLogger) Enabled(level logrus.Level) bool {
	return l.IsLevelEnabled(level) && l.handler.Enabled(context.Background(), slogLevel(level))
}

// noFormat is the formatter of a logger whose hook writes the entries.
type noFormat struct{}

func (noFormat) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

type slogHook struct{ handler slog.Handler }

func (slogHook) Levels() []logrus.Level { return logrus.AllLevels }

// slogLevel returns the level of log/slog that corresponds to one of logrus.
func slogLevel(level logrus.Level) slog.Level {
	switch level {
	case logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel:
		return slog.LevelError
	case logrus.WarnLevel:
		return slog.LevelWarn
	case logrus.InfoLevel:
		return slog.LevelInfo
	case logrus.DebugLevel, logrus.TraceLevel:
	}
	return slog.LevelDebug
}

func (h slogHook) Fire(e *logrus.Entry) error {
	level, ctx := slogLevel(e.Level), e.Context
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

// checkLogger returns an error for a logger that would panic at its first line.
func checkLogger(config string, l logrus.FieldLogger) error {
	entry, isEntry := l.(*logrus.Entry)
	if l != nil && (wire.IsNil(l) || isEntry && entry.Logger == nil) {
		return fmt.Errorf("delayed: %s.Logger is a nil or zero %T: expected one that logs, or nothing for the default",
			config, l)
	}
	return nil
}
