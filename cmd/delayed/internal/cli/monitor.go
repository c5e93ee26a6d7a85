package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// limits are the bounds of a monitor.
type limits struct {
	flags                *pflag.FlagSet
	latency, warnLatency duration
	counts               []countLimit
	workers              int // at least
	pausedOK, unservedOK bool
}

// countLimit bounds a number of a queue. It holds if its flag was given.
type countLimit struct {
	flag, what string
	of         func(*inspect.Queue) int
	most, warn *int // values of --max-FLAG and --warn-FLAG; warn is nil if there is no such flag
}

// newLimits defines the flags of a monitor.
func newLimits(fs *pflag.FlagSet) *limits {
	l := &limits{flags: fs}
	const same = "the same, for a warning"
	fs.Var(&l.latency, "max-latency", "age of the oldest pending task")
	fs.Var(&l.warnLatency, "warn-latency", same)
	for _, c := range []struct {
		flag, what, help string
		of               func(*inspect.Queue) int
	}{
		{"pending", "pending task", "pending tasks", func(q *inspect.Queue) int { return q.Pending }},
		{"retry", "retrying task", "tasks that wait to be tried again", func(q *inspect.Queue) int { return q.Retry }},
		{"archived", "archived task", "archived tasks", func(q *inspect.Queue) int { return q.Archived }},
		{"failed", "failed run", "failed runs of today (UTC)", func(q *inspect.Queue) int {
			return int(q.Today.Failed)
		}},
		{"parked", "parked task", "parked tasks", func(q *inspect.Queue) int { return q.Parked }},
	} {
		limit := countLimit{flag: c.flag, what: c.what, of: c.of, most: fs.Int("max-"+c.flag, 0, c.help)}
		if c.flag != "parked" {
			limit.warn = fs.Int("warn-"+c.flag, 0, same)
		}
		l.counts = append(l.counts, limit)
	}
	fs.IntVar(&l.workers, "min-workers", 0, "living workers of each queue")
	fs.BoolVar(&l.pausedOK, "allow-paused", false, "a paused queue is fine")
	fs.BoolVar(&l.unservedOK, "allow-no-workers", false, "a queue with waiting tasks and without workers is fine")
	return l
}

func (a *app) monitorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "monitor [QUEUE...]", Aliases: []string{"check"},
		Short: "Compare queues with limits; the exit code is that of a monitoring plug-in",
		Long: "Compare queues, all of them if none is named, with limits, and print a line for each that is\n" +
			"exceeded. --max-… is critical, --warn-… a warning. A queue with tasks that wait and without\n" +
			"workers is critical, a paused one a warning. Exit codes: 0 ok, 1 warning, 2 critical, 3 unknown\n" +
			"(Redis does not answer, there is no such queue, or the command line is wrong).",
		Example: "  delayed monitor --max-latency 1m --max-archived 100\n" +
			"  delayed monitor mail --warn-latency 10s --max-latency 5m --min-workers 2",
	}
	l := newLimits(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		code := monitorOK
		err := show(cmd.Context(), a, printMonitor, func(ctx context.Context) (monitorView, error) {
			v, err := a.monitor(ctx, args, l)
			if code = v.code; err != nil && ctx.Err() == nil {
				code = monitorUnknown // --watch may end now
			}
			return v, err
		})
		if err != nil {
			a.exit(err)
			code = monitorUnknown
		}
		if code == monitorOK {
			return nil
		}
		return &codeError{code: code}
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &codeError{monitorUnknown, err.Error() + "; see " + cmd.CommandPath() + " --help"}
	})
	return cmd
}

// monitor compares queues with limits.
func (a *app) monitor(ctx context.Context, names []string, l *limits) (v monitorView, err error) {
	queues, err := a.queues(ctx, names)
	if err != nil {
		return v, err
	}
	v = monitorView{Findings: []findingJSON{}, Queues: []document.Queue{}}
	for i := range queues {
		v.Queues = append(v.Queues, document.QueueOf(&queues[i]))
		v.compare(&queues[i], l)
	}
	v.Status = monitorNames[v.code]
	return v, nil
}

// compare compares one queue with the limits that were given.
func (v *monitorView) compare(q *inspect.Queue, l *limits) {
	find := func(code int, format string, args ...any) {
		v.code = max(v.code, code)
		v.Findings = append(v.Findings, findingJSON{monitorNames[code], q.Name, fmt.Sprintf(format, args...)})
	}
	if q.Err != nil {
		find(monitorCritical, "%s", document.ErrorText(q.Err.Error()))
		return
	}
	old := func(code int, flag string, most duration) bool {
		if !l.flags.Changed(flag) || q.Latency <= time.Duration(most) {
			return false
		}
		find(code, "the oldest pending task has waited for %s, expected at most %s", term.Duration(q.Latency),
			term.Duration(time.Duration(most)))
		return true
	}
	_ = old(monitorCritical, "max-latency", l.latency) || old(monitorWarning, "warn-latency", l.warnLatency)
	for _, c := range l.counts {
		n := c.of(q)
		over := func(code int, flag string, most *int) bool {
			if !l.flags.Changed(flag) || n <= *most {
				return false
			}
			find(code, "%s, expected at most %s", term.Count(n, c.what), term.Number(*most))
			return true
		}
		_ = over(monitorCritical, "max-"+c.flag, c.most) || over(monitorWarning, "warn-"+c.flag, c.warn)
	}
	if q.Workers < l.workers {
		find(monitorCritical, "%s, expected at least %d", term.Count(q.Workers, "worker"), l.workers)
	} else if n := q.Unserved(); n > 0 && !l.unservedOK {
		find(monitorCritical, "%s and no worker", term.Count(n, "waiting task"))
	}
	if !q.Paused.IsZero() && !l.pausedOK {
		find(monitorWarning, "paused")
	}
}

func printMonitor(p *term.Page, v *monitorView) {
	styles := map[string]term.Style{"ok": term.Green, "critical": term.Red}
	style := func(level string) term.Style { return cmp.Or(styles[level], term.Yellow) }
	text := term.Count(len(v.Queues), "queue")
	if len(v.Findings) > 0 {
		text = term.Count(len(v.Findings), "finding") + ", " + text
	}
	p.Line(term.C(strings.ToUpper(v.Status), style(v.Status)), term.C(": "+text))
	for _, f := range v.Findings {
		p.Line(term.C(f.Level+": ", style(f.Level)), term.C("queue "+f.Queue+": "+f.Text))
	}
}
