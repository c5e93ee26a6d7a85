"""Tasks with middleware and hooks, for test_middleware."""

import os

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from worker_tasks import client, note

import godelayed
from godelayed.contrib import opentelemetry, sentry, structlog

__all__ = ['sentry', 'structlog']


class Notes(SpanExporter):
    def export(self, spans):
        for s in spans:
            client.rpush('spans', f'{s.name} {s.context.trace_id:032x} {s.attributes["messaging.delayed.outcome"]}')
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Notes(), schedule_delay_millis=3_600_000))
trace.set_tracer_provider(provider)
opentelemetry.instrument()


@godelayed.on_pool_start
def pool():
    note('pool start')


@godelayed.on_process_start
def begin():
    note('process start')


@godelayed.on_process_end
def end():
    note('process end')


def by_flag():
    note('flag', os.getppid() != 0)


@godelayed.around_task
def around(task):
    note('before', task.path.partition(':')[2])
    try:
        yield
    except ValueError:
        raise godelayed.Archive('by middleware') from None
    finally:
        note('after', task.path.partition(':')[2])


@godelayed.task
def works():
    note('runs')


@godelayed.task
async def works_later():
    note('runs later')


@godelayed.task
def fails():
    raise ValueError('no')
