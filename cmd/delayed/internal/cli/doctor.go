package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Aliases: []string{"diagnose"},
		Short: "Look for what is wrong with Redis, queues and workers, and say what to do",
		Long: "Look at the settings of Redis, and for queues without workers, tasks that wait too long, functions\n" +
			"that fail or that no worker knows, parked and unreadable tasks, dead workers, old pauses, entries that\n" +
			"nobody ticks, and workers of several versions. delayed top and the dashboard find the same. The exit\n" +
			"code is 1 if there is an error among the problems, and 0 with warnings alone.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			sick := false
			err := show(cmd.Context(), a, printDiagnosis, func(ctx context.Context) (document.Diagnosis, error) {
				d, err := a.ins.Diagnose(ctx)
				sick = err != nil && ctx.Err() == nil // else --watch ends
				for i := range d.Problems {
					sick = sick || d.Problems[i].Severity == inspect.SeverityError
				}
				return document.DiagnosisOf(&d), err
			})
			if err == nil && sick {
				err = errSilent // the page has the problems
			}
			return err
		},
	}
}

func printDiagnosis(p *term.Page, v *document.Diagnosis) {
	p.Line(term.C("Looked at Redis, "+term.Count(v.Queues, "queue")+" and "+
		term.Count(v.Workers, "living worker")+".", term.Dim))
	if len(v.Problems) == 0 {
		p.Line(term.C("Nothing is wrong.", term.Green))
		return
	}
	for i := range v.Problems {
		f := &v.Problems[i]
		style, where, text, advice := term.Yellow, "redis", f.Text, f.Advice
		if f.Level == string(inspect.SeverityError) {
			style = term.Red
		}
		if f.Queue != "" {
			where = "queue " + f.Queue
		}
		if f.Others > 0 {
			where += " and " + term.Count(f.Others, "other queue")
		}
		if f.Since != nil && v.At != nil {
			text += " (for " + term.Duration(v.At.Sub(*f.Since)) + ")"
		}
		if f.Command != "" {
			advice += ": " + f.Command
		}
		p.Space()
		p.Line(term.C(f.Level+": ", style), term.C(where, term.Bold), term.C(": "+text))
		p.Line(term.C("  "+advice, term.Dim))
	}
}
