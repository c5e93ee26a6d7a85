"""Applications and their tasks: what @task makes of a function, and where its calls go."""

import asyncio
import dataclasses
import datetime
import pickle

import msgpack
import pytest
import redis as redis_py
from producing import pending

import godelayed
from godelayed import ArgumentsError, Delayed, call
from godelayed.registry import Registry

UTC = datetime.timezone.utc


@dataclasses.dataclass
class Order:
    id: int
    placed: datetime.datetime


@pytest.fixture
def app(server, redis):
    """An application on the server of the tests, which is empty."""
    return Delayed(server.url, queue='mail')


@godelayed.task
def module_level(n: int) -> int:
    """Adds one."""
    return n + 1


def test_a_task_is_still_its_function():
    assert module_level(1) == 2
    assert (module_level.__name__, module_level.__doc__) == ('module_level', 'Adds one.')
    assert (module_level.path, repr(module_level)) == (f'{__name__}:module_level', f"Task('{__name__}:module_level')")
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert godelayed.registry.default.get(module_level.path).call(1) == 2


def test_with_and_without_arguments(app):
    @app.task(path='m:a', registry=Registry(), retry=3)
    def a(n: int) -> int:
        return n

    @app.task(path='m:b', registry=Registry())
    async def b(n: int) -> int:
        return n + 1

    assert a(1) == 1
    assert asyncio.run(b(1)) == 2
    assert a.function.retry == 3
    with pytest.raises(TypeError, match='retries'):
        app.task(path='m:c', retries=3)(lambda: None)
    with pytest.raises(ArgumentsError, match='queue name'):
        app.task(path='m:c', queue='a b', registry=Registry())(lambda: None)


@pytest.fixture
def place(app):
    @app.task(path='shop:place', queue='orders', registry=Registry())
    def place(user_id: int, *, note: str = '') -> Order | None:
        raise AssertionError('not here')

    return place


def test_delay(app, place, redis):
    """Calls go to the task's own queue; to another one with Queue.delay."""
    ref = place.delay(1)
    place.options(retry=7).delay(2, note='n')
    app.queue().delay(place, 3)
    app.queue().delay_many([place.call(4), call(place, 5, note='m')])
    first, second = pending(redis, 'orders')
    assert first[:3] == ['shop:place', [1], {}]
    assert first[4]['id'] == ref.id
    assert second[:4] == ['shop:place', [2], {'note': 'n'}, 7]
    assert [m[1:3] for m in pending(redis)] == [[[3], {}], [[4], {}], [[5], {'note': 'm'}]]
    assert app.queue() is app.queue('mail')


@pytest.mark.parametrize(
    ('args', 'kwargs', 'error'),
    [
        ((), {}, r'shop:place: expected the arguments \(user_id: int, \*, note: str = \'?\'?\), found 0 of them'),
        ((1, 2), {}, 'found 2 of them'),
        ((1,), {'zzz': 4}, "shop:place: got an unexpected keyword argument 'zzz'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_at_once(app, place, redis, args, kwargs, error):
    for delay in (
        place.delay,
        place.call,
        place.options(retry=1).delay,
        lambda *a, **k: app.queue().delay(place, *a, **k),
    ):
        with pytest.raises(ArgumentsError, match=error):
            delay(*args, **kwargs)
    assert redis.llen('orders') == redis.llen('mail') == 0


def end(redis, id, value):
    note = {'reason': 'completed', 'result': msgpack.packb(value, datetime=True)}
    redis.hset('orders_results', id, msgpack.packb(note))
    redis.zadd('orders_completed', {id: 4e12})


def test_references_have_the_annotated_type(place, redis):
    now = datetime.datetime(2026, 1, 2, tzinfo=UTC)
    ref = place.options(keep_result=60, countdown=3600).delay(1)
    assert ref.state() is godelayed.State.SCHEDULED
    assert ref.info().function == 'shop:place'
    assert ref.progress() == (0, 0, '')
    ref.cancel()
    with pytest.raises(godelayed.CanceledError):
        ref.result(60)
    end(redis, 'x', {'id': 1, 'placed': now})
    assert place.ref('x').result(60) == Order(1, now)
    assert place.ref('x').ref.result(60) == {'id': 1, 'placed': now}
    end(redis, 'x', 'text')
    with pytest.raises(godelayed.DelayedError, match='expected Order, found str'):
        place.ref('x').result(60)


def test_aio(place, redis):
    """Each event loop has a client of its own."""

    async def main(n):
        ref = await place.aio.options(keep_result=60).delay(n)
        assert place.aio.ref(ref.id).id == ref.id
        await ref.cancel()
        with pytest.raises(ArgumentsError):
            await place.aio.delay()
        await place.app.aio_queue().delay(place, n)
        for queue in (place.app.aio_queue(), place.app.aio_queue('orders')):
            await queue._link.client.aclose()

    asyncio.run(main(1))
    asyncio.run(main(2))
    assert [m[1] for m in pending(redis, 'orders')] == [m[1] for m in pending(redis)] == [[1], [2]]


def test_nothing_connects_before_the_first_call(monkeypatch):
    monkeypatch.setenv('REDIS_URL', 'redis://localhost:1')
    app = Delayed()
    task = app.task(path='m:f', registry=Registry())(lambda: None)
    task.options(retry=3)
    with pytest.raises(godelayed.UnavailableError):
        task.delay()
    client = redis_py.Redis(port=1)
    assert Delayed(client).queue('x')._link.client is client
    with pytest.raises(ArgumentsError, match='expected redis://'):
        Delayed('http://localhost')
    with pytest.raises(ArgumentsError, match='queue name'):
        Delayed(queue='')
    monkeypatch.setenv('REDIS_URL', 'http://localhost')
    with pytest.raises(ArgumentsError, match='REDIS_URL'):
        Delayed().queue()

    async def main():
        with pytest.raises(ArgumentsError, match='expected a URL'):
            Delayed(client).aio_queue()

    asyncio.run(main())


def test_settings_of_an_application_hold_for_its_queues(server, redis):
    app = Delayed(server.url, prefix='app:')
    app.task(path='m:f', registry=Registry())(lambda: None).delay()
    assert redis.llen('app:default') == 1
