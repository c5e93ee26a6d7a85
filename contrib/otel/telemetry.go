package delayedotel

import (
	"context"
	"errors"
	"maps"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/godelayed/delayed"
)

// scope names this instrumentation.
const scope = "github.com/godelayed/delayed/contrib/otel"

// System is the value of messaging.system in all spans and metrics.
const System = "delayed"

// Config defines how a Telemetry works. Its zero value is ready to use.
type Config struct {
	// TracerProvider makes spans. Defaults to the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider makes metrics. Defaults to the global one.
	MeterProvider metric.MeterProvider
	// Propagator writes the context of a span into headers of tasks, and reads it from there; all programs should use
	// the same one. Defaults to the global one if that was set before New, or else to propagation.TraceContext, which
	// is W3C's.
	Propagator propagation.TextMapPropagator
	// NewTraces makes each run the root of a trace of its own, which is linked with the span of the enqueue. By default
	// the run is a child of that span as well. It keeps traces short where tasks run hours after the request from which
	// they come.
	NewTraces bool
	// IsFailure reports which errors of handlers are failures, as WorkerConfig.IsFailure does: give the same function
	// to both. The spans of runs that end with other errors are no errors. Defaults to all of them.
	IsFailure func(err error) bool
}

// Telemetry makes spans and metrics of queues and workers. It is safe for concurrent use; one suffices for a program.
type Telemetry struct {
	cfg       Config
	tracer    trace.Tracer
	meters    *meters
	queues    names
	functions names
	errors    names
}

// errNotEnqueued is the error in the span of a call that QueueConfig.Around of the program has kept from Redis.
var errNotEnqueued = errors.New("QueueConfig.Around did not enqueue")

// New returns a Telemetry. It fails if the MeterProvider refuses a metric.
func New(cfg Config) (*Telemetry, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = otel.GetTextMapPropagator()
		if len(cfg.Propagator.Fields()) == 0 { // nobody has set it
			cfg.Propagator = propagation.TraceContext{}
		}
	}
	meters, err := newMeters(cfg.MeterProvider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)))
	if err != nil {
		return nil, err
	}
	return &Telemetry{
		cfg: cfg, tracer: cfg.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), meters: meters,
		queues: names{most: maxQueues}, functions: names{most: maxFunctions}, errors: names{most: maxErrors},
	}, nil
}

// Queue returns cfg, for the queue of that name, with Around and Inject, which make a span of each call that enqueues
// tasks, and give its context to the tasks. What cfg has there already is called within them: its headers take
// precedence.
func (t *Telemetry) Queue(queue string, cfg delayed.QueueConfig) delayed.QueueConfig {
	around, inject := cfg.Around, cfg.Inject
	cfg.Inject = func(ctx context.Context) map[string]string {
		headers := t.headers(ctx)
		if inject != nil {
			maps.Copy(headers, inject(ctx))
		}
		return headers
	}
	cfg.Around = func(
		ctx context.Context, tasks []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
	) {
		next := enqueue
		if around != nil {
			next = func(ctx context.Context) (refs []*delayed.Ref, err error) {
				err = errNotEnqueued
				around(ctx, tasks, func(ctx context.Context) ([]*delayed.Ref, error) {
					refs, err = enqueue(ctx)
					return refs, err
				})
				return refs, err
			}
		}
		t.enqueue(ctx, queue, tasks, next)
	}
	return cfg
}

// Worker adds middleware and a listener to a worker, which make a span of each run of a handler, and metrics. Call it
// before Worker.Run, and before Worker.Use, so that other middleware runs within the span.
func (t *Telemetry) Worker(w *delayed.Worker) error {
	if w == nil {
		return errors.New("delayedotel: the *Worker is nil: make it with delayed.NewWorker")
	}
	id := semconv.MessagingClientID(w.ID())
	return errors.Join(
		w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
			return func(ctx context.Context, task *delayed.Task) error { return t.run(ctx, task, id, next) }
		}),
		w.OnEvent(t.event),
	)
}

// common are the attributes of everything that is about a queue.
func (t *Telemetry) common(operation attribute.KeyValue, name, queue string) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.MessagingSystemKey.String(System), operation, semconv.MessagingOperationName(name),
		semconv.MessagingDestinationName(t.queues.of(queue)),
	}
}
