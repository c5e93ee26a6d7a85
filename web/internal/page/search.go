package page

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/site"
)

const (
	// searchTime bounds the search for a task in all queues: those that wait or run are in no index.
	searchTime = 5 * time.Second
	maxSimilar = 20
)

// searchPage is what was found.
type searchPage struct {
	rights

	Query     string
	Tasks     []taskRow // with that id
	Unread    []string  // queues that were not searched in time
	Queues    []string  // with such a name, the same or similar
	Functions []inspect.Function
	More      bool // similar queues or functions
	AllQueues []string
}

func showSearch(s *shared, q *site.Request) (*page, error) {
	p := &searchPage{rights: s.rights(q), Query: strings.TrimSpace(q.Args.Get("q"))}
	found := &page{Title: "Search", Template: "search", Data: p, Still: true}
	if p.Query == "" {
		return found, nil
	}
	queues, err := s.Queues(q)
	if err != nil {
		return nil, err
	}
	p.AllQueues = names(queues)
	if slices.Contains(p.AllQueues, p.Query) {
		found.To = string(link("queue", "name", p.Query))
		return found, nil
	}
	functions, err := s.functions(q)
	if err != nil {
		return nil, err
	}
	for i := range functions {
		if functions[i].IsNamed(p.Query) && !p.lists(&functions[i]) {
			p.Functions = append(p.Functions, functions[i])
		}
	}
	if len(p.Functions) == 1 {
		found.To = string(link("function", "queue", p.Functions[0].Queue, "path", p.Functions[0].Path))
	}
	if len(p.Functions) > 0 {
		return found, nil
	}
	if err := p.find(q); err != nil {
		return nil, err
	}
	if len(p.Tasks) == 1 && len(p.Unread) == 0 {
		found.To = string(link("task", "queue", p.Tasks[0].Queue, "id", p.Tasks[0].ID))
	}
	if len(p.Tasks) == 0 {
		p.similar(functions)
	}
	return found, nil
}

// lists reports whether another version of a function is found already.
func (p *searchPage) lists(f *inspect.Function) bool {
	return slices.ContainsFunc(p.Functions, func(other inspect.Function) bool {
		return other.Queue == f.Queue && other.Path == f.Path
	})
}

// find looks for a task with the id in all queues, as long as that may take.
func (p *searchPage) find(q *site.Request) error {
	ctx, stop := context.WithTimeout(q.Ctx, searchTime)
	defer stop()
	for _, name := range p.AllQueues {
		t, err := q.Ins.Task(ctx, name, p.Query)
		switch {
		case err == nil:
			p.Tasks = append(p.Tasks, taskRow{t, packID(t.ID), p.Hidden})
		case errors.Is(err, inspect.ErrNotFound):
		case q.Ctx.Err() != nil:
			return err
		default: // too slow, or a key of another program
			p.Unread = append(p.Unread, name)
		}
	}
	return nil
}

// similar fills in queues and functions that have the text in their names.
func (p *searchPage) similar(functions []inspect.Function) {
	text := strings.ToLower(p.Query)
	for _, name := range p.AllQueues {
		if strings.Contains(strings.ToLower(name), text) {
			p.Queues = append(p.Queues, name)
		}
	}
	for i := range functions {
		if strings.Contains(strings.ToLower(functions[i].Path), text) && !p.lists(&functions[i]) {
			p.Functions = append(p.Functions, functions[i])
		}
	}
	p.More = len(p.Queues) > maxSimilar || len(p.Functions) > maxSimilar
	p.Queues = p.Queues[:min(len(p.Queues), maxSimilar)]
	p.Functions = p.Functions[:min(len(p.Functions), maxSimilar)]
}
