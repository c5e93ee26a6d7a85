package page

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/site"
)

// enqueuePage is the form for a call.
type enqueuePage struct {
	rights
	choice

	Functions []functionChoice // of the queue
	Other     string           // the path of a function that is not among them
	Versions  []string         // signatures, if workers know several
	Version   int
	Form      *callForm // nil: no function is chosen yet
	Error     string
}

// functionChoice is a function that can be chosen.
type functionChoice struct {
	Path, Name string
	Chosen     bool
}

func showEnqueue(s *shared, q *site.Request) (*page, error) {
	p, err := s.enqueueForm(q)
	if err != nil {
		return nil, err
	}
	return p.page(), nil
}

func (p *enqueuePage) page() *page {
	return &page{Title: "Enqueue", Template: "enqueue", Data: p, Still: true}
}

// enqueueForm returns the form with what was chosen and typed.
func (s *shared) enqueueForm(q *site.Request) (*enqueuePage, error) {
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	p := &enqueuePage{rights: s.rights(q), choice: c}
	if p.Queue == "" && len(p.Queues) == 1 {
		p.Queue = p.Queues[0].Name
	}
	if p.Queue == "" {
		return p, nil
	}
	all, err := s.functions(q)
	if err != nil {
		return nil, err
	}
	path := strings.TrimSpace(q.Args.Get("function"))
	var versions []*inspect.Function
	known := false
	for i := range all {
		f := &all[i]
		if f.Queue != p.Queue {
			continue
		}
		if f.Path == path {
			versions = append(versions, f)
			p.Versions = append(p.Versions, f.Signature())
		}
		if n := len(p.Functions); n == 0 || p.Functions[n-1].Path != f.Path {
			name := inspect.ShortName(inspect.Printable(f.Path))
			p.Functions = append(p.Functions, functionChoice{f.Path, name, f.Path == path})
			known = known || f.Path == path
		}
	}
	switch {
	case path == "":
		return p, nil
	case !known:
		p.Other = path
	}
	var fn *inspect.Function
	if len(versions) > 0 {
		n, err := strconv.Atoi(q.Args.Get("version"))
		if err != nil || n < 0 || n >= len(versions) {
			n = s.latest(q, versions)
		}
		p.Version, fn = n, versions[n]
	}
	p.Form = newCallForm(path, fn, q.Args)
	return p, nil
}

// latest returns which version of a function the worker runs that has started last.
func (s *shared) latest(q *site.Request, versions []*inspect.Function) int {
	workers, err := s.workers(q)
	if err != nil {
		return 0
	}
	best, at := 0, int64(-1)
	for i, f := range versions {
		for j := range workers {
			if w := &workers[j]; slices.Contains(f.Workers, w.ID) && w.Started.UnixNano() > at {
				best, at = i, w.Started.UnixNano()
			}
		}
	}
	return best
}

// enqueueCall enqueues the call that was typed, or shows the form with what is wrong.
func enqueueCall(s *shared, q *site.Request) (outcome, error) {
	p, err := s.enqueueForm(q)
	if err != nil {
		return outcome{}, err
	}
	if p.Form == nil {
		return outcome{}, site.Bad("choose a queue and a function first")
	}
	again := func(err error) (outcome, error) {
		if errors.Is(err, errTyped) { // the fields say what is wrong
			return outcome{Form: p.page()}, nil
		}
		p.Error = err.Error()
		return outcome{Form: p.page()}, err
	}
	task, options, err := p.Form.read()
	if err != nil {
		return again(err)
	}
	ref, err := q.Ins.Enqueue(q.Ctx, p.Queue, task, options...)
	if ref == nil {
		return again(err)
	}
	out := outcome{
		To: string(link("task", "queue", p.Queue, "id", ref.ID())), Text: "Task " + ref.ID() + " is enqueued.",
	}
	if ref.ID() == "" { // as on legacy queues
		out.To, out.Text = string(link("queue", "name", p.Queue)), "The call is enqueued; its task has no id."
	}
	if err != nil {
		out.Text, out.Bad = out.Text+" "+err.Error(), true
	}
	return out, nil
}
