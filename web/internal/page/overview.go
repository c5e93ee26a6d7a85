package page

import (
	"html/template"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/chart"
	"github.com/godelayed/delayed/web/internal/format"
	"github.com/godelayed/delayed/web/internal/site"
)

// overview is the first page.
type overview struct {
	rights

	Queue    string // all on the page is about this one; "": about all
	Names    []string
	Figures  []figure
	Problems []problemRow
	More     int // problems that are not shown
	Span     *chart.Span
	Spans    []chart.SpanLink
	Charts   []*chart.Chart
	Reading  bool // not all of the charts has been read yet
	Table    *queueTable
	At       time.Time
}

// shownProblems bounds the problems that are shown unless somebody asks for all.
const shownProblems = 10

// figure is a number with its name.
type figure struct {
	Name, Value, Note string
	Href              template.URL // "" for none
	Help              string       // what it means
	Class             string
}

func showOverview(s *shared, q *site.Request) (*page, error) {
	queues, err := s.Queues(q)
	if err != nil {
		return nil, err
	}
	o := &overview{rights: s.rights(q), Queue: q.Args.Get("queue"), Names: names(queues)}
	p := &page{Title: "Overview", Template: "overview", Data: o}
	if o.Queue != "" {
		one := only(queues, o.Queue)
		if one == nil {
			return nil, site.Missing("nobody has used a queue " + inspect.Printable(o.Queue))
		}
		queues = one
	}
	if len(queues) == 0 {
		return p, nil
	}
	for i := range queues {
		if queues[i].At.After(o.At) {
			o.At = queues[i].At
		}
	}
	if o.At.IsZero() { // none can be described
		o.At = time.Now()
	}
	workers, err := s.workers(q)
	if err != nil {
		return nil, err
	}
	recent, chosen, err := s.flows(q, o, queues)
	if err != nil {
		return nil, err
	}
	o.Spans, o.Reading = chart.SpanLinks(o.Span), !chosen.Complete()
	o.Charts = chosen.Charts()
	o.Figures = append(sizeFigures(queues, shownStates, o.Queue), ranFigures(queues, workers, chosen, o.Queue)...)
	o.Table = tableOf(queues, recent.RunsOf(sparkParts), q.Args)
	if o.Problems, err = s.problems(q, o.Queue); err != nil {
		return nil, err
	}
	if n := shownProblems; len(o.Problems) > n && q.Args.Get("all") == "" {
		o.More, o.Problems = len(o.Problems)-n, o.Problems[:n]
	}
	return p, nil
}

// sparkParts is how many points a line in the table of queues has.
const sparkParts = 60

// flows returns what has run in the last hour, and in the span that the page shows.
func (s *shared) flows(q *site.Request, o *overview, queues []inspect.Queue) (recent, chosen *chart.Flow, err error) {
	var names, busy []string
	for i := range queues {
		q := &queues[i]
		if q.Err != nil {
			continue
		}
		if names = append(names, q.Name); !idle(q, o.At) {
			busy = append(busy, q.Name)
		}
	}
	hour := chart.SpanOf("", len(names))
	o.Span = chart.SpanOf(q.Args.Get("span"), len(names))
	recent, err = s.history.Of(o.Queue, hour, s.Slow.Life).Get(q.Ctx, q.Ins, busy, o.At)
	if err != nil || o.Span == hour {
		return recent, recent, err
	}
	chosen, err = s.history.Of(o.Queue, o.Span, s.Slow.Life).Get(q.Ctx, q.Ins, names, o.At)
	return recent, chosen, err
}

// idle reports whether nothing has run in a queue in the last hour: nothing has today, and today is older.
func idle(q *inspect.Queue, now time.Time) bool {
	return q.Today.Processed == 0 && now.Sub(now.UTC().Truncate(24*time.Hour)) > time.Hour+chart.Settled
}

// shownStates are those whose sizes are at the top of the overview.
var shownStates = []state.Task{state.Pending, state.Active, state.Retry, state.Archived}

// stateHelp is what states mean.
var stateHelp = map[state.Task]string{
	state.Pending:     "Tasks that a worker may run now",
	state.Active:      "Tasks that workers have claimed",
	state.Scheduled:   "Tasks that are to run later",
	state.Retry:       "Tasks that have failed and wait to be tried again",
	state.Parked:      "Tasks that no present worker can run",
	state.Aggregating: "Calls that wait in groups",
	state.Archived:    "Tasks that are given up: they run only if somebody runs them again",
	state.Completed:   "Tasks that are kept after their success, for their results",
}

// title returns the name of a state as headings have it.
func title(st state.Task) string { return strings.ToUpper(st.String()[:1]) + st.String()[1:] }

// sizeFigures are how much queues hold together. queue is the name of the only one, or "".
func sizeFigures(queues []inspect.Queue, states []state.Task, queue string) (figures []figure) {
	for _, st := range states {
		n := 0
		for i := range queues {
			n += queues[i].Size(st)
		}
		f := figure{
			Name: title(st), Value: format.Number(n), Help: stateHelp[st],
			Href: link("tasks", "queue", queue, "state", st),
		}
		if n > 0 {
			f.Class = "of " + st.String()
		}
		figures = append(figures, f)
	}
	return figures
}

