package page

import (
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/chart"
	"github.com/godelayed/delayed/web/internal/site"
)

// workers returns all workers. They are shared: callers do not change them.
func (s *shared) workers(q *site.Request) ([]inspect.Worker, error) {
	return lately(s, q, "workers", (*inspect.Inspector).Workers)
}

// functions returns all functions that workers have published. They are shared.
func (s *shared) functions(q *site.Request) ([]inspect.Function, error) {
	return lately(s, q, "functions", (*inspect.Inspector).Functions)
}

// lately returns things of all queues as they were a moment ago, or longer if there are many queues, which take a read
// each.
func lately[T any](
	s *shared, q *site.Request, key string, read func(*inspect.Inspector, context.Context, ...string) ([]T, error),
) ([]T, error) {
	queues, err := s.Queues(q)
	if err != nil {
		return nil, err
	}
	c := s.Fast
	if len(queues) > chart.ManyQueues {
		c = s.Slow
	}
	return site.Read(q.Ctx, c, key, func(ctx context.Context) ([]T, error) { return read(q.Ins, ctx) })
}

// choice is the queues that a page may show the things of, and the one that it is asked for.
type choice struct {
	Page   string // its address
	Queue  string // "": all of them
	Queues []inspect.Queue
	Broken []inspect.Queue // that cannot be read
	chosen []inspect.Queue // Queue, or all of Queues
}

// choose returns the queues of a page with field "queue". Those that cannot be read are apart. A queue that is unknown,
// or cannot be read, is an error if it is asked for.
func (s *shared) choose(q *site.Request) (c choice, err error) {
	queues, err := s.Queues(q)
	if err != nil {
		return c, err
	}
	c.Page, c.Queue = q.Path, q.Args.Get("queue")
	for i := range queues {
		one := &queues[i]
		switch {
		case one.Err == nil:
			c.Queues = append(c.Queues, *one)
		case one.Name == c.Queue:
			return c, one.Err
		default:
			c.Broken = append(c.Broken, *one)
		}
	}
	if c.chosen = c.Queues; c.Queue != "" {
		if c.chosen = only(c.Queues, c.Queue); c.chosen == nil {
			return c, site.Missing(fmt.Sprintf("there is no queue %q: nobody has enqueued a task there, "+
				"and no worker serves it", c.Queue))
		}
	}
	return c, nil
}

// only returns the queue of a name; nil if there is none.
func only(queues []inspect.Queue, name string) []inspect.Queue {
	i := slices.IndexFunc(queues, func(q inspect.Queue) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return queues[i : i+1]
}

// names returns the names of queues.
func names(queues []inspect.Queue) (names []string) {
	for i := range queues {
		names = append(names, queues[i].Name)
	}
	return names
}

// each reads something of each chosen queue. A part of a queue that cannot be read does not hide the others, unless the
// queue is the only one, or the request has ended.
func (c *choice) each(q *site.Request, read func(*inspect.Queue) error) error {
	for i := range c.chosen {
		err := read(&c.chosen[i])
		switch {
		case err == nil:
		case c.Queue != "" || q.Ctx.Err() != nil:
			return err
		default:
			c.Broken = append(c.Broken, inspect.Queue{Name: c.chosen[i].Name, Err: err})
		}
	}
	return nil
}

// carries reports whether tasks of a function may carry a path.
func carries(f *inspect.Function, path string) bool {
	return f.Path == path || slices.Contains(f.Aliases, path)
}

// knows reports whether Redis knows a worker of a queue, alive or dead.
func knows(w *inspect.Worker, queue string) bool {
	return slices.ContainsFunc(w.Queues, func(q inspect.WorkerQueue) bool { return q.Name == queue })
}

// pager leads to the parts of a list that a page does not show. Field "skip" is how many things are before it.
type pager struct {
	Prev, Next template.URL // "": there is no such part
	Before     int          // things before the page
	After      int          // things behind it; -1: unknown
}

// cut returns the part of a list that a request asks for, size things at most.
func cut[T any](q *site.Request, list []T, size int) ([]T, pager) {
	skip := min(whole(q.Args.Get("skip")), max(len(list)-1, 0))
	part := list[skip:min(skip+size, len(list))]
	return part, newPager(q, skip, size, len(list)-skip-len(part))
}

// newPager returns the pager of a page that shows size things at most; more is how many come behind it, -1 if there are
// some.
func newPager(q *site.Request, skip, size, more int) pager {
	p := pager{Before: skip, After: more}
	to := func(skip int) template.URL {
		args := maps.Clone(q.Args)
		args.Del("notice")
		args.Del("skip")
		if skip > 0 {
			args.Set("skip", strconv.Itoa(skip))
		}
		return template.URL(q.Path + "?" + args.Encode()) //nolint:gosec // the path of a page, and an encoded query
	}
	if skip > 0 {
		p.Prev = to(max(skip-size, 0))
	}
	if more != 0 {
		p.Next = to(skip + size)
	}
	return p
}

// whole reads a number of a query that is not negative; 0 if there is none.
func whole(text string) int {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > 1_000_000 {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// address returns the address of a page that is shown, without what is shown only once.
func address(q *site.Request) string {
	args := url.Values{}
	for k, v := range q.Args {
		if k != "notice" {
			args[k] = v
		}
	}
	path := q.Path
	if path == "" {
		path = "./"
	}
	if len(args) == 0 {
		return path
	}
	return path + "?" + args.Encode()
}
