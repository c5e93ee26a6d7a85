package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// tailFilter selects the events that are shown.
type tailFilter struct {
	function, worker, id string
	kinds                []string
}

func (a *app) tailCommand() *cobra.Command {
	var f tailFilter
	most := 0
	cmd := &cobra.Command{
		Use: "tail [QUEUE...]", Aliases: []string{"events", "follow"},
		Short: "Follow what happens in the workers of queues, live",
		Long: "Follow what happens in the workers of queues, of all queues if none is named, from now on and\n" +
			"until Ctrl-C. Workers publish events only while somebody follows, at most 200 in a tenth of\n" +
			"a second: a line says how many were left out, or were lost on their way. If Redis is away,\n" +
			"tail says so and goes on when it comes back. With --json each event is a document on a line.\n" +
			"Workers written in Python publish events of tasks, and none of themselves.\n\n" +
			"Kinds: " + strings.Join(document.EventKinds(), ", ") + ". Part of a name means all kinds with\n" +
			"that part, such as failed, or worker.",
		Example: "  delayed tail mail --func Welcome\n" +
			"  delayed tail --kind failed,archived,stuck --json",
	}
	fs := cmd.Flags()
	fs.StringVar(&f.function, "func", "", "function: Welcome, mail.Welcome or its whole path")
	fs.StringSliceVarP(&f.kinds, "kind", "k", nil, "kinds of events, or parts of their names; several: a,b")
	fs.StringVar(&f.worker, "worker", "", "beginning of the id of a worker")
	fs.StringVar(&f.id, "id", "", "beginning of the id of a task")
	fs.IntVarP(&most, "limit", "n", 0, "end after so many events; 0: never")
	a.completeFlag(cmd, "func", a.completeFunctions)
	a.completeFlag(cmd, "worker", a.completeWorkers)
	a.completeFlag(cmd, "id", a.completeIDs)
	a.completeFlag(cmd, "kind", fixed(kindWords()...))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, k := range f.kinds {
			known := func(name string) bool { return document.KindMatches(name, k) }
			if !slices.ContainsFunc(document.EventKinds(), known) {
				return usagef("--kind %s: expected one of %s, or a part of one", quote(k),
					strings.Join(document.EventKinds(), ", "))
			}
		}
		if most < 0 {
			return usagef("--limit %d: expected 0 or more", most)
		}
		if a.watched() {
			return usagef("--watch: tail follows events without it")
		}
		return a.tail(cmd.Context(), &f, most, args)
	}
	return cmd
}

// kindWords are the parts of kinds that a shell proposes: it has no use for names with spaces.
func kindWords() (words []string) {
	for _, name := range document.EventKinds() {
		_, word, _ := strings.Cut(name, " ")
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return append(words, "task", "worker", "heartbeat", "queue")
}

func (f *tailFilter) match(e *inspect.Event) bool {
	if len(f.kinds) > 0 &&
		!slices.ContainsFunc(f.kinds, func(part string) bool { return document.KindMatches(e.Kind.String(), part) }) {
		return false
	}
	means := inspect.Filter{Function: f.function}
	return strings.HasPrefix(e.Worker, f.worker) && strings.HasPrefix(e.ID, f.id) &&
		means.Match(&inspect.Task{Contents: inspect.Contents{Function: e.Function}}, e.At)
}

// tail prints events until ctx ends, or until most of them were printed.
func (a *app) tail(ctx context.Context, f *tailFilter, most int, queues []string) error {
	if err := a.connect(); err != nil {
		return err
	}
	if _, err := a.names(ctx, queues); err != nil {
		return err
	}
	if a.Columns() > 0 && !a.json {
		a.done(term.C("Following "+which(queues)+"; Ctrl-C ends it.", term.Dim))
	}
	fault, shown := "", 0
	for e, err := range a.ins.Watch(ctx, queues...) {
		if err != nil {
			if text := err.Error(); text != fault && ctx.Err() == nil { // Watch repeats it every few seconds
				fault = text
				a.exit(err)
			}
			continue
		}
		fault = ""
		v := document.EventOf(&e)
		if !f.match(&e) {
			if e.Missed == 0 {
				continue
			}
			v = document.MissedOf(&e)
		} else {
			shown++
		}
		if err := a.event(&v); err != nil {
			return err
		}
		if shown == most && most > 0 {
			break
		}
	}
	return nil
}

// which names queues for a sentence.
func which(queues []string) string {
	if len(queues) == 0 {
		return "all queues"
	}
	return term.Clip(strings.Join(queues, ", "), 200)
}

// event prints one event.
func (a *app) event(v *document.Event) error {
	if a.json {
		return a.outputJSON(v, false)
	}
	p := a.page()
	printEvent(p, v)
	_, err := io.WriteString(a.Out, p.String())
	return err
}

func printEvent(p *term.Page, v *document.Event) {
	if v.Missed > 0 {
		p.Line(term.C(
			term.Count(v.Missed, "event")+" of worker "+short(v.Worker)+" left out: too many at once, or lost",
			term.Yellow,
		))
	}
	if v.Kind == document.KindMissed {
		return
	}
	clock := ""
	if v.At != nil {
		clock = v.At.Format("15:04:05.000Z")
	}
	cells := []term.Cell{
		term.C(clock+" ", term.Dim), term.C(term.Clip(v.Queue, 40)+" ", term.Bold),
		term.C(v.Kind, kindStyle(v.Kind)),
	}
	add := func(text string, style ...term.Style) {
		cells = append(cells, term.C(" "), term.C(term.Clip(text, 600), style...))
	}
	if v.Function != "" {
		add(inspect.ShortName(v.Function))
	}
	if v.ID != "" {
		add(term.Clip(v.ID, mostID), term.Dim)
	}
	if v.Attempt > 1 {
		add("attempt " + term.Number(v.Attempt))
	}
	if v.Took != nil {
		add("took " + took(*v.Took))
	}
	if v.Wait != nil && v.Kind == event.TaskStarted.String() {
		add("waited " + took(*v.Wait))
	} else if v.Wait != nil {
		add("again in " + took(*v.Wait))
	}
	if v.Reason != "" {
		add("("+v.Reason+")", term.Dim)
	}
	if v.Error != "" {
		add(v.Error, term.Red)
	}
	if v.Function == "" {
		add("worker "+short(v.Worker), term.Dim)
	}
	p.Line(cells...)
}

// short is the beginning of a worker's id, which names it among all that live.
func short(id string) string { return term.Printable(id[:min(len(id), 8)]) }

// took writes a number of seconds that may be very small.
func took(s float64) string {
	d := term.Seconds(s)
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return term.Duration(d)
}

// kindStyle is the colour of a kind of events.
func kindStyle(kind string) term.Style {
	switch kind {
	case event.TaskDone.String():
		return term.Green
	case event.TaskFailed.String(), event.TaskPanicked.String(), event.TaskArchived.String(),
		event.TaskStuck.String(), event.HeartbeatLost.String(), event.TaskTimedOut.String():
		return term.Red
	case event.TaskRetried.String(), event.TaskParked.String(), event.TaskLost.String(),
		event.TaskExpired.String(), event.TaskCanceled.String():
		return term.Yellow
	default:
		return term.Plain
	}
}
