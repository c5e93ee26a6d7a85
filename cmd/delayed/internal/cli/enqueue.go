package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
)

func (a *app) enqueueCommand() *cobra.Command {
	r, wait, given := call.Request{}, false, map[string][]string{}
	cmd := &cobra.Command{
		Use: "enqueue FUNCTION [ARGUMENT...]", Aliases: []string{"delay", "add"},
		Short: "Enqueue a call; arguments are JSON, checked against what workers publish",
		Long: "Enqueue a call of a function. Each argument is a JSON value: 42, true, '\"en\"', '[1,2]',\n" +
			"'{\"Name\":\"Ann\"}'. Bytes are in base64, times as 2026-01-31T15:04:05Z. FUNCTION is a path or\n" +
			"the end of one, such as mail.Welcome; workers publish the functions of each queue, see delayed\n" +
			"functions. Without --queue the call goes to the queue whose workers know the function. Python\n" +
			"functions are module:function. One that nobody has published, as legacy workers do, is taken as\n" +
			"it is, and needs --queue.",
		Example: "  delayed enqueue mail.Welcome 42 '\"en\"'\n" +
			"  delayed enqueue mail.Welcome 42 '\"en\"' --queue mail --in 1h --max-retry 5\n" +
			"  delayed enqueue sums.Add 1 2 --wait",
	}
	fs := cmd.Flags()
	a.queueFlag(cmd, &r.Queue, "queue; without it, that whose workers know the function")
	fs.StringVar(&r.Kwargs, "kwargs", "", "keyword arguments of a Python function, as a JSON object")
	fs.BoolVar(&r.Unchecked, "unchecked", false, "do not check the call: FUNCTION is a whole path, --queue is needed")
	fs.BoolVar(&wait, "wait", false, "wait for the end of the task and print its result")
	for i := range call.Options {
		o, help := &call.Options[i], call.Options[i].Help
		if o.Many {
			help += "; may be repeated"
		}
		flag := fs.VarPF(&textFlag{o.Kind, func(s string) error {
			if !o.Many {
				given[o.Name] = nil
			}
			given[o.Name] = append(given[o.Name], s)
			return nil
		}}, o.Name, "", help)
		if o.Kind == "flag" {
			flag.NoOptDefVal = "true"
		}
		if o.Choices != nil {
			a.completeFlag(cmd, o.Name, fixed(o.Choices...))
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.connect(); err != nil {
			return err
		}
		if wait && given["keep-result"] == nil && given["retention"] == nil {
			given["keep-result"] = []string{"10m"}
		}
		options, err := call.ReadOptions(given, time.Local)
		if err != nil {
			return usagef("--%w", err)
		}
		r.Function, r.Args = args[0], args[1:]
		return a.enqueue(cmd.Context(), &r, options, wait)
	}
	return cmd
}

// call returns the queue and the call of a request.
func (a *app) call(ctx context.Context, r *call.Request) (string, *delayed.Task, error) {
	var functions []inspect.Function
	if !r.Unchecked {
		var queues []string
		if r.Queue != "" {
			queues = []string{r.Queue}
		}
		var err error
		if functions, err = a.ins.Functions(ctx, queues...); err != nil {
			return "", nil, err
		}
	}
	queue, task, err := r.Task(functions)
	switch {
	case errors.Is(err, inspect.ErrNotFound):
		text := "; known: "
		if near := nearFunction(r.Function, functions); near != "" {
			text = near + " Known: "
		}
		err = &codeError{exitNotFound, err.Error() + text + someOf(functions) + "; see delayed functions, or give " +
			"the whole path with --unchecked and --queue"}
	case errors.Is(err, delayed.ErrArguments):
		err = usagef("%w; give --unchecked to enqueue it all the same", err)
	case err != nil:
		err = usageError{err}
	}
	return queue, task, err
}

// someOf names a few functions.
func someOf(functions []inspect.Function) string {
	var names []string
	for i := range functions {
		if names = append(names, inspect.ShortName(functions[i].Path)); len(names) == 5 {
			break
		}
	}
	if len(names) == 0 {
		return "none"
	}
	if more := len(functions) - len(names); more > 0 {
		names = append(names, term.Count(more, "other"))
	}
	return strings.Join(names, ", ")
}

func printEnqueued(p *term.Page, v *document.Enqueued) {
	if v.ID == "" { // as on legacy queues
		p.Line(term.C("enqueued on "+v.Queue, term.Green))
	} else {
		p.Line(term.C(v.ID))
	}
	if !v.Ended {
		return
	}
	text := []byte("done")
	if v.Result != nil {
		text, _ = call.JSON(v.Result)
	}
	p.Line(term.C(string(text), term.Green))
}

func (a *app) enqueue(ctx context.Context, r *call.Request, options []delayed.Option, wait bool) error {
	queue, task, err := a.call(ctx, r)
	if err != nil {
		return err
	}
	ref, err := a.ins.Enqueue(ctx, queue, task, options...)
	switch {
	case ref != nil && err != nil: // a script must not enqueue it once more
		a.warn(err)
	case errors.Is(err, delayed.ErrArguments), errors.Is(err, delayed.ErrFunction):
		return usageError{err}
	case err != nil:
		return unclear(err)
	}
	v := &document.Enqueued{ID: ref.ID(), Queue: queue}
	if wait {
		result, err := delayed.Await[any](ctx, ref)
		if err != nil && !errors.Is(err, delayed.ErrNoResult) {
			return err
		}
		v.Ended, v.Result = true, call.Plain(result)
	}
	return output(a, v, printEnqueued)
}