// ranFigures are what has run in a span, and what runs. queue is the name of the only queue, or "".
func ranFigures(queues []inspect.Queue, workers []inspect.Worker, f *chart.Flow, queue string) []figure {
	sum := f.Sum()
	failed := figure{
		Name: "Failed", Value: format.Percent(sum.Failed, sum.Runs),
		Note: format.Number(sum.Failed) + " of " + format.Number(sum.Runs) + " runs",
		Help: "The share of runs that failed in the last " + f.Span.Label, Href: link("functions", "queue", queue),
	}
	switch {
	case often(sum.Failed, sum.Runs):
		failed.Class = "of archived"
	case sum.Failed > 0:
		failed.Class = "of retry"
	}
	wait := quantileFigure("Wait p95", "95 % of the tasks of the last "+f.Span.Label+
		" waited at most so long for a worker, from when they could start", &sum.Wait)
	figures := []figure{failed, wait, busy(queues, workers, queue)}
	if queue == "" {
		return figures
	}
	took := quantileFigure("Run p95", "95 % of the handlers of the last "+f.Span.Label+" took at most so long",
		&sum.Run)
	oldest := figure{Name: "Oldest waits", Value: "–", Help: "For how long the oldest pending task has waited"}
	if l := queues[0].Latency; l > 0 {
		oldest.Value = format.Duration(l)
	}
	return append(figures, took, oldest)
}

// quantileFigure is how long most and half of something took at most.
func quantileFigure(name, help string, h *inspect.Histogram) figure {
	f := figure{Name: name, Value: "–", Help: help}
	if h.Count() > 0 {
		f.Value, f.Note = format.Duration(h.Quantile(.95)), "p50 "+format.Duration(h.Quantile(.5))
	}
	return f
}

// busy is how many executors have something to do.
func busy(queues []inspect.Queue, workers []inspect.Worker, queue string) figure {
	n, executors, claims := 0, 0, 0
	for i := range workers {
		w := &workers[i]
		if !w.Alive() || queue != "" && !w.Serves(queue) {
			continue
		}
		n++
		executors += w.Concurrency
		claims += min(w.Claims(), w.Concurrency)
	}
	f := figure{
		Name: "Executors busy", Value: format.Number(claims) + " / " + format.Number(executors),
		Note: format.Number(n) + " workers",
		Help: "How many tasks run, and how many workers can run at once", Href: link("workers", "queue", queue),
	}
	legacy := false
	for i := range queues {
		legacy = legacy || queues[i].Legacy
	}
	switch {
	case n == 1:
		f.Note = "1 worker"
	case n == 0 && legacy:
		f.Value, f.Note = "–", "legacy workers are not known"
	case n == 0:
		f.Class = "of archived"
	}
	return f
}

// problemRow is a problem with a link to the page where somebody can look into it.
type problemRow struct {
	inspect.Problem

	Action string // the text of the link
	Href   template.URL
}

// Bad reports whether it is more than a warning.
func (r *problemRow) Bad() bool { return r.Severity == inspect.SeverityError }

// problems returns what is wrong with a queue, or with all for "".
func (s *shared) problems(q *site.Request, queue string) (rows []problemRow, err error) {
	var queues []string
	if queue != "" {
		queues = []string{queue}
	}
	d, err := s.Diagnosis(q, queues...)
	for _, p := range d.Problems {
		action, href := problemLink(&p)
		rows = append(rows, problemRow{p, action, href})
	}
	return rows, err
}

// problemLink returns the page where somebody can look into a problem, and the text of its link; "" for none.
func problemLink(p *inspect.Problem) (action string, href template.URL) {
	tasks := func(st state.Task) (string, template.URL) {
		return "Show them", link("tasks", "queue", p.Queue, "state", st)
	}
	switch p.Kind {
	case inspect.ProblemSetting:
		return "", ""
	case inspect.ProblemNoWorkers:
		return "Workers", "workers"
	case inspect.ProblemVersions:
		return "Workers", link("workers", "queue", p.Queue)
	case inspect.ProblemDeadWorker:
		return "Show it", link("worker", "id", p.Worker)
	case inspect.ProblemParked:
		return "Show them", link("parked", "queue", p.Queue)
	case inspect.ProblemWaiting, inspect.ProblemUnreadable:
		return tasks(state.Pending)
	case inspect.ProblemArchive:
		return tasks(state.Archived)
	case inspect.ProblemFailing:
		if p.Function != "" {
			return "Show it", link("function", "queue", p.Queue, "path", p.Function)
		}
		return "Functions", link("functions", "queue", p.Queue)
	case inspect.ProblemUnknownFunction:
		return "Functions", link("functions", "queue", p.Queue)
	case inspect.ProblemNoScheduler:
		return "Show it", link("entry", "queue", p.Queue, "name", p.Entry)
	case inspect.ProblemSuspects:
		return "Deaths", link("deaths", "queue", p.Queue)
	default:
		return "Show it", link("queue", "name", p.Queue)
	}
}
