package page

import (
	"html/template"
	"maps"
	"net/url"
	"strconv"

	"github.com/godelayed/delayed/web/internal/site"
)

// pager leads to the parts of a list that a page does not show. Field "skip" says how many things are before it.
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
