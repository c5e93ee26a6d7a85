"""What tests of programs get: queues in memory, expectations, and a worker that runs when a test says so."""

import asyncio
import dataclasses
import datetime
import os
import threading
from unittest.mock import ANY

import pytest
import redis as redis_py

import godelayed
from godelayed.testing import InMemory

pytest_plugins = 'godelayed.testing.plugin'

DAY = datetime.timedelta(days=1)
app = godelayed.Delayed('redis://localhost:1', queue='mail')  # nobody listens there
ran = []


@dataclasses.dataclass
class Order:
    id: int
    placed: datetime.datetime


ORDER = Order(5, datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.timezone.utc))


@app.task
def welcome(user: int, lang: str = 'en') -> str:
    ran.append(('welcome', user, lang, threading.current_thread()))
    return f'welcome {user}'


@app.task(queue='bulk')
def sign_up(user: int) -> None:
    ran.append(('sign_up', user))
    welcome.delay(user)
    welcome.options(countdown=7 * DAY).delay(user, 'de')


@app.task(retry=1, backoff=[60])
def fail_once(word: str) -> None:
    if godelayed.current().attempt == 1:
        raise ValueError(word)


@app.task(retry=0)
def fail() -> None:
    raise ValueError('no')


@app.task
def place(order: Order) -> Order:
    return order


@app.task(isolated=True)
def alone() -> None:
    ran.append(('alone', os.getpid()))


@app.task
async def later(user: int) -> None:
    await asyncio.sleep(0)
    ran.append(('later', user))
    await welcome.aio.delay(user)


@app.task
def chain() -> None:
    chain.delay()


@pytest.fixture(autouse=True)
def fresh():
    ran.clear()


def fails(expectation, *parts):
    with pytest.raises(AssertionError) as e:
        expectation()
    for part in parts:
        assert part in str(e.value)
    return e.value


def test_require_enqueued(delayed):
    """Arguments are compared as they reach the function."""
    welcome.delay(42)
    app.queue('other').delay(place, ORDER)
    app.queue().options(countdown=60, headers={'a': 'b'}).delay('example.com/app/mail.Welcome', 42, 'en')
    assert delayed.require_enqueued(welcome, 42).queue == 'mail'
    delayed.require_enqueued(welcome, user=42, lang='en')
    delayed.require_enqueued(f'{__name__}:welcome', 42)
    delayed.require_enqueued(welcome, ANY, ANY)
    delayed.require_enqueued(welcome, ...)
    assert delayed.require_enqueued(place, ORDER).args == ({'id': 5, 'placed': ORDER.placed},)
    delayed.require_enqueued(place, {'id': ANY, 'placed': ORDER.placed})
    found = delayed.require_enqueued('example.com/app/mail.Welcome', 42, ANY)
    assert (found.state, found.due - delayed.now, found.meta['h']) == (
        'scheduled',
        datetime.timedelta(seconds=60),
        {'a': 'b'},
    )
    delayed.refute_enqueued(welcome, 43)
    delayed.refute_enqueued(sign_up, ...)
    assert len(delayed.require_count(1, welcome, ...)) == 1
    delayed.require_count(0, welcome, 43)
    assert [t.function for t in delayed.tasks('other')] == [place.path]
    delayed.require_empty('bulk')


def test_what_expectations_say(delayed):
    welcome.options(task_id='a\nb').delay(42)
    app.queue().options(countdown=60).delay(sign_up, 7)
    instead = 'enqueued are', f'{welcome.path}(42)  pending', f'{sign_up.path}(7)  scheduled, due at '
    fails(lambda: delayed.require_enqueued(welcome, 43), 'expected enqueued, found 0', f'{welcome.path}(43)', *instead)
    fails(lambda: delayed.require_enqueued(place, ...), f'{place.path}(...)')
    fails(lambda: delayed.require_count(2, welcome, ANY), 'enqueued 2 times, found 1', 'welcome(ANY)', *instead)
    fails(lambda: delayed.refute_enqueued(welcome, 42), 'not enqueued, found 1', *instead[1:])
    fails(delayed.require_empty, 'nothing is enqueued', *instead[1:])
    for wrong in ((welcome, 1, 2, 3), (welcome, object()), (lambda: None,)):
        with pytest.raises(godelayed.ArgumentsError):
            delayed.require_enqueued(*wrong)
    with InMemory() as other:
        fails(lambda: other.require_enqueued(welcome, 42), 'enqueued are none')
    sign_up.delay(8)
    delayed.require_enqueued(sign_up, 8)


def test_drain_runs_all_in_the_order_in_which_it_is_due(delayed):
    start = delayed.now
    sign_up.delay(42)
    alone.delay()
    later.delay(1)
    delayed.drain()
    assert {r[:3] for r in ran[:-1]} == {
        ('sign_up', 42),
        ('welcome', 42, 'en'),
        ('alone', os.getpid()),
        ('later', 1),
        ('welcome', 1, 'en'),
    }
    assert ran[-1] == ('welcome', 42, 'de', threading.current_thread())
    assert 7 * DAY <= delayed.now - start < 7 * DAY + datetime.timedelta(seconds=1)
    delayed.require_empty()


def test_results_and_references(delayed):
    ref = place.options(keep_result=600).delay(ORDER)
    delayed.drain()
    assert ref.result(timeout=1) == ORDER
    assert ref.state() == 'completed'
    gone = welcome.options(countdown=60).delay(1)
    gone.cancel()
    delayed.drain()
    assert ran == []


