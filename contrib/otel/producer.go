package delayedotel

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/godelayed/delayed"
)

// maxHeaders is the most bytes of the headers of a trace: all headers of a task may have 8 KiB.
const maxHeaders = 4 << 10

// headers returns the context of the present span as headers of a task. If they are too many, because of much baggage
// for example, only W3C's trace context is left: a task must not be refused because of its trace.
func (t *Telemetry) headers(ctx context.Context) map[string]string {
	headers := propagation.MapCarrier{}
	t.cfg.Propagator.Inject(ctx, headers)
	size := 0
	for key, value := range headers {
		size += len(key) + len(value)
		if key == "" || !utf8.ValidString(key) || !utf8.ValidString(value) {
			delete(headers, key)
		}
	}
	const most = 32 // of 64 that a task may have
	if size <= maxHeaders && len(headers) <= most {
		return headers
	}
	small := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, small)
	return small
}

// enqueue makes a span of a call that enqueues tasks.
func (t *Telemetry) enqueue(
	ctx context.Context, queue string, tasks []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
) {
	common := t.common(semconv.MessagingOperationTypeSend, "enqueue", queue)
	attrs := slices.Clone(common)
	if len(tasks) != 1 {
		attrs = append(attrs, semconv.MessagingBatchMessageCount(len(tasks)))
	}
	if path := onlyPath(tasks); path != "" {
		attrs = append(attrs, functionKey.String(text(path, maxText)))
	}
	ctx, span := t.tracer.Start(
		ctx, "enqueue "+text(queue, maxName), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(attrs...),
	)
	defer span.End()
	began := time.Now()
	refs, err := enqueue(ctx)
	took := time.Since(began)
	if len(tasks) == 1 && len(refs) == 1 && refs[0].ID() != "" {
		span.SetAttributes(semconv.MessagingMessageID(text(refs[0].ID(), maxText)))
	}
	var kind []attribute.KeyValue
	sent := len(tasks)
	if err != nil {
		sent = 0
		if batch := new(delayed.BatchError); errors.As(err, &batch) {
			sent = batch.Sent
		}
		kind = []attribute.KeyValue{t.errorType(ctx, err)}
		span.SetAttributes(kind...)
		span.SetStatus(codes.Error, textOf(err))
	}
	t.meters.sendTime.RecordSet(ctx, took.Seconds(), attribute.NewSet(slices.Concat(common, kind)...))
	t.count(ctx, tasks[:sent], common)
	t.count(ctx, tasks[sent:], slices.Concat(common, kind))
}

// onlyPath returns the path of the function that all tasks call, "" if they call several.
func onlyPath(tasks []*delayed.Task) string {
	path := ""
	for i, t := range tasks {
		if i > 0 && t.Path() != path {
			return ""
		}
		path = t.Path()
	}
	return path
}

// count counts tasks by function.
func (t *Telemetry) count(ctx context.Context, tasks []*delayed.Task, attrs []attribute.KeyValue) {
	counts := map[string]int64{}
	for _, task := range tasks {
		counts[task.Path()]++
	}
	for path, n := range counts {
		set := attribute.NewSet(slices.Concat(attrs, []attribute.KeyValue{t.function(path)})...)
		t.meters.sent.AddSet(ctx, n, set)
	}
}
