package page

import (
	"fmt"
	"slices"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/site"
)

// entryPage is a periodic entry with its history.
type entryPage struct {
	rights
	entryRow

	Coming  []comingTick
	History []delayed.PeriodicRun
	Known   int // living workers that know its function
}

// comingTick is a tick that is to come, and by how long its task is delayed.
type comingTick struct {
	At    time.Time
	Later time.Duration
}

// nextTicks is how many ticks a page shows that are to come.
const nextTicks = 5

func showEntry(s *shared, q *site.Request) (*page, error) {
	queue, name := q.Args.Get("queue"), q.Args.Get("name")
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	entries, failed := s.entries(q, queue)
	at := slices.IndexFunc(entries, func(e inspect.Entry) bool { return e.Name == name })
	switch {
	case at < 0 && failed != nil:
		return nil, failed
	case at < 0:
		return nil, site.Missing(fmt.Sprintf("queue %s has no periodic entry %q: "+
			"somebody has removed it, or its program no longer declares it", queue, name))
	}
	e := &entries[at]
	p := entryPage{rights: s.rights(q), entryRow: entryRow{e, late(e, c.chosen[0].At)}}
	for _, at := range p.Ticks(nextTicks) {
		p.Coming = append(p.Coming, comingTick{at, p.DelayOf(at)})
	}
	if p.History, err = q.Ins.EntryHistory(q.Ctx, queue, name); err != nil {
		return nil, err
	}
	functions, err := s.functions(q)
	if err != nil {
		return nil, err
	}
	for i := range functions {
		f := &functions[i]
		if f.Queue == queue && (f.Path == p.Function || slices.Contains(f.Aliases, p.Function)) {
			p.Known += len(f.Workers)
		}
	}
	return &page{Title: "Periodic entry " + name, Template: "entry", Data: &p}, nil
}
