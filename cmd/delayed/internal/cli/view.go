package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/call"
)

// view is what a command shows: with --json it is encoded, else it prints itself.
type view interface{ print(p *term.Page) }

// page returns an empty page for the terminal, or for what Out is otherwise.
func (a *app) page() *term.Page {
	width := a.Columns()
	color := width > 0 && !a.noColor && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
	return &term.Page{Width: width, Color: color, Now: a.Now()}
}

// show shows what collect returns, once, or again and again with --watch.
func (a *app) show(ctx context.Context, collect func(context.Context) (view, error)) error {
	if err := a.connect(); err != nil {
		return err
	}
	if a.watch < 0 || a.watch == 0 && a.watched() {
		return usagef("--watch %v: expected a positive duration", a.watch)
	}
	for first := true; ; first = false {
		v, err := collect(ctx)
		if err != nil {
			switch {
			case ctx.Err() != nil:
				return nil //nolint:nilerr // Ctrl-C is how --watch ends
			case first || errors.Is(err, delayed.ErrClosed):
				return err
			}
			a.exit(err) // Redis may come back
		} else if err := a.print(v, first); err != nil || a.watch == 0 {
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

// print prints a view. On a terminal, --watch puts it in place of the one before.
func (a *app) print(v view, first bool) error {
	if a.json {
		return a.printJSON(v)
	}
	p := a.page()
	v.print(p)
	text := p.String()
	if a.watch > 0 {
		if p.Width > 0 {
			text = "\x1b[H\x1b[2J" + text
		} else if !first {
			text = "\n" + text
		}
	}
	_, err := io.WriteString(a.Out, text)
	return err
}

// printJSON prints a document: indented, or on one line with --watch.
func (a *app) printJSON(v any) error {
	text, err := call.JSON(v)
	if err != nil {
		return err
	}
	if a.watch == 0 {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err != nil {
			return err
		}
		text = b.Bytes()
	}
	_, err = a.Out.Write(append(text, '\n'))
	return err
}
