package delayedotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
)

// Bounds of histograms, in seconds. The conventions recommend those from 5 ms to 10 s.
var (
	shortTimes = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	longTimes  = append(append([]float64{0.001}, shortTimes...), 30, 60, 300, 900, 3600, 6*3600, 24*3600)
)

// meters are the metrics.
type meters struct {
	sendTime messagingconv.ClientOperationDuration
	sent     messagingconv.ClientSentMessages
	runTime  messagingconv.ProcessDuration
	consumed messagingconv.ClientConsumedMessages
	wait     metric.Float64Histogram
	outcomes metric.Int64Counter
	missed   metric.Int64Counter
}

func newMeters(m metric.Meter) (*meters, error) {
	t, errs := new(meters), make([]error, 7)
	t.sendTime, errs[0] = messagingconv.NewClientOperationDuration(
		m, metric.WithExplicitBucketBoundaries(append([]float64{0.0005, 0.001}, shortTimes...)...),
	)
	t.sent, errs[1] = messagingconv.NewClientSentMessages(m)
	t.runTime, errs[2] = messagingconv.NewProcessDuration(m, metric.WithExplicitBucketBoundaries(longTimes...))
	t.consumed, errs[3] = messagingconv.NewClientConsumedMessages(m)
	t.wait, errs[4] = m.Float64Histogram(
		"messaging.delayed.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the enqueue of a task to the start of its handler."),
		metric.WithExplicitBucketBoundaries(longTimes...),
	)
	t.outcomes, errs[5] = m.Int64Counter(
		"messaging.delayed.outcomes", metric.WithUnit("{task}"),
		metric.WithDescription("What became of tasks that the worker had claimed."),
	)
	t.missed, errs[6] = m.Int64Counter(
		"messaging.delayed.missed_events", metric.WithUnit("{event}"),
		metric.WithDescription("Events that were dropped, and are in no other metric, because listeners were slow."),
	)
	return t, errors.Join(errs...)
}

// outcomes are the events that are counted, with the values of their attribute. One task may have several, such as
// failed and retried.
var outcomes = map[event.Kind]string{
	event.TaskDone: "done", event.TaskFailed: "failed", event.TaskPanicked: "panicked",
	event.TaskTimedOut: "timed_out", event.TaskRetried: "retried", event.TaskSnoozed: "snoozed",
	event.TaskArchived: "archived", event.TaskDropped: "dropped", event.TaskParked: "parked",
	event.TaskForwarded: "forwarded", event.TaskExpired: "expired", event.TaskCanceled: "canceled",
	event.TaskLost: "lost", event.TaskReleased: "released", event.TaskStuck: "stuck",
}

// event is the listener of workers.
func (t *Telemetry) event(e delayed.Event) {
	ctx := context.Background()
	if e.Missed > 0 {
		t.meters.missed.Add(ctx, int64(e.Missed))
	}
	outcome := outcomes[e.Kind]
	if outcome == "" && e.Kind != event.TaskStarted {
		return
	}
	attrs := []attribute.KeyValue{
		semconv.MessagingSystemKey.String(System), semconv.MessagingDestinationName(t.queues.of(e.Queue)),
	}
	if e.Task != nil {
		attrs = append(attrs, t.function(e.Task.Path()))
	}
	switch {
	case outcome != "":
		attrs = append(attrs, outcomeKey.String(outcome))
		t.meters.outcomes.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(attrs...)))
	case e.Task != nil && !e.Task.EnqueuedAt().IsZero(): // otherwise it is unknown
		t.meters.wait.Record(ctx, e.Wait.Seconds(), metric.WithAttributeSet(attribute.NewSet(attrs...)))
	}
}
