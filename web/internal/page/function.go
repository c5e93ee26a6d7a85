package page

import (
	"fmt"
	"slices"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/chart"
	"github.com/godelayed/delayed/web/internal/site"
)

// functionPage is one function of a queue.
type functionPage struct {
	rights
	functionRow

	States []state.Task
	Charts []*chart.Chart // of how long its tasks waited, and ran
	Others []string       // queues whose workers know the function too
}

func showFunction(s *shared, q *site.Request) (*page, error) {
	queue, path := q.Args.Get("queue"), q.Args.Get("path")
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	rows, err := s.functionRows(q, &c)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(rows, func(r functionRow) bool { return r.Path == path && path != "" })
	if at < 0 {
		return nil, site.Missing(fmt.Sprintf("no worker of queue %s knows a function %q, "+
			"and none has run in the last hour",
			queue, path))
	}
	p := functionPage{rights: s.rights(q), functionRow: rows[at], States: inspect.States}
	p.Charts = []*chart.Chart{
		chart.Spread("wait", "How long tasks waited", &p.Wait), chart.Spread("run", "How long handlers took", &p.Run),
	}
	functions, err := s.functions(q)
	if err != nil {
		return nil, err
	}
	for i := range functions {
		if f := &functions[i]; f.Path == path && f.Queue != queue && !slices.Contains(p.Others, f.Queue) {
			p.Others = append(p.Others, f.Queue)
		}
	}
	return &page{Title: inspect.ShortName(path), Template: "function", Data: &p}, nil
}
