// Package work puts together what the workers of the crawler run.
package work

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/typed"

	"example.com/app/blind/apps/crawler/fetch"
	"example.com/app/blind/apps/crawler/page"
	"example.com/app/blind/apps/crawler/polite"
	"example.com/app/blind/apps/crawler/store"
)

// Queue is the name of the crawler's queue.
const Queue = "crawler"

// Typed functions of the crawler.
var (
	Robots  = typed.ResultFunc2(fetch.Robots, delayed.KeepResult(time.Minute), delayed.Timeout(10*time.Second))
	Headers = typed.ResultFunc4(fetch.Headers, delayed.KeepResult(time.Minute), delayed.MaxRetry(0))
	Warm    = typed.Func2(warm, delayed.Name("crawler.warm"))
	Hello   = typed.Func0(func(context.Context) error { return nil }, delayed.Name("crawler.hello"))
)

// warm asks a host a few times.
func warm(ctx context.Context, host string, times int) error {
	for i := range times {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("work: %s, time %d: %w", host, i, err)
		}
	}
	return nil
}

// NewWorker returns a worker with everything registered.
func NewWorker(rdb *delayed.Store, pages *store.Store, gap time.Duration) (*delayed.Worker, error) {
	q := delayed.NewQueue(Queue, rdb)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues:      delayed.Strict{Queue},
		Concurrency: 200,
		Timeout:     2 * time.Minute,
		Schedulers: []delayed.SchedulerConfig{{
			Queue: Queue, Owner: "crawler",
			Entries: []delayed.Entry{
				{Name: "expire", Spec: "@daily", Task: delayed.Call((*store.Store).Expire, 30*24*time.Hour)},
				{
					Name: "rank", Spec: "15 */4 * * *", Jitter: 5 * time.Minute, Overlap: delayed.OverlapQueue,
					Task:    delayed.Call((*store.Store).Rank, 0.85, 20),
					Options: []delayed.Option{delayed.KeepResult(4 * time.Hour), delayed.MaxRetry(1)},
				},
			},
		}},
	})
	if err != nil {
		return nil, err
	}
	fetcher := fetch.New(&http.Client{Timeout: time.Minute}, q)
	polite := delayed.Func(fetcher.Fetch, delayed.Name("crawler.fetch"), delayed.Middleware(polite.New(gap).Middleware))
	functions := []any{Robots, Headers, Warm, Hello, polite}
	if err := w.Register(functions...); err != nil {
		return nil, err
	}
	for _, receiver := range []any{pages, fetcher} {
		if err := w.RegisterMethods(receiver); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Seed begins to crawl at addresses.
func Seed(ctx context.Context, q *delayed.Queue, limit int64, addresses ...page.Address) (int, error) {
	allowed := addresses[:0:0]
	for _, address := range addresses {
		ref, err := Robots.DelayContext(ctx, q, address.Host(), []string{"crawler"})
		if err != nil {
			return 0, err
		}
		if ok, err := Robots.Await(ctx, ref); err == nil && ok {
			allowed = append(allowed, address)
		}
	}
	calls := make([]*delayed.Task, len(allowed))
	for i, address := range allowed {
		job := page.Job{Address: address}
		job.Limits.Bytes, job.Limits.Timeout = limit, 30*time.Second
		calls[i] = delayed.Call((*fetch.Fetcher).Fetch, job)
	}
	refs, err := q.DelayMany(ctx, calls...)
	return len(refs), err
}
