"""How a call of a function ends, without a queue."""

import asyncio
import datetime
import time
import types

import pytest

from godelayed import Archive, Drop, RetryIn, Snooze, TaskInterrupted, current
from godelayed.outcomes import INTERRUPTS
from godelayed.registry import Function
from godelayed.values import MAX_BYTES
from godelayed.worker import calling
from godelayed.worker.coroutine import Coroutine
from godelayed.worker.finish import DEATH, RELEASE, End
from godelayed.worker.judge import Ended
from godelayed.worker.runs import Runs
from godelayed.worker.threads import Threads

HEAD = 5  # bytes in front of a large binary


@pytest.mark.parametrize('over', [0, 1])
def test_results_are_kept_up_to_the_limit(over):
    ended = calling.call(Function('m:f', lambda: bytes(MAX_BYTES - HEAD + over)), [], {}, True, None)
    assert ended.ok
    if over:
        assert ended.result is None
        assert ended.fault == 'm:f: a result of 1,048,577 bytes, expected at most 1,048,576'
    else:
        assert len(ended.result) == MAX_BYTES


@pytest.mark.parametrize('kind', [*INTERRUPTS.values(), TaskInterrupted])
def test_no_task_goes_on_by_mistake_when_it_is_told_to_end(kind):
    """except Exception is common, also in loops that go on after any error."""

    def f():
        try:
            raise kind('why')
        except Exception:
            return 'went on'

    ended = calling.call(Function('m:f', f), [], {}, True, None)
    assert (ended.ok, ended.error) == (False, f'{kind.__name__}: why')
    assert 'raise kind' in ended.stack


def test_a_traceback_has_the_frames_of_the_task_alone_and_no_value():
    def f(value):
        check(value)

    def check(value):
        raise ValueError('why')

    ended = calling.call(Function('m:f', f), ['secret'], {}, True, None)
    assert ended.stack.count('File ') == 2
    assert ended.stack.index('check(value)') < ended.stack.index("raise ValueError('why')")
    assert 'secret' not in ended.stack


def test_the_traceback_of_a_coroutine_that_took_too_long_says_where_it_waited():
    async def f():
        await wait()

    async def wait():
        asyncio.get_running_loop().call_soon(run.interrupt, 'timeout')
        await asyncio.sleep(60)

    run = Coroutine(f)
    ended = asyncio.run(calling.call_coroutine(Function('m:f', f), [], {}, True, None, run))
    assert ended.error == 'TaskTimeout: timeout'
    assert 'await asyncio.sleep(60)' in ended.stack


@pytest.mark.parametrize(
    ('error', 'says', 'wait'),
    [
        (Archive('x'), 'discard', 0),
        (Drop('x'), 'drop', 0),
        (RetryIn(1.5), 'retry', 1500),
        (Snooze(datetime.timedelta(minutes=1)), 'snooze', 60_000),
        (Snooze(-5), 'snooze', 0),
        (ValueError('x'), '', 0),
    ],
)
@pytest.mark.parametrize('around', [False, True])
def test_what_a_task_says_by_its_error(error, says, wait, around):
    """Also if another error was raised from it."""

    def f():
        if around:
            raise ValueError('around') from error
        raise error

    ended = calling.call(Function('m:f', f), [], {}, True, None)
    assert (ended.ok, ended.says, ended.wait, ended.arguments) == (False, says, wait, False)


def test_a_result_or_an_error_that_fails_itself_is_told_of():
    class FaultyError(Exception):
        def __str__(self):
            raise ValueError('secret')

    class Lazy(list):
        def __iter__(self):
            raise ValueError('secret')

    def fail():
        raise FaultyError

    ended = calling.call(Function('m:f', fail), [], {}, True, None)
    assert (ended.ok, ended.error) == (False, 'FaultyError: (its text failed: ValueError)')
    ended = calling.call(Function('m:f', lambda: Lazy([1])), [], {}, True, None)
    assert (ended.ok, ended.result, ended.fault) == (True, None, 'm:f: the result cannot be packed: ValueError')


def test_a_function_without_a_signature_is_not_blamed_for_its_arguments():
    """It is unknown whether they fit, so the task is tried again like any other."""

    class Odd:
        __signature__ = 'none'

        def __call__(self, *_):
            raise TypeError('its own')

    ended = calling.call(Function('m:f', Odd()), [1], {}, False, None)
    assert (ended.ok, ended.arguments) == (False, False)


@pytest.mark.parametrize('asks', [True, False])
@pytest.mark.parametrize(('limit', 'ran', 'why'), [(0, 1000, None), (2000, 1, None), (2000, 3, 'timeout')])
def test_a_task_in_a_thread_learns_that_its_time_is_over(limit, ran, why, asks):
    """limit is in ms. The task has run for some seconds when it asks for the time, or fails without asking."""
    said = []

    def f():
        if asks:
            said.append(current().interrupted)
        raise ValueError

    c = types.SimpleNamespace(
        lane=types.SimpleNamespace(name='q'),
        message=types.SimpleNamespace(path='m:f', meta={}, args=[], kwargs={}, keep=0),
        function=Function('m:f', f),
        limit=limit,
        started=time.monotonic() - ran,
    )
    ends = []
    Threads(None, 1, lambda *_: True, lambda _, ended: ends.append(ended) or True, None)._task(c)
    assert said == ([why] if asks else [])
    assert [(e.ok, e.interrupted) for e in ends] == [(False, why or '')]
    assert isinstance(ends[0], Ended)


def test_a_task_that_may_not_start_in_a_thread_is_neither_called_nor_done():
    """Otherwise it would be acknowledged as well."""
    assert Threads(None, 1, lambda *_: False, None, None)._task(None) is False


@pytest.mark.parametrize('alone', [True, False])
def test_the_death_of_a_process_while_the_worker_stops_does_not_count(alone):
    ends = []
    lane = types.SimpleNamespace(finisher=types.SimpleNamespace(add=lambda e: ends.append(e.kind)))
    c = types.SimpleNamespace(lane=lane, lost=False, canceled=False, report=None, started=0.0)
    runs = Runs(types.SimpleNamespace(death=lambda c, alone: End(c, DEATH)), None)
    runs.died(c, alone)
    runs.leave()
    runs.died(c, alone)
    assert ends == [DEATH, RELEASE]
