"""How a worker uses its settings."""

import datetime
import types

import pytest
import redis as redis_py

from godelayed import ArgumentsError, DelayedError, Worker, task
from godelayed.registry import Function, Registry
from godelayed.worker import WorkerConfig
from godelayed.worker.link import CALL_TIMEOUT, Backoff, Complaints, Link, Source
from godelayed.worker.store import Haul

DAY = 24 * 3600 * 1000  # ms


@pytest.mark.parametrize(
    ('settings', 'why'),
    [
        ({'queues': []}, 'no queues'),
        ({'queues': ['a', 'b', 'a']}, "queue 'a' is named twice"),
        ({'queues': ['a_noti']}, 'which is a key of queue'),
        ({'queues': {'a': 0}}, 'expected 1 to 1000'),
        ({'queues': {'a': 1001}}, 'expected 1 to 1000'),
        ({'queues': {'a': True}}, 'expected 1 to 1000'),
        ({'queues': {'a': 1.5}}, 'expected 1 to 1000'),
        ({'concurrency': 0}, 'expected 1 to 10000'),
        ({'concurrency': 10_001}, 'expected 1 to 10000'),
        ({'concurrency': True}, 'expected 1 to 10000'),
        ({'heartbeat_life': 0.4}, 'at least 0.5 s'),
        ({'sweep_interval': 0.001}, 'at least 0.01 s'),
        ({'kill_after': -1}, 'at least 0.0 s'),
        ({'grace': -1}, 'at least 0.0 s'),
        ({'cancel_grace': -1}, 'at least 0.0 s'),
        ({'archive_for': 0}, 'at least 0.001 s'),
        ({'timeout': 0}, 'at least 0.001 s'),
        ({'timeout': '5'}, 'expected seconds or a timedelta'),
        ({'legacy': True, 'prefix': 'p:'}, 'legacy workers do not know it'),
        ({'go_queue': 'a b'}, 'printable characters without spaces'),
        ({'max_tasks': 0}, 'at least 1'),
        ({'max_tasks_per_process': 0}, 'at least 1'),
        ({'prefetch': -1}, 'at least 0'),
        ({'archive_max': 0}, 'at least 1'),
        ({'max_tasks': 1.0}, 'expected an integer'),
    ],
)
def test_settings_that_cannot_be(settings, why):
    with pytest.raises(ArgumentsError, match=why):
        WorkerConfig(**{'queues': ['a'], **settings}).check()
    with pytest.raises(ArgumentsError, match=why):
        Worker(redis_py.Redis(port=1), **{'queues': ['a'], **settings})


@pytest.mark.parametrize(
    'settings',
    [
        {'queues': 'a'},
        {'queues': {'a': 1, 'b': 1000}},
        {'concurrency': 1, 'kill_after': 0, 'grace': 0, 'cancel_grace': 0, 'prefetch': 0},
        {'heartbeat_life': 0.5, 'sweep_interval': 0.01, 'archive_for': 0.001, 'timeout': 0.001},
        {'max_tasks': 1, 'max_tasks_per_process': 1, 'archive_max': 1, 'go_queue': 'go', 'prefix': 'p:'},
    ],
)
def test_settings_that_may_just_be(settings):
    WorkerConfig(**{'queues': ['a'], **settings}).check()


@pytest.mark.parametrize('archive_for', [7200, datetime.timedelta(hours=2)])
def test_durations_reach_those_who_count_in_milliseconds(worker, archive_for):
    w = worker('a', 'b', timeout=1.5, archive_for=archive_for, archive_max=7)
    assert w._judge.rules.timeout == 1500
    assert [(f.archive_max, f.archive_for) for f in (lane.finisher for lane in w._lanes)] == [(7, 7_200_000)] * 2
    assert (w._slots[0].sweeping.archive_max, w._slots[0].sweeping.archive_for) == (7, 7_200_000)
    assert w._slots[0].mover._archive_for == 7_200_000
    swept = []
    for lane in w._lanes:
        lane.store.sweep = lambda link, liveness, hash, limits, verdicts: swept.append(limits)
        lane.finisher.sweep(None, [])
    assert swept == [(72 * 3600, 3, 7_200_000, 7)] * 2


def test_defaults(worker):
    w = worker('a')
    assert (w._judge.rules.max_retry, w._judge.rules.timeout, w._judge.rules.backoff) == (25, 0, None)
    assert (w._slots[0].sweeping.archive_max, w._slots[0].sweeping.archive_for) == (10_000, 90 * DAY)
    assert (w._life, w._slots[0].sweeping.interval, w._executors.budget) == (15.0, 8.0, None)
    assert w._executors.pace.fixed is None


@pytest.mark.parametrize('legacy', [True, False])
def test_on_a_legacy_queue_only_tasks_with_a_notification_are_taken(worker, legacy):
    """The others belong to workers that are about to claim them."""
    asked = []
    for lane in worker('a', 'b', legacy=legacy)._lanes:
        lane.store.claim = lambda link, batch, most, held, legacy, *_: asked.append(legacy) or Haul(1)
        lane.claim(None, 1, 0, False, [])
    assert asked == [legacy] * 2


