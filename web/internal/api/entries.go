package api

import (
	"context"
	"net/url"
	"slices"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
)

func apiEntries(s *shared, c *apiCall) (v document.Entries, err error) {
	_, names, err := c.described(s)
	if err != nil {
		return v, err
	}
	entries, err := c.Ins.Entries(c.Ctx, names...)
	return document.EntriesOf(entries), err
}

func apiTicks(s *shared, c *apiCall) (v document.Ticks, err error) {
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	entries, err := c.Ins.Entries(c.Ctx, q.Name)
	if err != nil {
		return v, err
	}
	if !slices.ContainsFunc(entries, func(e inspect.Entry) bool { return e.Name == c.in("entry") }) {
		return v, site.Missing("the queue has no entry with this name: api/v1/entries lists them")
	}
	runs, err := c.Ins.EntryHistory(c.Ctx, q.Name, c.in("entry"))
	return document.TicksOf(q.Name, c.in("entry"), runs), err
}

// apiRunEntry enqueues the task of an entry.
func apiRunEntry(s *shared, c *apiCall) (v document.Enqueued, err error) {
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	ref, err := c.Ins.RunEntry(c.Ctx, q.Name, c.in("entry"))
	if ref == nil {
		return v, err
	}
	c.enqueued(s, q.Name, ref.ID(), err)
	return document.Enqueued{ID: ref.ID(), Queue: q.Name}, nil
}

// enqueued says where a task is that was enqueued. err is about the audit log: whoever has enqueued the task must not
// do it again.
func (c *apiCall) enqueued(s *shared, queue, id string, err error) {
	if err != nil {
		s.Failed(c.http, err)
	}
	if id != "" { // legacy queues know none
		c.location = c.up() + "tasks/" + url.PathEscape(id) + "?" + url.Values{"queue": {queue}}.Encode()
	}
}

// apiOrderEntry makes an action of one that steers an entry.
func apiOrderEntry(
	name string, do func(*inspect.Inspector, context.Context, string, string) error,
) action {
	return answers(func(s *shared, c *apiCall) (v document.Did, err error) {
		q, err := c.queue(s)
		if err != nil {
			return v, err
		}
		return did(name, c.in("entry")), do(c.Ins, c.Ctx, q.Name, c.in("entry"))
	})
}
