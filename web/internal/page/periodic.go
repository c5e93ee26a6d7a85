package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/site"
)

// periodicPage lists periodic entries.
type periodicPage struct {
	rights
	choice

	Rows   []entryRow
	Pager  pager
	Any    bool   // there are entries that the page was not asked for
	Search string // part of a name
}

// entryRow is a periodic entry.
type entryRow struct {
	*inspect.Entry

	Late bool // its next tick is overdue: nobody ticks
}

// Self is the entry, for templates that show a part of it.
func (r *entryRow) Self() *entryRow { return r }

// entryRows is how many entries a page lists.
const entryRows = 200

func showPeriodic(s *shared, q *site.Request) (*page, error) {
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	p := periodicPage{rights: s.rights(q), choice: c, Search: q.Args.Get("q")}
	err = p.each(q, func(queue *inspect.Queue) error {
		entries, err := s.entries(q, queue.Name)
		p.Any = p.Any || len(entries) > 0
		for j := range entries {
			e := &entries[j]
			if strings.Contains(strings.ToLower(e.Name), strings.ToLower(p.Search)) {
				p.Rows = append(p.Rows, entryRow{e, late(e, queue.At)})
			}
		}
		return err
	})
	p.Rows, p.Pager = cut(q, p.Rows, entryRows)
	return &page{Title: "Periodic", Template: "periodic", Data: &p}, err
}

// entries returns the entries of a queue, as they were a moment ago, and an error that is about some of them. They are
// shared.
func (s *shared) entries(q *site.Request, queue string) ([]inspect.Entry, error) {
	type found struct {
		entries []inspect.Entry
		err     error
	}
	f, err := site.Read(q.Ctx, s.Fast, "entries "+queue, func(ctx context.Context) (found, error) {
		entries, err := q.Ins.Entries(ctx, queue)
		if err != nil && len(entries) == 0 {
			return found{}, err
		}
		return found{entries, err}, nil
	})
	if err != nil {
		return nil, err
	}
	return f.entries, f.err
}

// lateAfter is how long after its time a tick counts as late, beside its jitter.
const lateAfter = 30 * time.Second

// late reports whether the next tick of an entry is overdue: then no scheduler runs for its queue.
func late(e *inspect.Entry, now time.Time) bool {
	return !e.Next.IsZero() && !now.IsZero() && now.Sub(e.Next) > lateAfter+e.Jitter
}

// runEntry enqueues the task of an entry now.
func runEntry(_ *shared, q *site.Request) (outcome, error) {
	queue, name := q.Args.Get("queue"), q.Args.Get("name")
	ref, err := q.Ins.RunEntry(q.Ctx, queue, name)
	if ref == nil {
		return outcome{}, err
	}
	text := "Entry " + name + " runs now, as task " + ref.ID() + "."
	if err != nil {
		text += " " + err.Error()
	}
	return outcome{Text: text, Bad: err != nil}, nil
}

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
		if f.Queue == queue && carries(f, p.Function) {
			p.Known += len(f.Workers)
		}
	}
	return &page{Title: "Periodic entry " + name, Template: "entry", Data: &p}, nil
}
