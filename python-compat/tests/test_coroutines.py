"""Coroutines of a worker: they run together on one event loop, which lives on, and can be told to end."""

import pytest
from working import counters, notes, ran, runs, wait_for

import godelayed
from godelayed import ArgumentsError, CanceledError, TaskError
from godelayed.registry import Function
from godelayed.worker.executors import Executors
from godelayed.worker.lane import Claim


def test_they_run_together_on_one_event_loop_that_lives_on(q, both):
    """More of them run at once than other tasks."""
    both('--coroutines', '30')
    kept = q.options(keep_result=60)
    pids = set()
    for n in (30, 30, 1):
        refs = [kept.delay('worker_tasks:meet', n) for _ in range(n)]
        pids |= {ref.result(timeout=60) for ref in refs}
    assert len(pids) == 1
    assert kept.delay('worker_tasks:add', 1, 2).result(timeout=60) == 3


def test_no_more_than_allowed_run_at_once(q, both, redis):
    both('--coroutines', '2')
    for _ in range(3):
        q.delay('worker_tasks:patient')
    runs(redis, 'patient 1 0', 'patient 1 0')
    q.delay('worker_tasks:say', 'other')  # others are not held up
    runs(redis, 'patient 1 0', 'patient 1 0', 'say other')
    with notes(redis) as c:
        c.set('go', 1)
    runs(redis, *['patient 1 0', 'went'] * 3, 'say other')


def test_cancel_and_timeout_reach_one_among_others(q, both, redis):
    both('--concurrency', '1')
    kept = q.options(keep_result=60)
    others = [kept.delay('worker_tasks:patient') for _ in range(2)]
    canceled = kept.delay('worker_tasks:wait_long', 'await')
    late = kept.options(timeout=2).delay('worker_tasks:wait_long', 'gather')
    with pytest.raises(TaskError, match='it took longer than 2 s: TaskTimeout'):
        late.result(timeout=60)
    wait_for(lambda: ran(redis).count('waiting') == 2, 'both')
    canceled.cancel()
    with pytest.raises(CanceledError):
        canceled.result(timeout=60)
    with notes(redis) as c:
        c.set('go', 1)
    assert [ref.result(timeout=60) for ref in others] == ['went'] * 2
    assert sorted(ran(redis)) == sorted(['patient 1 0', 'went'] * 2 + ['waiting', 'cancelled'] * 2)


@pytest.mark.parametrize('how', ['swallow', 'block'])
def test_one_that_does_not_end_takes_no_other_with_it(q, start, redis, how):
    """Its process is killed; the others are given back, which counts neither as a try nor as a death."""
    start('--kill-after', '0.3')
    kept = q.options(keep_result=60)
    other = kept.delay('worker_tasks:patient')
    runs(redis, 'patient 1 0')
    stubborn = kept.options(timeout=1).delay('worker_tasks:stubborn', how)
    with pytest.raises(TaskError, match='its process was killed: timeout'):
        stubborn.result(timeout=60)
    runs(redis, 'patient 1 0', 'stubborn', 'patient 1 0')
    with notes(redis) as c:
        c.set('go', 1)
    assert other.result(timeout=60) == 'went'
    found = counters(redis)
    assert (found.get('failed', 0), found.get('retried', 0), found.get('requeued', 0)) == (1, 0, 0)


def test_isolated_ones_run_alone(q, start, redis):
    """One that blocks is killed, and those on the common event loop do not notice."""
    start('--concurrency', '1', '--kill-after', '0.3', module='worker_tasks isolated_tasks')
    kept = q.options(keep_result=60)
    other = kept.delay('worker_tasks:patient')
    runs(redis, 'patient 1 0')
    with pytest.raises(TaskError, match='its process was killed: timeout'):
        kept.options(timeout=1).delay('isolated_tasks:lone', True).result(timeout=60)
    assert kept.delay('isolated_tasks:lone', False).result(timeout=60) != kept.delay('worker_tasks:meet', 1).result(60)
    with notes(redis) as c:
        c.set('go', 1)
    assert other.result(timeout=60) == 'went'
    runs(redis, 'patient 1 0', 'lone', 'lone', 'went')


