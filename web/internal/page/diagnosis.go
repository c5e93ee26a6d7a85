package page

import (
	"html/template"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

// problemRow is a problem with a link to the page where somebody can look into it.
type problemRow struct {
	inspect.Problem

	Action string // what the link says
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

// problemLink returns the page where somebody can look into a problem, and what its link says; "" for none.
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