def test_a_worker_without_processes_starts_once_and_runs_once(redis, q):
    """start is called before the first task."""
    order = []
    registry = Registry()
    registry.add(Function('m:f', lambda: order.append('task')))
    settings = {'processes': False, 'concurrency': 2, 'stop_when_empty': True}
    w = Worker(redis, ['q'], registry=registry, start=lambda: order.append('start'), **settings)
    for _ in range(3):
        q.delay('m:f')
    w.run()
    assert order == ['start', 'task', 'task', 'task']
    with pytest.raises(DelayedError, match='was run before'):
        w.run()


@pytest.mark.parametrize('sweep', [True, False])
def test_sweeping_can_be_left_to_others(redis, monkeypatch, sweep):
    """Sweeping finds dead workers and deletes old tasks."""
    w = Worker(redis, ['q'], registry=Registry(), processes=False, sweep=sweep)
    swept = []
    monkeypatch.setattr(type(w._slots[0].sweeping), 'run', lambda _: swept.append(1))
    monkeypatch.setattr(w, '_look_at_limits', lambda: None)
    monkeypatch.setattr(w, 'on_forked', w.stop)
    w.run()
    assert swept == [1] * sweep


# Functions.


@pytest.mark.parametrize(
    ('function', 'settings', 'why'),
    [
        (7, {}, 'expected a function'),
        (test_defaults, {'path': 'example.com/app.F'}, 'without a colon'),
        (test_defaults, {'path': 'a:b:c'}, 'module:function'),
        (test_defaults, {'backoff': []}, '1 to 64 durations, found 0'),
        (test_defaults, {'backoff': [1] * 65}, '1 to 64 durations, found 65'),
        (test_defaults, {'backoff': [1, -1]}, 'no negative duration'),
        (test_defaults, {'max_backoff': 0}, 'a positive duration'),
        (test_defaults, {'timeout': 0}, 'a positive duration'),
        (test_defaults, {'retry': 1.5}, 'expected an int'),
        (test_defaults, {'retry': True}, 'expected an int'),
    ],
)
def test_functions_that_cannot_be(function, settings, why):
    registry = Registry()
    with pytest.raises(ArgumentsError, match=why):
        task(registry=registry, **settings)(function)
    assert len(registry) == 0


def test_what_a_function_says_is_kept_in_milliseconds():
    registry = Registry()

    @task(registry=registry, path='m:f', retry=-1, backoff=[1, 0.5], max_backoff=60, timeout=2.5)
    async def f():
        pass

    made = registry.get('m:f')
    assert (made.retry, made.delays, made.max_backoff, made.timeout) == (-1, (1000, 500), 60_000, 2500)
    assert (made.coroutine, made.archive_on_timeout, f.path) == (True, False, 'm:f')
    assert registry.paths() == ['m:f']


# Connections and errors.


@pytest.mark.parametrize(('own', 'connect'), [(None, 3.0), (0.5, 0.5), (60, 3.0)])
def test_connections_of_a_worker_try_nothing_again(redis, own, connect):
    """That holds whatever the client's settings are: the worker's loops try again themselves, and no claim may be sent
    twice."""
    port = redis.connection_pool.connection_kwargs['port']
    with redis_py.Redis(
        port=port, socket_connect_timeout=own, health_check_interval=5, decode_responses=True
    ) as client:
        c = Source(client).connect(3.0)
    assert (c.socket_timeout, c.socket_connect_timeout) == (3.0, connect)
    assert (c.retry._retries, c.retry_on_error, c.health_check_interval) == (0, [], 0)
    c.disconnect()
    assert Link(Source(redis)).timeout == CALL_TIMEOUT


def test_pauses_while_redis_is_away(monkeypatch):
    monkeypatch.setattr('random.random', lambda: 0.5)
    b = Backoff()
    assert [b.next() for _ in range(9)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0]
    b.reset()
    assert b.next() == 0.05
    for part, pause in ((0.0, 0.025), (1.0, 0.075)):
        monkeypatch.setattr('random.random', lambda part=part: part)
        assert Backoff().next() == pytest.approx(pause)


def test_the_same_trouble_is_logged_once_in_ten_seconds(monkeypatch):
    now, lines = [1000.0], []
    monkeypatch.setattr('time.monotonic', lambda: now[0])
    log = types.SimpleNamespace(
        warning=lambda text, *args: lines.append(text % args), info=lambda text: lines.append(text)
    )
    c = Complaints()
    c.relief(log, 'well')  # there was no error
    for _ in range(22):
        c.trouble(log, 'cannot', ValueError('why'))
        now[0] += 1
    assert lines == ['cannot: why', 'cannot: why (9 more times)', 'cannot: why (9 more times)']
    c.relief(log, 'well')
    c.relief(log, 'well')
    c.trouble(log, 'cannot', ValueError('why'))
    assert lines[3:] == ['well', 'cannot: why']
