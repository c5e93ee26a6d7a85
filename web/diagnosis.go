package web

import (
	"context"
	"fmt"
	"html/template"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// problemRow is a problem with a link to the page where somebody can look into it.
type problemRow struct {
	inspect.Problem

	Action string // what the link says
	Href   template.URL
}

// Bad reports whether it is more than a warning.
func (r *problemRow) Bad() bool { return r.Severity == inspect.SeverityError }

// diagnosis returns what is wrong with the given queues, or with all and with Redis, as it was lately.
func (s *site) diagnosis(q *request, queues ...string) (inspect.Diagnosis, error) {
	key := fmt.Sprint("diagnosis ", s.hidden(q.user), queues)
	return read(q.ctx, s.slow, key, func(ctx context.Context) (inspect.Diagnosis, error) {
		return q.ins.Diagnose(ctx, queues...)
	})
}

// problems returns what is wrong with a queue, or with all for "".
func (s *site) problems(q *request, queue string) (rows []problemRow, err error) {
	var queues []string
	if queue != "" {
		queues = []string{queue}
	}
	d, err := s.diagnosis(q, queues...)
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

func apiDiagnosis(s *site, c *apiCall) (v document.Diagnosis, err error) {
	names := c.args[queuesParam.Name]
	for _, name := range names {
		if err := s.checkName(name); err != nil {
			return v, err
		}
	}
	d, err := s.diagnosis(c.request, names...)
	return document.DiagnosisOf(&d), err
}
