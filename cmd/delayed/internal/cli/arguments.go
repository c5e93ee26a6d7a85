package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// arguments derives from Use, for a command and all below it, which arguments it takes and what a shell proposes:
// NAME is one argument, NAME... is one or more, and [NAME] or [NAME...] may be left out.
func (a *app) arguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.arguments(sub)
	}
	names := strings.Fields(cmd.Use)[1:]
	if i := slices.IndexFunc(names, func(name string) bool { return strings.ContainsAny(name[:1], "-|") }); i >= 0 {
		names = names[:i] // flags follow
	}
	least, most := 0, len(names)
	for _, name := range names {
		if name[0] != '[' {
			least++
		}
		if strings.Contains(name, "...") {
			most = 1 << 30
		}
	}
	if cmd.Args == nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			switch n := len(args); {
			case n < least || n > most && most > 0:
				return usagef("expected %s, found %d: usage: %s; see %s --help",
					term.Count(min(max(n, least), most), "argument"), n, cmd.UseLine(), cmd.CommandPath())
			case n > most:
				return usagef("unexpected argument %s: usage: %s", quote(args[0]), cmd.UseLine())
			}
			return nil
		}
	}
	if most > 0 && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = map[string]cobra.CompletionFunc{
			"QUEUE": a.completeQueues, "WORKER": a.completeWorkers, "ENTRY": a.completeEntries, "ID": a.completeIDs,
			"FUNCTION": a.completeFunctions,
		}[strings.Trim(names[0], "[].")]
	}
}

// quote writes a name that somebody has given, for messages.
func quote(s string) string { return strconv.Quote(term.Clip(s, 100)) }

// within returns an error unless a number of a flag or argument lies between bounds.
func within(name string, n, least, most int) error {
	if n < least || n > most {
		return usagef("%s %d: expected %d to %d", name, n, least, most)
	}
	return nil
}

// duration is the value of a flag: a duration as Go writes it, with days and weeks besides: 90s, 1d12h, 2w. It is never
// negative.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(s string) error {
	v, err := call.ParseSpan(s)
	*d = duration(v)
	return err
}

// moment is the value of a flag: a time.
type moment struct{ time.Time }

func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

func (m *moment) Type() string { return "time" }

func (m *moment) Set(s string) error {
	t, err := call.ParseTime(s, time.Local)
	m.Time = t
	return err
}

const (
	// mostNear bounds how many names are proposed in place of an unknown one.
	mostNear = 3
	// longNear is the length of the longest names that are compared, and manyNear how many are.
	longNear, manyNear = 100, 10_000
)

// nearest asks whether one of the known names was meant. It returns "" if no known name begins like the given one or
// differs from it in one or two letters, whether they are capitals or not.
func nearest(name string, known []string) string {
	if name == "" || len(name) > longNear {
		return ""
	}
	// Package cobra measures how alike names of commands are.
	names := &cobra.Command{SuggestionsMinimumDistance: min(len(name)/2, 2)}
	for _, k := range known[:min(len(known), manyNear)] {
		if len(k) <= longNear && !strings.Contains(k, " ") { // cobra takes what precedes the blank for the name
			names.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
		}
	}
	near := names.SuggestionsFor(name)
	slices.Sort(near)
	near = slices.Compact(near)
	near = near[:min(len(near), mostNear)]
	for i := range near {
		near[i] = quote(near[i])
	}
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// queue returns a queue that must be known, with all that it holds. The error of an unknown one proposes another name.
func (a *app) queue(ctx context.Context, name string) (inspect.Queue, error) {
	q, err := a.ins.Queue(ctx, name)
	if errors.Is(err, inspect.ErrNotFound) {
		if known, failed := a.ins.Names(ctx); failed == nil {
			err = fmt.Errorf("%w%s", err, nearest(name, known))
		}
	}
	return q, err
}

// queues returns the given queues, which must be known, or all if none is given.
func (a *app) queues(ctx context.Context, names []string) (queues []inspect.Queue, err error) {
	if len(names) == 0 {
		return a.ins.Queues(ctx)
	}
	for _, name := range names {
		q, err := a.queue(ctx, name)
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}

// names is queues for their names.
func (a *app) names(ctx context.Context, given []string) (names []string, err error) {
	queues, err := a.queues(ctx, given)
	for i := range queues {
		names = append(names, queues[i].Name)
	}
	return names, err
}
