package web

import (
	"fmt"
	"slices"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// entryPage is a periodic entry with its history.
type entryPage struct {
	rights
	entryRow

	Back    string
	Ticks   []delayed.PeriodicTick
	History []delayed.PeriodicRun
	Known   int // living workers that know its function
}

// nextTicks is how many ticks a page shows that are to come.
const nextTicks = 5

func showEntry(s *site, q *request) (*page, error) {
	queue, name := q.args.Get("queue"), q.args.Get("name")
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	queues, err := c.chosen()
	if err != nil {
		return nil, err
	}
	entries, failed := s.entries(q, queue)
	at := slices.IndexFunc(entries, func(e inspect.Entry) bool { return e.Name == name })
	switch {
	case at < 0 && failed != nil:
		return nil, failed
	case at < 0:
		return nil, missing(fmt.Sprintf("queue %s has no periodic entry %q: somebody has removed it, or its program no "+
			"longer declares it", queue, name))
	}
	p := entryPage{rights: s.rights(q), entryRow: entryRow{&entries[at], late(&entries[at], queues[0].At)}, Back: address(q)}
	p.Ticks = p.Entry.Ticks(nextTicks)
	if p.History, err = q.ins.EntryHistory(q.ctx, queue, name); err != nil {
		return nil, err
	}
	functions, err := s.functions(q)
	if err != nil {
		return nil, err
	}
	for i := range functions {
		if f := &functions[i]; f.Queue == queue && (f.Path == p.Function || slices.Contains(f.Aliases, p.Function)) {
			p.Known += len(f.Workers)
		}
	}
	return &page{Title: "Periodic entry " + name, Template: "entry", Data: &p}, nil
}

// Self is the entry, for templates that show a part of it.
func (r *entryRow) Self() *entryRow { return r }
