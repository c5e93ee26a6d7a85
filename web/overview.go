package web

import (
	"github.com/godelayed/delayed/inspect"
)

// overview is the first page.
type overview struct {
	rights

	Queues []inspect.Queue
}

func showOverview(s *site, q *request) (*page, error) {
	queues, err := s.queues(q)
	if err != nil {
		return nil, err
	}
	return &page{Title: "Overview", Template: "overview", Data: overview{rights: s.rights(q), Queues: queues}}, nil
}

// queues returns all queues, as they were a moment ago.
func (s *site) queues(q *request) ([]inspect.Queue, error) {
	return read(q.ctx, s.fast, "queues", q.ins.Queues)
}
