package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// filterFlags are the flags that select tasks.
type filterFlags struct {
	inspect.Filter
	headers      []string
	older, newer duration
}

func (f *filterFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.Function, "func", "", "function: Welcome, mail.Welcome or its whole path")
	fs.StringVar(&f.ID, "id", "", "beginning of the id")
	fs.StringVar(&f.Error, "error", "", "part of the text of the last error")
	fs.StringVar(&f.Reason, "reason", "", `why the task is where it is, such as "arguments"`)
	fs.StringVar(&f.Worker, "worker", "", "id of the worker that has the task, or had it last")
	fs.StringVar(&f.Group, "group", "", "key of the group that the call waits in or is to join")
	fs.StringArrayVar(&f.headers, "header", nil, "header: KEY=VALUE, or KEY for any value; may be repeated")
	fs.StringVar(&f.Arg, "arg", "", "argument: 0=42, 1.user.name=Ann, to=ann@example.com, or a path without a value")
	fs.StringVar(&f.Text, "text", "", `part of the call as it is shown, such as 42, "en"`)
	fs.Var(&f.older, "older-than", "enqueued at least so long ago, such as 15m or 7d")
	fs.Var(&f.newer, "newer-than", "enqueued at most so long ago")
	fs.IntVar(&f.MinAttempt, "min-attempt", 0, "attempt that the task is at, at least")
	fs.IntVar(&f.MaxAttempt, "max-attempt", 0, "attempt that the task is at, at most")
	fs.IntVar(&f.MinDeaths, "min-deaths", 0, "workers that have died with the task, at least")
}

// filter returns the filter of the flags.
func (f *filterFlags) filter() inspect.Filter {
	filter := f.Filter
	filter.OlderThan, filter.YoungerThan = time.Duration(f.older), time.Duration(f.newer)
	for _, h := range f.headers {
		if filter.Headers == nil {
			filter.Headers = map[string]string{}
		}
		key, value, _ := strings.Cut(h, "=")
		filter.Headers[key] = value
	}
	return filter
}

// parseStates reads the states of --state.
func parseStates(names []string, among []state.Task) ([]state.Task, error) {
	var states []state.Task
	for _, name := range names {
		i := slices.IndexFunc(among, func(s state.Task) bool { return s.String() == canonical(name) })
		if i < 0 {
			return nil, usagef("--state %s: expected one of %s", quote(name), stateNames(among))
		}
		if !slices.Contains(states, among[i]) {
			states = append(states, among[i])
		}
	}
	return states, nil
}

// canonical returns a state's name for what people call it elsewhere.
func canonical(name string) string {
	switch name = strings.ToLower(name); name {
	case "dead", "failed":
		return "archived"
	case "retrying", "retries":
		return "retry"
	case "running", "processing":
		return "active"
	case "waiting", "ready", "enqueued":
		return "pending"
	case "done", "succeeded":
		return "completed"
	case "delayed":
		return "scheduled"
	}
	return name
}

func stateNames(states []state.Task) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}
