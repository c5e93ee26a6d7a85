"""Reports failed runs to Sentry, each in a scope of its own, with a transaction that continues the trace of its
producer."""

from __future__ import annotations

from collections.abc import Generator

import sentry_sdk
from sentry_sdk.tracing import Transaction

from ..context import Context
from ..middleware import Enqueuing, around_enqueue, around_task, on_process_end
from ..outcomes import Outcome, TaskInterrupted, TaskTimeout, said


def instrument() -> None:
    """Reports from now on. Call it beside sentry_sdk.init; what a task raises to snooze, drop or retry is no error."""

    @around_enqueue
    def enqueue(e: Enqueuing) -> Generator[None]:
        with sentry_sdk.start_span(op='queue.publish', name=e.queue) as span:
            span.set_data('messaging.system', 'delayed')
            span.set_data('messaging.destination.name', e.queue)
            for name, value in (('sentry-trace', sentry_sdk.get_traceparent()), ('baggage', sentry_sdk.get_baggage())):
                if value:
                    e.headers[name] = value
            yield

    @around_task
    def run(task: Context) -> Generator[None]:
        with sentry_sdk.isolation_scope() as scope:
            scope.set_transaction_name(task.path, source='task')
            scope.set_tag('queue', task.queue)
            scope.set_context('task', {'id': task.id, 'function': task.path, 'attempt': task.attempt})
            transaction: Transaction = sentry_sdk.continue_trace(
                dict(task.headers), op='queue.process', name=task.path, source='task'
            )
            with sentry_sdk.start_transaction(transaction):
                try:
                    yield
                except BaseException as error:
                    quiet = isinstance(said(error) or error, (Outcome, TaskInterrupted))
                    if not quiet or isinstance(error, TaskTimeout):
                        sentry_sdk.capture_exception(error)
                    raise

    @on_process_end
    def flush() -> None:
        sentry_sdk.flush(timeout=1.5)
