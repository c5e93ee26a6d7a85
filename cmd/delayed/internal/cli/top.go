package cli

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/top"
)

const topLong = `Show queues, workers, functions, tasks, events, periodic entries, groups and the audit log live,
and act on them, in a terminal of at least 40x10. ? lists the keys. Enter goes into what is
selected, Esc goes back, Tab leads to the next screen, / filters, s sorts, q quits. On tasks: r runs
them now, a archives, d deletes, c cancels, m moves them to another queue, R reschedules, e edits
arguments. p pauses or resumes a queue, a worker or a periodic entry, x stops a worker. Nothing is
done before y confirms it. The mouse selects, opens, sorts and scrolls.

Redis is read for what is shown and no more, once in --interval, and less often if it is slow:
at most a fifth of the time is spent on that. Workers publish events only while the log of events
is shown.`

// leastInterval bounds how often the screen is refreshed.
const leastInterval = 100 * time.Millisecond

// topCommand shows everything live.
func (a *app) topCommand() *cobra.Command {
	interval := top.DefaultInterval
	cmd := &cobra.Command{
		Use: "top", Aliases: []string{"ui", "dash"}, Short: "Show everything live, with actions, in the terminal",
		Long: topLong,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.json || a.watched():
				return usagef("top is for people: --json and --watch belong to commands such as delayed queues")
			case interval < leastInterval:
				return usagef("--interval %v: expected %v or more", interval, leastInterval)
			case !a.Screen || a.Getenv("TERM") == "dumb":
				return usagef("top needs a terminal that can be written to anywhere; delayed queues --watch does not")
			}
			if err := a.connect(); err != nil {
				return err
			}
			where, err := a.target(a.Getenv)
			if err != nil {
				return err
			}
			return top.Run(cmd.Context(), top.Config{
				Redis: a.rdb, Inspector: a.ins, Interval: interval, Where: where.shown(), In: a.In, Out: a.Out,
				Color: a.page().Color, Unicode: a.unicode(),
			})
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", interval, "time between two refreshes")
	return cmd
}

// unicode reports whether the terminal shows more than ASCII, as far as the locale tells. Without a locale it is taken
// to: containers seldom have one.
func (a *app) unicode() bool {
	locale := cmp.Or(a.Getenv("LC_ALL"), a.Getenv("LC_CTYPE"), a.Getenv("LANG"))
	name := strings.ReplaceAll(strings.ToLower(locale), "-", "")
	return locale == "" || strings.Contains(name, "utf8")
}

// shown names a Redis without its password: by the profile, or by host and database.
func (t *target) shown() string {
	name, ok := strings.CutPrefix(t.source, "profile ")
	if !ok {
		// Not by url.Parse: it refuses several hosts.
		_, name, _ = strings.Cut(t.url, "://")
		name = name[strings.LastIndexByte(name, '@')+1:]
		name, _, _ = strings.Cut(name, "?")
	}
	if t.prefix != "" {
		name += " " + t.prefix
	}
	return name
}
