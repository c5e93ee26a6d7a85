package delayedotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/godelayed/delayed"
)

// errorTypes are the values of error.type for errors of package delayed and of contexts.
var errorTypes = []struct {
	err  error
	name string
}{
	{errNotEnqueued, "not_enqueued"},
	{delayed.ErrLost, "lost"},
	{delayed.ErrTimeout, "timeout"},
	{delayed.ErrCanceled, "canceled"},
	{delayed.ErrShutdown, "shutdown"},
	{delayed.ErrDuplicate, "duplicate"},
	{delayed.ErrFull, "full"},
	{delayed.ErrClosed, "closed"},
	{delayed.ErrArguments, "arguments"},
	{delayed.ErrFunction, "function"},
	{delayed.ErrUnknown, "unknown"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "canceled"},
}

// errorType returns the attribute error.type: what the method ErrorType of the error returns, as errors of panics do;
// or the reason for which the context has ended; or the name of an error of package delayed; or the Go type.
func (t *Telemetry) errorType(ctx context.Context, err error) (kind attribute.KeyValue) {
	defer func() {
		if recover() != nil { // a method of err panicked
			kind = semconv.ErrorTypeOther
		}
	}()
	name := ""
	var typed interface{ ErrorType() string }
	if errors.As(err, &typed) {
		name = typed.ErrorType()
	}
	for _, known := range errorTypes {
		if name == "" && (errors.Is(context.Cause(ctx), known.err) || errors.Is(err, known.err)) {
			name = known.name
		}
	}
	for name == "" { // what Archive and RetryIn have wrapped counts
		var decided interface {
			Decision() string
			Unwrap() error
		}
		if !errors.As(err, &decided) || decided.Unwrap() == nil {
			break
		}
		err = decided.Unwrap()
	}
	if name == "" {
		name = semconv.ErrorType(err).Value.AsString()
	}
	return semconv.ErrorTypeKey.String(t.errors.of(name))
}

// textOf returns the text of an error as spans may have it.
func textOf(err error) (description string) {
	defer func() {
		if recover() != nil {
			description = "the error's method Error panicked"
		}
	}()
	return text(err.Error(), maxText)
}
