// Package plan has the functions of reports, and delays them.
package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/typed"

	"example.com/app/blind/apps/reports/data"
	"example.com/app/blind/apps/reports/deliver"
	"example.com/app/blind/apps/reports/render"
)

// Names of the queues.
const (
	Queue   = "reports"
	Science = "science"
)

const keep = 2 * time.Hour

// Functions of reports.
var (
	Load  = typed.ResultFunc2(data.Load, delayed.KeepResult(keep))
	Total = typed.ResultFunc2(data.Total, delayed.KeepResult(keep), delayed.Unique(time.Minute))
	PDF   = typed.ResultFunc3(render.PDF, delayed.KeepResult(keep), delayed.Isolated(), delayed.Timeout(time.Minute))
	CSV   = delayed.Func(render.CSV, delayed.KeepResult(keep), delayed.ArchiveOnTimeout())
	Top   = delayed.Func(data.Top[string], delayed.Name("reports.top"), delayed.KeepResult(keep))
	Ping  = typed.ResultFunc1(ping, delayed.Name("reports.ping"), delayed.KeepResult(time.Minute))

	Notify = delayed.Func(deliver.Notify, delayed.Optional(1), delayed.Backoff(time.Second, time.Minute, time.Hour))
)

func ping(_ context.Context, sent time.Time) (time.Duration, error) { return time.Since(sent), nil }

// Planner delays reports.
type Planner struct {
	queue, science *delayed.Queue
	mostWait       time.Duration
}

// New returns a planner.
func New(rdb *delayed.Store, mostWait time.Duration) *Planner {
	return &Planner{
		queue: delayed.NewQueue(Queue, rdb), science: delayed.NewQueue(Science, rdb), mostWait: mostWait,
	}
}

// Report makes a report and delivers it.
func (p *Planner) Report(ctx context.Context, tenant data.Tenant, days data.Range, to string, pdf bool) error {
	ctx, cancel := context.WithTimeout(ctx, p.mostWait)
	defer cancel()
	ref, err := Load.DelayContext(ctx, p.queue.With(delayed.Header("tenant", string(tenant))), tenant, days)
	if err != nil {
		return err
	}
	table, err := Load.Await(ctx, ref)
	if err != nil {
		return err
	}
	document, err := p.render(ctx, table, pdf)
	if err != nil {
		return err
	}
	retries := delayed.RetryUntil(time.Now().Add(24 * time.Hour))
	if _, err := p.queue.With(retries).DelayContext(ctx, (*deliver.Outbox).Deliver, to, document); err != nil {
		return err
	}
	news := p.queue.With(delayed.Group("news"), delayed.Gather(delayed.GatherPolicy{Grace: time.Minute}))
	_, err = news.DelayContext(ctx, Notify, "#reports", []string{document.Name})
	return err
}

func (p *Planner) render(ctx context.Context, table data.Table, pdf bool) (render.Document, error) {
	if pdf {
		ref, err := PDF.DelayContext(ctx, p.queue, table, len(table.Rows) < 10, 0.8)
		if err != nil {
			return render.Document{}, err
		}
		return PDF.Await(ctx, ref)
	}
	ref, err := p.queue.DelayContext(ctx, CSV, table, data.Visits, data.Sales, data.Metric(3))
	if err != nil {
		return render.Document{}, err
	}
	return delayed.Await[render.Document](ctx, ref)
}

// Forecast asks the Python programs of the scientists.
func (p *Planner) Forecast(
	ctx context.Context, tenant data.Tenant, days int, values []float64,
) (map[string]any, error) {
	kwargs := map[string]any{"days": days, "tenant": string(tenant), "since": time.Now().AddDate(0, 0, -days)}
	task := delayed.NewPyTask("science.forecast:fit", []any{values, "holt-winters", nil}, kwargs)
	q := p.science.With(delayed.KeepResult(time.Hour), delayed.TTL(time.Hour), delayed.MaxRetry(2))
	ref, err := q.Enqueue(ctx, task)
	if err != nil {
		return nil, err
	}
	return delayed.Await[map[string]any](ctx, ref)
}

// Totals sums several metrics at a time.
func (p *Planner) Totals(ctx context.Context, table data.Table, metrics ...data.Metric) ([]float64, error) {
	calls := make([]*delayed.Task, 0, len(metrics))
	for _, m := range metrics {
		calls = append(calls, Total.Call(table, m))
	}
	refs, err := p.queue.DelayMany(ctx, calls...)
	if err != nil {
		return nil, err
	}
	totals := make([]float64, len(refs))
	for i, ref := range refs {
		total, awaitErr := Total.Await(ctx, ref)
		totals[i], err = total, errors.Join(err, awaitErr)
	}
	return totals, err
}

// Best returns the names with the largest values.
func (p *Planner) Best(ctx context.Context, values map[string]float64) ([]string, error) {
	ref, err := p.queue.DelayContext(ctx, Top, values, 10)
	if err != nil {
		return nil, err
	}
	return delayed.Await[[]string](ctx, ref)
}

// Latency measures how long a task waits.
func (p *Planner) Latency(ctx context.Context) (time.Duration, error) {
	ref, err := Ping.Delay(p.queue.With(delayed.Front()), time.Now())
	if err != nil {
		return 0, err
	}
	return Ping.Await(ctx, ref)
}

// Repair runs archived deliveries again, to another address.
func (p *Planner) Repair(ctx context.Context, to string) (int, error) {
	page, _, err := p.queue.Archived(ctx, 0, 100)
	if err != nil {
		return 0, err
	}
	for i, info := range page {
		var d render.Document
		if err := info.Task.Arg(1, &d); err != nil {
			return i, fmt.Errorf("plan: %s: %w", info.ID, err)
		}
		call := delayed.Call((*deliver.Outbox).Deliver, to, d)
		if err := p.queue.Ref(info.ID).RunAgainWith(ctx, call); err != nil {
			return i, err
		}
	}
	return len(page), nil
}

// Register registers all functions of reports with a worker.
func Register(w *delayed.Worker, out *deliver.Outbox) error {
	for _, fn := range []any{Load, Total, PDF, CSV, Top, Ping, Notify, data.Forget} {
		if err := w.Register(fn); err != nil {
			return fmt.Errorf("plan: register %v: %w", fn, err)
		}
	}
	return w.RegisterMethods(out)
}
