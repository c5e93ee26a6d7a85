package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
)

// addFilter adds the flags that select tasks; they set the fields of a filter.
func addFilter(cmd *cobra.Command, f *inspect.Filter) {
	for i := range call.Conditions {
		c := &call.Conditions[i]
		cmd.Flags().Var(&textFlag{c.Kind, func(s string) error {
			if s == "" {
				return nil
			}
			return c.Set(f, s)
		}}, c.Flag, c.Help)
	}
}

// textFlag is a flag whose texts a function reads.
type textFlag struct {
	kind string // text, duration, time, number or flag
	set  func(string) error
}

func (f *textFlag) String() string { return "" }

func (f *textFlag) Set(s string) error { return f.set(s) }

func (f *textFlag) Type() string {
	switch f.kind {
	case "flag":
		return "bool"
	case "number":
		return "int"
	case "text":
		return "string"
	}
	return f.kind
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
