package page

import (
	"context"
	"strings"
	"time"

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
