"""Middleware around tasks and around calls that enqueue, and hooks of a worker's processes."""

import asyncio

import msgpack
import pytest
import sentry_sdk
import structlog
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from producing import GO, PY, pending
from working import info_of, notes, ran, wait_for

import godelayed
from godelayed import ArgumentsError, BatchError, DelayedError, Drop, Snooze, call, middleware
from godelayed.context import Context
from godelayed.contrib import opentelemetry, sentry
from godelayed.contrib import structlog as bound
from godelayed.outcomes import TaskCanceled, TaskLost, TaskTimeout, WorkerStopping
from godelayed.registry import Function
from godelayed.worker import calling
from godelayed.worker.coroutine import Coroutine


@pytest.fixture(autouse=True)
def alone():
    """Undoes what a test attaches."""
    lists = (middleware.tasks, middleware.enqueues, middleware.process_ends)
    yield
    for those in lists:
        those.clear()


def run(f, headers=None, id='x'):
    meta = {'id': id, 'rt': 1, 'd': 2, 'h': headers or {}}
    context = Context('q', 'm:f', meta, lambda *_: None, lambda: None)
    function = Function('m:f', f, coroutine=asyncio.iscoroutinefunction(f))
    if function.coroutine:
        return asyncio.run(calling.call_coroutine(function, [], {}, True, context, Coroutine(f)))
    return calling.call(function, [], {}, True, context)


async def later():
    await asyncio.sleep(0)
    return 1


@pytest.mark.parametrize('f', [lambda: 1, later])
def test_the_first_middleware_is_outermost(f):
    said = []

    @godelayed.around_task
    def outer(task):
        said.append(f'{task.id} {task.attempt} {godelayed.current() is task}')
        yield
        said.append('out')

    class Inner:
        def __init__(self, task):
            pass

        def __enter__(self):
            said.append('enter')

        def __exit__(self, *_):
            said.append('exit')

    godelayed.around_task(Inner)
    ended = run(f)
    assert (ended.ok, msgpack.unpackb(ended.result)) == (True, 1)
    assert said == ['x 2 True', 'enter', 'exit', 'out']


def fail(error):
    def f():
        raise error

    return f


def test_what_middleware_raises_counts():
    @godelayed.around_task
    def turn(_):
        try:
            yield
        except ValueError as e:
            raise Snooze(5) from e
        except KeyError:
            pass

    assert run(fail(ValueError('x'))).says == 'snooze'
    ended = run(fail(KeyError('x')))
    assert (ended.ok, msgpack.unpackb(ended.result)) == (True, None)
    assert run(fail(TypeError('x'))).error == 'TypeError: x'
    middleware.tasks[:] = [fail_early]
    ended = run(lambda: pytest.fail('it runs'))
    assert (ended.ok, ended.error) == (False, 'RuntimeError: early')


def fail_early(_):
    raise RuntimeError('early')


async def generator(_):
    yield


async def coroutine(_):
    pass


@pytest.mark.parametrize('wrong', [generator, coroutine, 7])
def test_what_is_no_middleware(wrong):
    for attach in (godelayed.around_task, godelayed.around_enqueue):
        with pytest.raises(ArgumentsError, match='expected a generator function that is not async'):
            attach(wrong)


def test_middleware_around_enqueueing_adds_headers_and_learns_ids(queue, redis):
    seen = []

    @godelayed.around_enqueue
    def add(e):
        e.headers.update(a='1', b='2')
        yield
        seen.append((e.queue, [c.path for c in e.calls], e.ids))

    q = queue().options(headers={'b': 'own'})
    ref = q.delay(PY, 1)
    refs = q.delay_many([call(GO, 1), call(PY, 2)])
    assert seen == [('mail', [PY], [ref.id]), ('mail', [GO, PY], [r.id for r in refs])]
    assert [m[-1]['h'] for m in pending(redis)] == [{'a': '1', 'b': 'own'}] * 3
    legacy = queue('plain', legacy=True)
    assert legacy.delay_many([]) == []
    legacy.delay(PY, 1)
    assert pending(redis, 'plain') == [[PY, [1]]]
    assert seen[2:] == [('plain', [PY], [''])]


def test_middleware_around_enqueueing_sees_errors(queue, redis):
    seen = []

    @godelayed.around_enqueue
    def see(e):
        try:
            yield
        except DelayedError as error:
            seen.append((type(error), e.ids))
            if len(e.calls) == 1:
                raise

    with pytest.raises(ArgumentsError):
        queue().delay(PY, object())
    with pytest.raises(DelayedError, match='has swallowed an error'):
        queue().delay_many([call(PY, object()), call(PY)])
    assert seen == [(ArgumentsError, [])] * 2
    assert issubclass(BatchError, DelayedError)


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    opentelemetry.instrument(provider)

    def finished():
        found = exporter.get_finished_spans()
        exporter.clear()
        return found

    return finished


