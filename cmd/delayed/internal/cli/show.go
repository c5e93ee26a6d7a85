package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
)

// page returns an empty page for the terminal, or for what Out is otherwise.
func (a *app) page() *term.Page {
	width := a.Columns()
	color := width > 0 && !a.noColor && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
	return &term.Page{Width: width, Color: color, Now: a.Now()}
}

// show shows the document that read returns, once, or again and again with --watch. write writes it for people.
func show[T any](
	ctx context.Context, a *app, write func(*term.Page, *T), read func(context.Context) (T, error),
) error {
	if err := a.connect(); err != nil {
		return err
	}
	if a.watch < 0 || a.watch == 0 && a.watched() {
		return usagef("--watch %v: expected a positive duration", a.watch)
	}
	for first := true; ; first = false {
		v, err := read(ctx)
		if err != nil {
			switch {
			case ctx.Err() != nil:
				return nil //nolint:nilerr // Ctrl-C is how --watch ends
			case first || errors.Is(err, delayed.ErrClosed):
				return err
			}
			a.exit(err) // Redis may come back
		} else if err := output(a, &v, write); err != nil || a.watch == 0 {
			return err
		}
		timer := time.NewTimer(a.watch)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// output writes a document: with --json as such, else by write. On a terminal, --watch puts it in place of the one
// before.
func output[T any](a *app, v *T, write func(*term.Page, *T)) error {
	if a.json {
		return a.outputJSON(v, a.watch == 0)
	}
	p := a.page()
	write(p, v)
	text := p.String()
	if a.watch > 0 {
		if p.Width > 0 {
			text = "\x1b[H\x1b[2J" + text
		} else if a.shown {
			text = "\n" + text
		}
	}
	a.shown = true
	_, err := io.WriteString(a.Out, text)
	return err
}

// outputJSON writes a document as JSON: indented, or on one line.
func (a *app) outputJSON(v any, indented bool) error {
	text, err := call.JSON(v)
	if err != nil {
		return err
	}
	if indented {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err != nil {
			return err
		}
		text = b.Bytes()
	}
	_, err = a.Out.Write(append(text, '\n'))
	return err
}

// each does something to each of several things, goes on after an error, and shows what was done.
func (a *app) each(cmd *cobra.Command, done string, names []string, do func(name string) error) error {
	v := document.Did{Action: cmd.Name(), Done: []string{}}
	var errs []error
	for _, name := range names {
		if err := do(name); err != nil {
			errs = append(errs, err)
		} else {
			v.Done = append(v.Done, name)
		}
	}
	if len(v.Done) > 0 || a.json {
		errs = append(errs, output(a, &v, func(p *term.Page, v *document.Did) {
			for _, name := range v.Done {
				p.Line(term.C(done+" "), term.C(name, term.Bold))
			}
		}))
	}
	return join(errs)
}

// verb is a command that does something to each of several things. done precedes their names when it is done.
func (a *app) verb(use string, aliases []string, short, done string,
	do func(ctx context.Context, name string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Aliases: aliases, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			return a.each(cmd, done, args, func(name string) error { return do(cmd.Context(), name) })
		},
	}
}

// bar returns a progress bar on the standard error, which shows nothing if that is no terminal.
func (a *app) bar() *term.Progress {
	bar := &term.Progress{}
	if a.Bars {
		bar.Out = a.Err
	}
	return bar
}
