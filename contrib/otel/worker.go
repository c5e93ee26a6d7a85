package delayedotel

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/godelayed/delayed"
)

// The attributes of this package's own.
const (
	functionKey = attribute.Key("messaging.delayed.function")
	attemptKey  = attribute.Key("messaging.delayed.attempt")
	maxRetryKey = attribute.Key("messaging.delayed.max_retry")
	deathsKey   = attribute.Key("messaging.delayed.deaths")
	outcomeKey  = attribute.Key("messaging.delayed.outcome")
)

// function returns the attribute of a function in metrics.
func (t *Telemetry) function(path string) attribute.KeyValue {
	return functionKey.String(t.functions.of(path))
}

// run makes a span of one run of a handler.
func (t *Telemetry) run(
	ctx context.Context, task *delayed.Task, client attribute.KeyValue, next delayed.HandlerFunc,
) (err error) {
	common := t.common(semconv.MessagingOperationTypeProcess, "run", task.Queue())
	attrs := slices.Concat(common, []attribute.KeyValue{
		client, functionKey.String(text(task.Path(), maxText)), attemptKey.Int(task.Attempt()),
		maxRetryKey.Int(task.MaxRetry()),
	})
	if id := task.ID(); id != "" {
		attrs = append(attrs, semconv.MessagingMessageID(text(id, maxText)))
	}
	if n := task.Deaths(); n > 0 {
		attrs = append(attrs, deathsKey.Int(n))
	}
	ctx, span := t.start(ctx, task, attrs)
	began := time.Now()
	common = append(common, t.function(task.Path()))
	returned := false
	defer func() { // also when a handler calls runtime.Goexit
		outcome, kind := "failed", semconv.ErrorTypeKey.String("unwound")
		description := "the goroutine of the handler ended, or other middleware panicked"
		if returned {
			outcome, kind, description = t.outcome(ctx, err)
		}
		if kind.Valid() {
			span.SetAttributes(kind)
			span.SetStatus(codes.Error, description)
			common = append(common, kind)
		}
		span.SetAttributes(outcomeKey.String(outcome))
		set := attribute.NewSet(common...)
		t.meters.runTime.RecordSet(ctx, time.Since(began).Seconds(), set)
		t.meters.consumed.AddSet(ctx, 1, set)
		span.End()
	}()
	err = next(ctx, task)
	returned = true
	return err
}

// start starts the span of a run. It is linked with the span of the enqueue, and its child as well unless something
// else is the parent.
func (t *Telemetry) start(
	ctx context.Context, task *delayed.Task, attrs []attribute.KeyValue,
) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...)}
	around := trace.SpanFromContext(ctx) // of middleware that stands before this one
	ctx = t.cfg.Propagator.Extract(ctx, propagation.MapCarrier(task.Headers()))
	if from := trace.SpanContextFromContext(ctx); from.IsValid() && !from.Equal(around.SpanContext()) {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: from}))
	}
	switch {
	case around.SpanContext().IsValid():
		ctx = trace.ContextWithSpan(ctx, around)
	case t.cfg.NewTraces:
		opts = append(opts, trace.WithNewRoot())
	}
	return t.tracer.Start(ctx, "run "+text(task.Queue(), maxName), opts...)
}

// outcome returns what a handler's error means: the outcome, and, if that is an error, its type and text.
func (t *Telemetry) outcome(ctx context.Context, err error) (outcome string, kind attribute.KeyValue, text string) {
	defer func() {
		if recover() != nil { // a method of err panicked
			outcome, kind, text = "failed", semconv.ErrorTypeOther, ""
		}
	}()
	if err == nil {
		return "done", kind, ""
	}
	cause := context.Cause(ctx)
	var decided interface{ Decision() string }
	decision := ""
	if errors.As(err, &decided) {
		decision = decided.Decision()
	}
	switch {
	case errors.Is(cause, delayed.ErrCanceled):
		return "canceled", kind, ""
	case errors.Is(cause, delayed.ErrShutdown):
		return "released", kind, ""
	case errors.Is(cause, delayed.ErrLost):
		return "lost", t.errorType(ctx, err), textOf(err)
	case decision == "snooze":
		return "snoozed", kind, ""
	case decision == "drop":
		return "dropped", kind, ""
	}
	failure := err
	if errors.Is(cause, delayed.ErrTimeout) {
		failure = errors.Join(err, delayed.ErrTimeout)
	}
	if decision == "" && t.cfg.IsFailure != nil && !t.cfg.IsFailure(failure) {
		return "retried", kind, ""
	}
	return "failed", t.errorType(ctx, err), textOf(err)
}
