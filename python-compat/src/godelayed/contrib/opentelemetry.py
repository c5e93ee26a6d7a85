"""Spans of OpenTelemetry, as those of the Go module contrib/otel: one of each call that enqueues, and one of each run,
which is a child of the first and linked with it, whatever the languages of both.

Names and attributes follow the semantic conventions for messaging. Arguments are never part of a span; texts of errors
are, up to 1 KiB.
"""

from __future__ import annotations

from collections.abc import Generator

from opentelemetry import propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, TracerProvider

from ..context import Context
from ..middleware import Enqueuing, around_enqueue, around_task, on_process_end
from ..outcomes import Drop, Snooze, TaskCanceled, TaskLost, WorkerStopping, said

_MOST_TEXT = 1024


def instrument(tracer_provider: TracerProvider | None = None) -> None:
    """Makes spans from now on, with the given provider or the global one, and the global propagator."""
    tracer = trace.get_tracer('godelayed', tracer_provider=tracer_provider)

    @around_enqueue
    def enqueue(e: Enqueuing) -> Generator[None]:
        attributes = _common('send', 'enqueue', e.queue)
        if len(e.calls) != 1:
            attributes['messaging.batch.message_count'] = len(e.calls)
        paths = {c.path for c in e.calls}
        if len(paths) == 1:
            attributes['messaging.delayed.function'] = paths.pop()
        with tracer.start_as_current_span(
            f'enqueue {e.queue}',
            kind=SpanKind.PRODUCER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            propagate.inject(e.headers)
            try:
                yield
            except BaseException as error:
                _fail(span, error)
                raise
            if len(e.calls) == 1 and e.ids[0]:
                span.set_attribute('messaging.message.id', e.ids[0])

    @around_task
    def run(task: Context) -> Generator[None]:
        attributes = _common('process', 'run', task.queue)
        attributes |= {'messaging.delayed.function': task.path, 'messaging.delayed.attempt': task.attempt}
        if task.id:
            attributes['messaging.message.id'] = task.id
        if task.deaths:
            attributes['messaging.delayed.deaths'] = task.deaths
        sent = propagate.extract(task.headers)
        origin = trace.get_current_span(sent).get_span_context()
        around = trace.get_current_span().get_span_context().is_valid  # of middleware that stands before this one
        with tracer.start_as_current_span(
            f'run {task.queue}',
            context=None if around else sent,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=[Link(origin)] if origin.is_valid else [],
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            outcome = 'failed'
            try:
                yield
                outcome = 'done'
            except BaseException as error:
                outcome = _outcome(error)
                if outcome in ('failed', 'lost'):
                    _fail(span, error)
                raise
            finally:
                span.set_attribute('messaging.delayed.outcome', outcome)

    @on_process_end
    def flush() -> None:
        provider = tracer_provider or trace.get_tracer_provider()
        getattr(provider, 'force_flush', _nothing)(1500)


def _nothing(_: int) -> None:
    pass


def _common(kind: str, name: str, queue: str) -> dict[str, str | int]:
    return {
        'messaging.system': 'delayed',
        'messaging.operation.type': kind,
        'messaging.operation.name': name,
        'messaging.destination.name': queue,
    }


def _fail(span: Span, error: BaseException) -> None:
    span.set_attribute('error.type', type(error).__qualname__)
    span.set_status(StatusCode.ERROR, str(error)[:_MOST_TEXT])


def _outcome(error: BaseException) -> str:
    for kind, name in (
        (TaskCanceled, 'canceled'),
        (WorkerStopping, 'released'),
        (TaskLost, 'lost'),
        (Snooze, 'snoozed'),
        (Drop, 'dropped'),
    ):
        if isinstance(said(error) or error, kind):
            return name
    return 'failed'
