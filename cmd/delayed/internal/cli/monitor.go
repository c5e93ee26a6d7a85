package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// The exit codes of monitoring plug-ins.
const (
	monitorOK = iota
	monitorWarning
	monitorCritical
	monitorUnknown
)

var monitorNames = [...]string{"ok", "warning", "critical", "unknown"}

// monitorView is what a monitor has found.
type monitorView struct {
	Status   string           `json:"status"`
	Findings []findingJSON    `json:"findings"`
	Queues   []document.Queue `json:"queues"`

	code int
}

// findingJSON is a limit that is exceeded.
type findingJSON struct {
	Level string `json:"level"`
	Queue string `json:"queue"`
	Text  string `json:"text"`
}

// limits are the bounds of a monitor, each with one for warnings and one that is critical. 0: none; workers: at least.
type limits struct {
	latency, warnLatency  duration
	pending, warnPending  int
	retry, archived       int
	warnRetry, warnArch   int
	parked, workers       int
	failed, warnFailed    int
	pausedOK, noWorkersOK bool
}

func (a *app) monitorCommand() *cobra.Command {
	var l limits
	cmd := &cobra.Command{
		Use: "monitor [QUEUE...]", Aliases: []string{"check"},
		Short: "Compare queues with limits; the exit code is that of a monitoring plug-in",
		Long: "Compare queues, all of them if none is named, with limits, and print a line for each that is\n" +
			"exceeded. --max-… is critical, --warn-… a warning. A queue with tasks that wait and without\n" +
			"workers is critical, a paused one a warning. Exit codes: 0 ok, 1 warning, 2 critical, 3 unknown\n" +
			"(Redis does not answer, there is no such queue, or the command line is wrong).",
		Example: "  delayed monitor --max-latency 1m --max-archived 100\n" +
			"  delayed monitor mail --warn-latency 10s --max-latency 5m --min-workers 2",
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.completeQueues,
	}
	fs := cmd.Flags()
	fs.Var(&l.latency, "max-latency", "age of the oldest pending task")
	fs.Var(&l.warnLatency, "warn-latency", "the same, for a warning")
	fs.IntVar(&l.pending, "max-pending", 0, "pending tasks")
	fs.IntVar(&l.warnPending, "warn-pending", 0, "the same, for a warning")
	fs.IntVar(&l.retry, "max-retry", 0, "tasks that wait to be tried again")
	fs.IntVar(&l.warnRetry, "warn-retry", 0, "the same, for a warning")
	fs.IntVar(&l.archived, "max-archived", 0, "archived tasks")
	fs.IntVar(&l.warnArch, "warn-archived", 0, "the same, for a warning")
	fs.IntVar(&l.failed, "max-failed", 0, "failed runs of today (UTC)")
	fs.IntVar(&l.warnFailed, "warn-failed", 0, "the same, for a warning")
	fs.IntVar(&l.parked, "max-parked", 0, "parked tasks")
	fs.IntVar(&l.workers, "min-workers", 0, "living workers of each queue")
	fs.BoolVar(&l.pausedOK, "allow-paused", false, "a paused queue is fine")
	fs.BoolVar(&l.noWorkersOK, "allow-no-workers", false, "a queue with waiting tasks and without workers is fine")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var found *monitorView
		err := a.show(cmd.Context(), func(ctx context.Context) (view, error) {
			v, err := a.monitor(ctx, args, func(name string) bool { return cmd.Flags().Changed(name) }, &l)
			if found = v; err != nil && ctx.Err() == nil {
				found = &monitorView{code: monitorUnknown} // --watch may end now
			}
			return v, err
		})
		switch {
		case err != nil:
			a.exit(err)
			return &codeError{code: monitorUnknown}
		case found == nil || found.code == monitorOK:
			return nil
		}
		return &codeError{code: found.code}
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &codeError{monitorUnknown, err.Error() + "; see " + cmd.CommandPath() + " --help"}
	})
	return cmd
}

// monitor compares queues with limits.
func (a *app) monitor(
	ctx context.Context, names []string, given func(string) bool, l *limits,
) (*monitorView, error) {
	var queues []inspect.Queue
	var err error
	if len(names) == 0 {
		queues, err = a.ins.Queues(ctx)
	}
	for _, name := range names {
		q, failed := a.queue(ctx, name)
		if failed != nil {
			return nil, failed
		}
		queues = append(queues, q)
	}
	if err != nil {
		return nil, err
	}
	v := &monitorView{Findings: []findingJSON{}, Queues: []document.Queue{}}
	for i := range queues {
		v.Queues = append(v.Queues, document.QueueOf(&queues[i]))
		v.hold(&queues[i], given, l)
	}
	v.Status = monitorNames[v.code]
	return v, nil
}

// hold compares one queue with the limits that were given.
func (v *monitorView) hold(q *inspect.Queue, given func(string) bool, l *limits) {
	find := func(code int, format string, args ...any) {
		v.code = max(v.code, code)
		v.Findings = append(v.Findings, findingJSON{monitorNames[code], q.Name, fmt.Sprintf(format, args...)})
	}
	if q.Err != nil {
		find(monitorCritical, "%s", document.ErrorText(q.Err.Error()))
		return
	}
	over := func(name, what string, n, most, warn int) {
		switch {
		case given("max-"+name) && n > most:
			find(monitorCritical, "%s, expected at most %s", term.Count(n, what), term.Number(most))
		case given("warn-"+name) && n > warn:
			find(monitorWarning, "%s, expected at most %s", term.Count(n, what), term.Number(warn))
		}
	}
	for _, limit := range []struct {
		flag string
		code int
		most duration
	}{{"max-latency", monitorCritical, l.latency}, {"warn-latency", monitorWarning, l.warnLatency}} {
		if given(limit.flag) && q.Latency > time.Duration(limit.most) {
			find(limit.code, "the oldest pending task has waited for %s, expected at most %s", term.Duration(q.Latency),
				term.Duration(time.Duration(limit.most)))
			break
		}
	}
	over("pending", "pending task", q.Pending, l.pending, l.warnPending)
	over("retry", "retrying task", q.Retry, l.retry, l.warnRetry)
	over("archived", "archived task", q.Archived, l.archived, l.warnArch)
	over("failed", "failed run", int(q.Today.Failed), l.failed, l.warnFailed)
	over("parked", "parked task", q.Parked, l.parked, 0)
	if q.Workers < l.workers {
		find(monitorCritical, "%s, expected at least %d", term.Count(q.Workers, "worker"), l.workers)
	} else if n := q.Unserved(); n > 0 && !l.noWorkersOK {
		find(monitorCritical, "%s and no worker", term.Count(n, "waiting task"))
	}
	if !q.Paused.IsZero() && !l.pausedOK {
		find(monitorWarning, "paused")
	}
}

func (v *monitorView) print(p *term.Page) {
	style := [...]term.Style{term.Green, term.Yellow, term.Red, term.Yellow}
	text := term.Count(len(v.Queues), "queue")
	if len(v.Findings) > 0 {
		text = term.Count(len(v.Findings), "finding") + ", " + text
	}
	p.Say(term.C(strings.ToUpper(v.Status), style[v.code]), term.C(": "+text))
	for _, f := range v.Findings {
		p.Say(term.C(f.Level+": ", levelStyle(f.Level)), term.C("queue "+f.Queue+": "+f.Text))
	}
}

func levelStyle(level string) term.Style {
	if level == monitorNames[monitorCritical] {
		return term.Red
	}
	return term.Yellow
}
