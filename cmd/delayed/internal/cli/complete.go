package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

const (
	completeTime = time.Second // how long a shell may wait
	completeMost = 100         // ids
)

// completeFlag sets what is proposed for a flag.
func (a *app) completeFlag(cmd *cobra.Command, flag string, c cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, c); err != nil {
		panic(err) // there is no such flag
	}
}

// fixed proposes always the same words.
func fixed(all ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) (proposed, cobra.ShellCompDirective) {
		return words(all, begun), noFiles
	}
}

// words returns the words that begin as given, and that a shell can show.
func words(all []string, begun string) []string {
	var fit []string
	for _, w := range all {
		name, _, _ := strings.Cut(w, "\t")
		if strings.HasPrefix(name, begun) && name != "" && !strings.Contains(name, " ") && len(name) <= 512 &&
			term.Printable(name) == name {
			fit = append(fit, w)
		}
	}
	return fit
}

// proposed are the words of a completion.
type proposed = []cobra.Completion

const noFiles = cobra.ShellCompDirectiveNoFileComp

// propose asks Redis for words, for a short time.
func (a *app) propose(
	cmd *cobra.Command, begun string, ask func(context.Context) ([]string, error),
) (proposed, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	if a.connect() != nil {
		return nil, noFiles
	}
	all, err := ask(ctx)
	if err != nil {
		return nil, noFiles
	}
	return words(all, begun), noFiles
}

func (a *app) completeProfiles(*cobra.Command, []string, string) (proposed, cobra.ShellCompDirective) {
	config, err := readConfig(a.config, a.Getenv)
	if err != nil {
		return nil, noFiles
	}
	return words(sorted(config.Profiles), ""), noFiles
}

func (a *app) completeQueues(cmd *cobra.Command, _ []string, begun string) (proposed, cobra.ShellCompDirective) {
	return a.propose(cmd, begun, func(ctx context.Context) ([]string, error) { return a.names(ctx, nil) })
}

func (a *app) completeWorkers(cmd *cobra.Command, _ []string, begun string) (proposed, cobra.ShellCompDirective) {
	return a.propose(cmd, begun, func(ctx context.Context) (ids []string, err error) {
		workers, err := a.ins.Workers(ctx)
		for _, w := range workers {
			ids = append(ids, w.ID+"\t"+term.Clip(w.Host, 40))
		}
		return ids, err
	})
}

// completeFunctions proposes short names of functions.
func (a *app) completeFunctions(cmd *cobra.Command, args []string, begun string) (proposed, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Name() == "enqueue" {
		return nil, noFiles
	}
	return a.propose(cmd, begun, func(ctx context.Context) (names []string, err error) {
		functions, err := a.ins.Functions(ctx)
		for i := range functions {
			names = append(names, inspect.ShortName(functions[i].Path)+"\t"+functions[i].Signature())
		}
		return names, err
	})
}

func (a *app) completeEntries(cmd *cobra.Command, _ []string, begun string) (proposed, cobra.ShellCompDirective) {
	return a.propose(cmd, begun, func(ctx context.Context) (names []string, err error) {
		entries, err := a.ins.Entries(ctx)
		for _, e := range entries {
			names = append(names, e.Name+"\t"+term.Clip(e.Spec, 40))
		}
		return names, err
	})
}

// completeIDs proposes ids of tasks, of those that operators look for first.
func (a *app) completeIDs(cmd *cobra.Command, _ []string, begun string) (proposed, cobra.ShellCompDirective) {
	return a.propose(cmd, begun, func(ctx context.Context) (ids []string, err error) {
		var given []string
		if f := cmd.Flag("queue"); f != nil && f.Value.String() != "" {
			given = []string{f.Value.String()}
		}
		queues, err := a.names(ctx, given)
		if err != nil {
			return nil, err
		}
		for _, q := range queues {
			for _, s := range inspect.States {
				page, err := a.ins.Tasks(ctx, q, inspect.Query{
					State: s, Filter: inspect.Filter{ID: begun}, Limit: completeMost, ScanLimit: 1000,
					NewestFirst: true,
				})
				if err != nil {
					return ids, nil //nolint:nilerr // what was found is proposed
				}
				for i := range page.Tasks {
					t := &page.Tasks[i]
					ids = append(ids, t.ID+"\t"+term.Clip(s.String()+" "+t.Call, 60))
				}
				if len(ids) >= completeMost {
					return ids, nil
				}
			}
		}
		return ids, nil
	})
}

// completeTaskFlags sets what is proposed for the flags that select tasks.
func (a *app) completeTaskFlags(cmd *cobra.Command) {
	a.completeStates(cmd)
	a.completeFlag(cmd, "func", a.completeFunctions)
	a.completeFlag(cmd, "worker", a.completeWorkers)
	a.completeFlag(cmd, "id", a.completeIDs)
}

func (a *app) completeStates(cmd *cobra.Command) {
	var names []string
	for _, s := range inspect.States {
		names = append(names, s.String())
	}
	a.completeFlag(cmd, "state", fixed(names...))
}
