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
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// lineJSON is a line of an export: a task as Redis keeps it. Function and call are for people; import ignores them.
type lineJSON struct {
	Version  int        `json:"version"`
	Queue    string     `json:"queue"`
	State    string     `json:"state"`
	ID       string     `json:"id"`
	Due      *time.Time `json:"due,omitempty"`
	Message  []byte     `json:"message"`        // see docs/PROTOCOL.md
	Info     []byte     `json:"info,omitempty"` // what Redis knows beyond the message
	Function string     `json:"function,omitempty"`
	Call     string     `json:"call,omitempty"`
}

const exportVersion = 1

func (a *app) exportCommand() *cobra.Command {
	var (
		filter inspect.Filter
		states []string
		file   string
	)
	cmd := &cobra.Command{
		Use: "export [QUEUE...]", Short: "Write tasks as lines of JSON that import reads",
		Long: "Write the tasks of queues, of all queues if none is named, as lines of JSON: with state, time,\n" +
			"message and what is known of them, byte for byte. It takes nothing out of the queues. Tasks\n" +
			"that run, that are gathered in groups or that have succeeded are left out; without --state it\n" +
			"says how many, on the standard error. Tasks that move meanwhile may be missing or twice: pause\n" +
			"the queue before.",
		Example: "  delayed export mail --state archived > archived.jsonl\n" +
			"  delayed --profile old export | delayed --profile new import",
	}
	cmd.Flags().StringSliceVarP(&states, "state", "s", nil, "states of the tasks: "+stateNames(term.Movable))
	cmd.Flags().StringVarP(&file, "output", "o", "",
		"file to write, in place of the standard output; it must not exist")
	addFilter(cmd, &filter)
	a.completeTaskFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wanted, err := parseStates(states, term.Movable)
		if err != nil {
			return err
		}
		all := len(wanted) == 0
		if all {
			wanted = term.Movable
		}
		if err := a.connect(); err != nil {
			return err
		}
		out := a.Out
		if file != "" {
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return usageError{err}
			}
			defer f.Close()
			out = f
		}
		return a.export(cmd.Context(), out, args, wanted, filter, all && filter.IsZero())
	}
	return cmd
}

// export writes tasks, and on the standard error how many. If it is to write all tasks, it also reports how many are
// in states that cannot be exported.
func (a *app) export(
	ctx context.Context, out io.Writer, queues []string, states []state.Task, filter inspect.Filter, all bool,
) error {
	held, err := a.queues(ctx, queues)
	if err != nil {
		return err
	}
	bar := a.bar()
	w := bufio.NewWriter(out)
	done, left := 0, 0
	others := map[state.Task]int{}
	for i := range held {
		q, queue := &held[i], held[i].Name
		for _, s := range inspect.States {
			if all && !slices.Contains(states, s) {
				others[s] += q.Size(s)
			}
		}
		for _, s := range states {
			query := inspect.Query{State: s, Filter: filter, Limit: 1000}
			for t, err := range a.ins.All(ctx, queue, query) {
				if err != nil {
					return err
				}
				e, err := t.Export()
				if err != nil { // too large to be read
					left++
					continue
				}
				line, err := call.JSON(lineJSON{
					Version: exportVersion, Queue: queue, State: s.String(), ID: e.ID, Due: document.Stamp(e.Due),
					Message: e.Message, Info: e.Info, Function: t.Function, Call: t.Call,
				})
				if err != nil {
					return err
				}
				if _, err := w.Write(append(line, '\n')); err != nil {
					return err
				}
				if done++; done%1000 == 0 {
					bar.Show(done, "exported")
				}
			}
		}
	}
	bar.Clear()
	if err := w.Flush(); err != nil {
		return err
	}
	p := term.Page{Now: a.Now()}
	notes := []string{"exported " + term.Count(done, "task")}
	if left > 0 {
		notes = append(notes, term.Count(left, "task")+" too large to be read were left out")
	}
	for _, s := range inspect.States {
		if others[s] > 0 {
			notes = append(notes, term.Count(others[s], s.String()+" task")+" cannot be exported")
		}
	}
	p.Line(term.C(strings.Join(notes, "; ")))
	_, err = io.WriteString(a.Err, p.String())
	return err
}

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