def test_drain_tells_of_failures(delayed):
    fail_once.delay('boom')
    error = fails(delayed.drain, "fail_once('boom') failed at attempt 1 (retried): ValueError: boom")
    assert 'raise ValueError(word)' in str(error.__cause__)
    delayed.require_empty()  # the retry went well
    fail.options(retry=0).delay()
    fails(delayed.drain, 'fail() failed at attempt 1 (archived): ValueError: no')
    app.queue().delay('nowhere:f', 1)
    fails(delayed.drain, 'nowhere:f(1)  parked: unknown function: import the module')
    place.options(ttl=60).delay(ORDER)
    delayed.advance(61)
    fails(delayed.drain, 'archived: it did not start in time')
    app.queue().delay('example.com/app/mail.Welcome', 1)
    delayed.drain()  # calls of Go functions are for others
    delayed.require_enqueued('example.com/app/mail.Welcome', 1)


def test_run(delayed):
    sign_up.delay(42)
    fail_once.delay('boom')
    result = delayed.run(within=DAY)
    assert result.elapsed == DAY
    assert [(r.task.function, r.attempt, r.failed, r.outcome) for r in result.failed] == [
        (fail_once.path, 1, True, 'retried')
    ]
    assert sorted(r.outcome for r in result.runs) == ['done', 'done', 'done', 'retried']
    assert [t.args for t in result.waiting] == [(42, 'de')]
    assert not result.endless
    delayed.advance(6 * DAY - datetime.timedelta(seconds=1))
    assert delayed.run(within=0).runs == []
    assert [r.task.args for r in delayed.run(within=1).runs] == [(42, 'de')]


def test_a_chain_without_end(delayed):
    chain.delay()
    result = delayed.run(most=5)
    assert (len(result.runs), result.endless) == (5, True)
    assert 'no end after 5 calls; still to run' in result.problems()[-1]


def test_eager(delayed):
    delayed.eager = True
    sign_up.delay(42)
    assert [r[:3] for r in ran] == [('sign_up', 42), ('welcome', 42, 'en')]  # before delay returned
    delayed.require_count(1, welcome, ...)  # a week later
    app.queue().delay_many([welcome.call(1), welcome.call(2)])
    assert len(ran) == 4
    delayed.eager = False
    welcome.delay(3)
    assert len(ran) == 4


def test_errors_of_eager_tasks_fail_the_test_at_its_end():
    def run(task):
        with InMemory() as delayed:
            delayed.eager = True
            task.delay()
            ran.append('went on')

    error = fails(lambda: run(fail), 'fail() archived: ValueError: no')
    assert 'raise ValueError' in str(error.__cause__)
    fails(lambda: run(chain), '20 deep: a chain without end')
    assert ran == ['went on', 'went on']


@pytest.mark.parametrize('eager', [True, False])
def test_asyncio(delayed, eager):
    async def run():
        delayed.eager = eager
        ref = await welcome.aio.options(keep_result=60).delay(7)
        await later.aio.delay(1)
        delayed.drain()
        return await ref.result(timeout=1)

    assert asyncio.run(run()) == 'welcome 7'
    assert [r[:2] for r in ran] == [('welcome', 7), ('later', 1), ('welcome', 1)]


def test_an_application_has_its_own_server_again():
    with InMemory():
        inner = godelayed.Delayed(queue='inner')
        made = inner.task(path='m:inner', registry=godelayed.Registry())(lambda: None)
        made.delay()
        assert app.queue().ref('x').state() == 'unknown'
    with pytest.raises(godelayed.UnavailableError):
        app.queue().ref('x').state()


def test_settings_queues_and_registry():
    registry = godelayed.Registry()
    with InMemory(registry, max_retry=0) as delayed:
        q = godelayed.Queue('plain', delayed.redis, legacy=True)
        own = app.task(path='m:own', registry=registry)(lambda n: 1 // n)
        prefixed = godelayed.Queue('q', delayed.redis, prefix='p:')
        q.delay(own, 1)
        prefixed.delay(own, 0)
        assert {r.task.queue: r.outcome for r in delayed.run().runs} == {'plain': 'done', 'q': 'archived'}
        assert isinstance(delayed.redis, redis_py.Redis)
    with InMemory() as delayed, pytest.raises(ValueError, match='time does not go back'):
        delayed.advance(-1)


@pytest.mark.parametrize('kind', ['sync', 'aio'])
@pytest.mark.parametrize(
    ('how', 'error', 'enqueued'),
    [
        ('down', godelayed.UnavailableError, 0),
        ('full', godelayed.FullError, 0),
        ('lost', godelayed.UnknownError, 1),
    ],
)
def test_a_redis_that_fails(delayed, kind, how, error, enqueued):
    async def delay(n):
        await welcome.aio.delay(n)

    def call(n):
        welcome.delay(n) if kind == 'sync' else asyncio.run(delay(n))

    call(1)
    with delayed.broken(how):
        with pytest.raises(error):
            call(2)
        delayed.require_count(enqueued, welcome, 2)
        assert [r.outcome for r in delayed.run().runs] == ['done'] * (1 + enqueued)
    call(3)
    delayed.require_enqueued(welcome, 3)
