package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
)

func (a *app) functionsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "functions [QUEUE...]", Aliases: []string{"function", "funcs"},
		Short: "List the functions that workers of queues run, with their signatures",
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(cmd.Context(), a, printFunctions, func(ctx context.Context) (document.Functions, error) {
				if err := a.known(ctx, args...); err != nil {
					return document.Functions{}, err
				}
				functions, err := a.ins.Functions(ctx, args...)
				return document.FunctionsOf(functions), err
			})
		},
	}
}

func printFunctions(p *term.Page, v *document.Functions) {
	if len(v.Functions) == 0 {
		p.Line(term.C("No functions: no worker of these queues is alive, or none has published what it runs.",
			term.Dim))
		return
	}
	t := term.NewTable(term.Column{Name: "QUEUE"}, term.Column{Name: "FUNCTION", Flex: true}, term.Num("WORKERS"),
		term.Column{Name: "PATH", Drop: 1, Flex: true}, term.Column{Name: "ALIASES", Optional: true, Drop: 2})
	for i := range v.Functions {
		f := &v.Functions[i]
		t.Row(term.C(f.Queue), term.C(f.Signature, term.Bold), term.Amount(len(f.Workers)), term.C(f.Path, term.Dim),
			term.C(strings.Join(f.Aliases, " ")))
	}
	p.Table(t)
}

// published returns the function that a name means on a queue, nil if no worker there has published one. The name is a
// path or the end of one.
func (a *app) published(ctx context.Context, name, queue string) (*inspect.Function, error) {
	functions, err := a.ins.Functions(ctx, queue)
	if err != nil {
		return nil, err
	}
	matching := call.Match(functions, name)
	if len(matching) == 0 {
		return nil, nil //nolint:nilnil // the comment says so
	}
	for _, f := range matching[1:] {
		if f.Path != matching[0].Path {
			return nil, usagef("%s means several functions of queue %s: %s and %s: write more of the path", quote(name),
				queue, matching[0].Path, f.Path)
		}
	}
	return matching[0], nil
}

// nearFunction is nearest for functions, which people name by their last word, with or without its package.
func nearFunction(name string, functions []inspect.Function) string {
	var names []string
	for i := range functions {
		short := inspect.ShortName(functions[i].Path)
		if !strings.Contains(name, ".") {
			short = short[strings.LastIndexByte(short, '.')+1:]
		}
		names = append(names, short)
	}
	return nearest(name, names)
}
