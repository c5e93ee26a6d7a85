package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	cmd.Flags().StringSliceVarP(&states, "state", "s", nil, "states of the tasks: "+stateNames(movable))
	cmd.Flags().StringVarP(&file, "output", "o", "",
		"file to write, in place of the standard output; it must not exist")
	addFilter(cmd, &filter)
	a.completeTaskFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wanted, err := parseStates(states, movable)
		if err != nil {
			return err
		}
		all := len(wanted) == 0
		if all {
			wanted = movable
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
	p.Say(term.C(strings.Join(notes, "; ")))
	_, err = io.WriteString(a.Err, p.String())
	return err
}
