// Package top is the screen of the command delayed top: queues, workers, functions, tasks, events, periodic entries,
// groups and the audit log, live, with actions. The model (model.go) gets keys, clicks and what was read from Redis as
// messages, and paints a screen from them; it needs no terminal. Each screen has a file of its own. All that is read
// from Redis comes from a source (source.go), in commands that run beside the model: one at a time, for the screen that
// is shown and no other.
package top

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// DefaultInterval is how often the screen is refreshed by default.
const DefaultInterval = time.Second

// Config is what is shown, and where.
type Config struct {
	Redis     *delayed.Store
	Inspector *inspect.Inspector // of the same Redis
	Interval  time.Duration      // between two refreshes; 0: DefaultInterval
	Where     string             // which Redis that is, for the head of the screen
	In        io.Reader          // a terminal
	Out       io.Writer          // a terminal
	Color     bool               // colours may be used
	Unicode   bool               // the terminal shows more than ASCII
}

// framesPerSecond bounds how often the terminal is written to. A connection over ssh may be slow.
const framesPerSecond = 20

// Run shows the screen until somebody quits or ctx ends, and restores the terminal. Only one may run at a time.
func Run(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, cfg, newLive(cfg.Inspector))
	profile := colorprofile.ASCII
	if cfg.Color {
		profile = colorprofile.ANSI
	}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(cfg.In), tea.WithOutput(cfg.Out),
		tea.WithFPS(framesPerSecond), tea.WithColorProfile(profile), tea.WithoutSignalHandler()).Run()
	cancel() // what is still read, and a bulk action between two of its pages
	m.work.shut()
	if ctxErr := context.Cause(ctx); errors.Is(err, tea.ErrProgramKilled) && errors.Is(ctxErr, context.Canceled) &&
		!errors.Is(err, tea.ErrProgramPanic) {
		return nil
	}
	return err
}
