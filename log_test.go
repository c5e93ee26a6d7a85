package delayed_test

import (
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/loop"
)

// TestLinesThatTheHandlerDoesNotWant are not made, and its level may change at any time.
func TestLinesThatTheHandlerDoesNotWant(t *testing.T) {
	var level slog.LevelVar
	journal := loop.NewJournal(
		delayed.SlogLogger(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: &level}))).With("worker", "w")
	of := map[loop.Level]slog.Level{
		loop.DebugLevel: slog.LevelDebug, loop.InfoLevel: slog.LevelInfo, loop.WarnLevel: slog.LevelWarn,
		loop.ErrorLevel: slog.LevelError,
	}
	for _, least := range of {
		level.Set(least)
		for line, its := range of {
			if got, want := journal.Wants(line), its >= least; got != want {
				t.Errorf("a handler of level %v wants a line of level %v: %v, expected %v", least, line, got, want)
			}
		}
	}
	level.Set(slog.LevelError)
	if n := testing.AllocsPerRun(10, func() { journal.Line(loop.WarnLevel, nil, errLine, "task failed") }); n != 0 {
		limits.Errorf(t, "a line that nobody wants took %v allocations", n)
	}
}

var errLine = errors.New("no luck")