def test_a_run_is_a_child_of_the_span_of_its_enqueue_and_linked_with_it(queue, redis, spans):
    ref = queue().delay(PY, 1)
    (sent,) = spans()
    assert (sent.name, sent.kind) == ('enqueue mail', trace.SpanKind.PRODUCER)
    assert dict(sent.attributes) == {
        'messaging.system': 'delayed',
        'messaging.operation.type': 'send',
        'messaging.operation.name': 'enqueue',
        'messaging.destination.name': 'mail',
        'messaging.delayed.function': PY,
        'messaging.message.id': ref.id,
    }
    headers = pending(redis)[0][4]['h']
    assert headers['traceparent'].split('-')[1:3] == [f'{sent.context.trace_id:032x}', f'{sent.context.span_id:016x}']
    assert run(lambda: trace.get_current_span().get_span_context().span_id, headers).ok
    (ran_,) = spans()
    assert (ran_.name, ran_.kind, ran_.parent.span_id) == ('run q', trace.SpanKind.CONSUMER, sent.context.span_id)
    assert [link.context.span_id for link in ran_.links] == [sent.context.span_id]
    assert dict(ran_.attributes) == {
        'messaging.system': 'delayed',
        'messaging.operation.type': 'process',
        'messaging.operation.name': 'run',
        'messaging.destination.name': 'q',
        'messaging.delayed.function': 'm:f',
        'messaging.delayed.attempt': 2,
        'messaging.message.id': 'x',
        'messaging.delayed.deaths': 2,
        'messaging.delayed.outcome': 'done',
    }
    queue().delay_many([call(PY), call(GO, 1)])
    assert spans()[0].attributes['messaging.batch.message_count'] == 2
    with pytest.raises(ArgumentsError):
        queue().delay(PY, object())
    (failed,) = spans()
    assert (failed.status.status_code, failed.attributes['error.type']) == (trace.StatusCode.ERROR, 'ArgumentsError')


@pytest.mark.parametrize(
    ('error', 'outcome', 'kind'),
    [
        (ValueError('x' * 2000), 'failed', 'ValueError'),
        (Snooze(1), 'snoozed', None),
        (Drop('x'), 'dropped', None),
        (TaskTimeout('timeout'), 'failed', 'TaskTimeout'),
        (TaskCanceled('canceled'), 'canceled', None),
        (TaskLost('lost'), 'lost', 'TaskLost'),
        (WorkerStopping('stopping'), 'released', None),
    ],
)
def test_outcomes_of_spans(spans, error, outcome, kind):
    assert not run(fail(error)).ok
    (span,) = spans()
    assert span.attributes['messaging.delayed.outcome'] == outcome
    assert span.attributes.get('error.type') == kind
    assert (span.status.status_code is trace.StatusCode.ERROR) == (kind is not None)
    assert len(span.status.description or '') <= 1024
    assert span.parent is None


@pytest.fixture
def events():
    """What Sentry is sent."""
    sent = []

    class Memory(sentry_sdk.transport.Transport):
        def capture_envelope(self, envelope):
            sent.extend(item.payload.json for item in envelope.items)

    sentry_sdk.init('https://a@example.invalid/1', transport=Memory, traces_sample_rate=1.0, default_integrations=False)
    sentry.instrument()
    yield sent
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)


def test_sentry_has_the_error_and_the_trace_of_its_producer(queue, redis, events):
    with sentry_sdk.start_transaction(name='request') as request:
        queue().delay(PY, 1)
    headers = pending(redis)[0][4]['h']
    assert headers['sentry-trace'].startswith(request.trace_id)
    events.clear()
    run(fail(ValueError('no')), headers)
    error, transaction = events
    assert error['exception']['values'][-1]['value'] == 'no'
    assert error['contexts']['task'] == {'id': 'x', 'function': 'm:f', 'attempt': 2}
    assert (error['tags']['queue'], error['transaction']) == ('q', 'm:f')
    assert transaction['contexts']['trace']['trace_id'] == request.trace_id
    for quiet in (Snooze(1), TaskCanceled('canceled'), WorkerStopping('stopping')):
        events.clear()
        run(fail(quiet))
        assert [e['type'] for e in events] == ['transaction']
    events.clear()
    run(fail(TaskTimeout('timeout')))
    assert len(events) == 2


def test_structlog_names_the_task():
    bound.instrument()
    found = []
    run(lambda: found.append(structlog.contextvars.get_contextvars()))
    assert found == [{'queue': 'q', 'function': 'm:f', 'id': 'x', 'attempt': 2}]
    assert structlog.contextvars.get_contextvars() == {}


@pytest.mark.parametrize('processes', ['1', '0'])
def test_hooks_and_middleware_of_a_worker(q, redis, start, processes, spans):
    ref = q.options(keep_result=60).delay('middleware_tasks:works')
    (sent,) = spans()
    q.delay('middleware_tasks:works_later')
    q.options(task_id='f').delay('middleware_tasks:fails')
    w = start(
        *('--processes', processes, '--concurrency', '1', '--process-start', 'middleware_tasks:by_flag'),
        *('--pool-start', 'middleware_tasks:pool'),
        module='middleware_tasks',
    )
    assert ref.result(timeout=60) is None
    wait_for(lambda: redis.zcard('q_archived'), w.output)
    wait_for(lambda: 'runs later' in ran(redis), w.output)
    w.stop()
    lines = ran(redis)
    n = 2 if processes == '1' else 1  # there is one more for coroutines
    for word, times in (('pool start', 2), ('flag True', n), ('process start', n), ('process end', n)):
        assert lines.count(word) == times, (word, lines)
    for name, what in (('works', 'runs'), ('works_later', 'runs later')):
        assert lines.index(f'before {name}') < lines.index(what) < lines.index(f'after {name}')
    assert info_of(redis, 'f')['error'] == 'Archive: by middleware'
    with notes(redis) as c:  # they were exported when the processes ended
        exported = sorted(b.decode() for b in c.lrange('spans', 0, -1))
    assert len(exported) == 3
    assert f'run q {sent.context.trace_id:032x} done' in exported