def test_isolated_functions_need_processes(redis):
    registry = godelayed.Registry()

    @godelayed.task(path='m:f', isolated=True, registry=registry)
    def f(a):
        return a + 1

    assert f(1) == 2
    with pytest.raises(ArgumentsError, match='m:f: expected a worker with processes'):
        godelayed.Worker(redis, ['q'], registry=registry, processes=False)
    godelayed.Worker(redis, ['q'], registry=registry)
    assert Function('m:f', print, coroutine=True).together
    assert not Function('m:f', print, coroutine=True, isolated=True).together


def test_threads_of_a_coroutine_report_its_progress(q, both):
    both()
    ref = q.options(keep_result=60).delay('worker_tasks:reports')
    assert ref.result(timeout=60) == 1
    assert ref.progress()[:2] == (50, 50)


def test_a_stop_tells_them_to_end(q, both, redis):
    w = both('--grace', '0.1', '--cancel-grace', '30')
    q.delay('worker_tasks:wait_long', 'await')
    runs(redis, 'waiting')
    w.stop()
    runs(redis, 'waiting', 'cancelled')
    assert len(q) == 1


def test_the_process_of_coroutines_is_replaced(q, start, redis):
    """It ends when its last coroutine has ended, and others run in its successor meanwhile."""
    start('--max-tasks-per-process', '3')
    kept = q.options(keep_result=60)
    long = kept.delay('worker_tasks:patient')
    runs(redis, 'patient 1 0')
    pids = [kept.delay('worker_tasks:meet', 1).result(timeout=60) for _ in range(7)]
    assert len(set(pids)) == 3
    with notes(redis) as c:
        c.set('go', 1)
    assert long.result(timeout=60) == 'went'
    runs(redis, 'patient 1 0', 'went')


@pytest.fixture
def executors():
    """Executors for one other task and four coroutines, and a way to make claims of both kinds."""

    class Lane:
        finisher = None

        def fresh(self, _):
            return True

    class Batch:
        at = 1e12

    def claim(coroutine):
        c = Claim(Lane(), Batch(), '1-1', b'')
        c.function = Function('m:f', print, coroutine=coroutine)
        return c

    return Executors(1, 0, 15.0, coroutines=4), claim


def test_room_for_coroutines_follows_what_comes(executors):
    """Nobody knows before a claim what it brings, and other tasks must not be kept from other workers."""
    e, claim = executors
    assert e.room()[0] == 5
    for _ in range(6):
        e.add([claim(False)])
        c = e.start()
        assert e.start(True) is None
        e.leave(c, False, 0.001)
    assert e.room()[0] == 2
    e.add([claim(True) for _ in range(4)])
    assert e.start() is None
    started = [e.start(True) for _ in range(4)]
    assert None not in started
    assert e.start(True) is None
    assert e.room()[0] == 1
    e.add([claim(True), claim(False)])
    assert e.start().function.coroutine is False
    assert e.room()[0] == 0
    signals = []
    e.signal = lambda: signals.append(1)
    e.leave(started[0], False, 0.1)
    assert e.start(True) is not None
    assert len(e.take_back()) == 0
    e.leave(started[1], False, 0.1)
    assert signals  # there is room again


@pytest.mark.parametrize('of_one_queue', [False, True])
def test_other_tasks_start_when_coroutines_were_taken_back(executors, of_one_queue):
    """A worker takes them back when it or their queue is paused."""
    e, claim = executors
    coroutine, other = claim(True), claim(False)
    e.add([coroutine])
    assert e.take_back(coroutine.lane if of_one_queue else None) == [coroutine]
    e.add([other])
    assert e.start(True) is None
    assert e.start() is other


def test_coroutine_functions_that_come_late_run_nevertheless():
    from godelayed.worker import calling

    async def f(a):
        return a + 1

    ended = calling.call(Function('m:f', f, coroutine=True), [1], {}, True, None)
    assert (ended.ok, ended.result) == (True, b'\x02')
    assert godelayed.Registry().coroutines is False
