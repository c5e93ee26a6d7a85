package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// editFlags are the new arguments of tasks.
type editFlags struct {
	args, kwargs string
	unchecked    bool
}

func (a *app) editCommand() *cobra.Command {
	e := &editFlags{}
	cmd := a.actionCommand("edit", nil, "Give tasks other arguments", act{
		verb: "edit", states: movable, edit: e, example: ` --args '[42,"en"]'`,
		prepare: func(*cobra.Command) (inspect.Action, error) {
			if e.args == "" && e.kwargs == "" {
				return inspect.Action{}, usagef(`with what? expected --args with a JSON array, such as '[42,"en"]'`)
			}
			return inspect.Action{}, nil
		},
	})
	cmd.Flags().StringVar(&e.args, "args", "", `the new arguments as a JSON array, such as '[42,"en"]'`)
	cmd.Flags().StringVar(&e.kwargs, "kwargs", "", "keyword arguments of a Python function, as a JSON object")
	cmd.Flags().BoolVar(&e.unchecked, "unchecked", false,
		"do not check them against the signature that workers publish")
	return cmd
}

// action returns the action that gives a task the new arguments.
func (e *editFlags) action(ctx context.Context, a *app, t *inspect.Task) (inspect.Action, error) {
	if t.Function == "" {
		return inspect.Action{}, usagef("task %s: its function is unknown, so it cannot be edited", quote(t.ID))
	}
	texts, err := call.Split(e.args)
	if err != nil {
		return inspect.Action{}, usagef("--args: %w", err)
	}
	if t.Python {
		task, err := call.Python(t.Function, texts, e.kwargs)
		return inspect.Edit(task), misused(err)
	}
	if e.kwargs != "" {
		return inspect.Action{}, usagef("--kwargs is for Python functions, and %s is one of Go", t.Function)
	}
	fn, err := a.published(ctx, t.Function, t.Queue)
	if err != nil {
		return inspect.Action{}, err
	}
	if fn == nil && !e.unchecked {
		return inspect.Action{}, usagef("no worker of queue %s has published %s: start one, or give --unchecked",
			t.Queue, t.Function)
	}
	if e.unchecked {
		fn = nil
	}
	args, err := call.Arguments(texts, fn)
	if err != nil {
		return inspect.Action{}, misused(err)
	}
	return inspect.Edit(delayed.NewGoTask(t.Function, args...)), nil
}

// actionFor returns the action for all tasks of a list, and whether there are any. They must be of the function of the
// first.
func (e *editFlags) actionFor(
	ctx context.Context, a *app, queue string, q inspect.Query,
) (action inspect.Action, found bool, err error) {
	if q.Filter.Function == "" {
		return action, false, usagef("--all: expected --func, because all tasks get the same arguments")
	}
	for t, err := range a.ins.All(ctx, queue, q) {
		if err == nil {
			action, err = e.action(ctx, a, &t)
		}
		return action, true, err
	}
	return action, false, nil
}
