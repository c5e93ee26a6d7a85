// Package fetch fetches pages and delays what follows from them.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/crawler/page"
	"example.com/app/blind/apps/crawler/store"
)

const maxDepth page.Depth = 4

var href = regexp.MustCompile(`href="([^"]+)"`)

// ErrStatus says that a server answered with an error.
var ErrStatus = errors.New("fetch: the server answered with an error")

// Fetcher fetches pages. Workers register its methods.
type Fetcher struct {
	client *http.Client
	queue  *delayed.Queue
	seen   time.Duration
}

// New returns a fetcher that delays further pages to a queue.
func New(client *http.Client, q *delayed.Queue) *Fetcher {
	return &Fetcher{client: client, queue: q, seen: 24 * time.Hour}
}

// Fetch fetches a page, and delays to store it and to fetch its links.
func (f *Fetcher) Fetch(ctx context.Context, job page.Job) error {
	if job.Limits.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, job.Limits.Timeout)
		defer cancel()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, string(job.Address), http.NoBody)
	if err != nil {
		return delayed.Archive(err)
	}
	if job.Referrer != nil {
		request.Header.Set("Referer", string(*job.Referrer))
	}
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusTooManyRequests:
		return delayed.RetryIn(10*time.Minute, ErrStatus)
	case response.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %s", ErrStatus, response.Status)
	case response.StatusCode >= http.StatusBadRequest:
		return delayed.Drop(fmt.Errorf("%w: %s", ErrStatus, response.Status))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, max(job.Limits.Bytes, 1<<16)))
	if err != nil {
		return err
	}
	p := page.Page{
		Address: job.Address, Status: response.StatusCode, Fetched: time.Now(), Header: response.Header, Body: body,
	}
	for _, match := range href.FindAllSubmatch(body, -1) {
		if link, err := page.Parse(string(match[1])); err == nil {
			p.Links = append(p.Links, link)
		}
	}
	if err := delayed.Progress(ctx, 1, int64(len(p.Links)+1), "fetched"); err != nil {
		return err
	}
	if _, err := f.queue.DelayContext(ctx, (*store.Store).Save, p); err != nil {
		return err
	}
	return f.follow(ctx, job, p.Links)
}

func (f *Fetcher) follow(ctx context.Context, from page.Job, links []page.Address) error {
	if from.Depth >= maxDepth {
		return nil
	}
	for _, link := range links {
		next := page.Job{Address: link, Depth: from.Depth + 1, Referrer: &from.Address, Limits: from.Limits}
		once := f.queue.With(
			delayed.UniqueKey("page:"+link.Key(), f.seen), delayed.OnConflict(delayed.ConflictSkip),
			delayed.In(time.Duration(next.Depth)*time.Second),
		)
		if _, err := once.DelayContext(ctx, (*Fetcher).Fetch, next); err != nil {
			return err
		}
	}
	return nil
}

// Robots says whether a host lets crawlers in. It is called through a typed function.
func Robots(ctx context.Context, host string, agents []string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/robots.txt", http.NoBody)
	if err != nil {
		return false, delayed.Archive(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	return response.StatusCode == http.StatusNotFound || len(agents) == 0, response.Body.Close()
}

// Headers returns some headers of a page, for those who look into a problem.
func Headers(ctx context.Context, address page.Address, names []string, limit int, most time.Duration,
) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, string(address), http.NoBody)
	if err != nil {
		return nil, delayed.Archive(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	headers := make(map[string]string, len(names))
	for _, name := range names[:min(limit, len(names))] {
		headers[name] = response.Header.Get(name)
	}
	return headers, response.Body.Close()
}
