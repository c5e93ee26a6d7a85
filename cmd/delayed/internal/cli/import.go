package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

func (a *app) importCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "import [FILE]", Short: "File the tasks that export has written",
		Long: "File the tasks that export has written, from a file or the standard input, in their queues and\n" +
			"states. A task whose id the queue holds already is refused, and so is one that is not as export\n" +
			"writes it; the others are imported. A line that is no such JSON ends the import: tasks before it\n" +
			"are imported. Tasks come without their locks of Unique and TaskID.",
	}
	cmd.Flags().StringVar(&to, "to", "", "queue to file all tasks in, in place of their own")
	a.completeFlag(cmd, "to", a.completeQueues)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.connect(); err != nil {
			return err
		}
		if to != "" {
			if _, err := delayed.OpenQueue(to, a.rdb, delayed.QueueConfig{}); err != nil {
				return usagef("--to %s: %w", quote(to), err)
			}
		}
		in := a.In
		if len(args) == 1 && args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return usageError{err}
			}
			defer f.Close()
			in = f
		}
		return a.importAll(cmd.Context(), in, to)
	}
	return cmd
}

// importAll files the tasks of an export: those of one queue after the other.
func (a *app) importAll(ctx context.Context, in io.Reader, to string) error {
	r := &lineReader{in: bufio.NewScanner(in), to: to}
	r.in.Buffer(nil, maxLine)
	bar := a.bar()
	v := &document.Acted{Action: "import", Reports: []document.Report{}}
	var errs []error
	for r.next() {
		queue := r.line.Queue
		report, err := a.ins.Import(context.WithoutCancel(ctx), queue, r.sameQueue(), func(r inspect.Report) bool {
			if r.Scanned%100 == 0 {
				bar.Show(r.Scanned, "imported "+term.Number(r.Done))
			}
			return ctx.Err() == nil
		})
		v.Reports = append(v.Reports, document.ReportOf(queue, "", &report))
		if ctx.Err() != nil {
			v.Interrupted = true
			errs = append(errs, err, errInterrupted)
			break
		}
		if err != nil && r.err == nil {
			errs = append(errs, unclear(err))
			break
		}
	}
	bar.Clear()
	return a.acted(v, append(errs, r.err))
}

// maxLine bounds a line of an export, in bytes: the largest message and the largest info, in base 64, take 4.4 MiB.
const maxLine = 8 << 20

// lineReader reads the lines of an export.
type lineReader struct {
	in     *bufio.Scanner
	to     string // queue of all tasks; "": their own
	number int
	line   *lineJSON // that was read and not used; nil: none
	err    error
}

// next reads a line, unless there is one. It reports whether there is.
func (r *lineReader) next() bool {
	for r.line == nil && r.err == nil {
		r.number++
		switch more := r.in.Scan(); {
		case more:
			if text := bytes.TrimSpace(r.in.Bytes()); len(text) > 0 {
				r.parse(text)
			}
		case errors.Is(r.in.Err(), bufio.ErrTooLong):
			r.err = usagef("line %d: expected a task as delayed export writes it, found a line of more than %d bytes",
				r.number, maxLine)
		default:
			r.err = r.in.Err()
			return false
		}
	}
	return r.line != nil
}

func (r *lineReader) parse(text []byte) {
	var line lineJSON
	err := json.Unmarshal(text, &line)
	switch {
	case err != nil:
		r.err = usagef("line %d: expected a task as delayed export writes it: %w", r.number, err)
	case line.Version != exportVersion:
		r.err = usagef("line %d: expected version %d, found %d: use the delayed that has exported it", r.number,
			exportVersion, line.Version)
	case line.Queue == "" && r.to == "":
		r.err = usagef("line %d: expected a queue, found none", r.number)
	default:
		if r.to != "" {
			line.Queue = r.to
		}
		r.line = &line
	}
}

// sameQueue returns the tasks up to the first of another queue.
func (r *lineReader) sameQueue() iter.Seq2[inspect.Exported, error] {
	return func(yield func(inspect.Exported, error) bool) {
		for queue := r.line.Queue; r.next() && r.line.Queue == queue; {
			line := r.line
			r.line = nil
			e := inspect.Exported{State: stateOf(line.State), ID: line.ID, Message: line.Message, Info: line.Info}
			if line.Due != nil {
				e.Due = *line.Due
			}
			if !yield(e, nil) {
				return
			}
		}
		if r.err != nil {
			yield(inspect.Exported{}, r.err)
		}
	}
}
