"""What a call of a function comes to, without a queue."""

import time
import types

import pytest

from godelayed import current
from godelayed.registry import Function
from godelayed.values import MAX_BYTES
from godelayed.worker import calling
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


@pytest.mark.parametrize(('limit', 'ran', 'why'), [(0, 1000, None), (2000, 1, None), (2000, 3, 'timeout')])
def test_a_task_in_a_thread_learns_that_its_time_is_over(limit, ran, why):
    """limit is in ms. The task has run for some seconds when it asks."""
    said = []

    def f():
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
    assert said == [why]
    assert [(e.ok, e.interrupted) for e in ends] == [(False, why or '')]
    assert isinstance(ends[0], Ended)


@pytest.mark.parametrize('alone', [True, False])
def test_the_death_of_a_process_while_the_worker_stops_does_not_count(alone):
    ends = []
    lane = types.SimpleNamespace(finisher=types.SimpleNamespace(add=lambda e: ends.append(e.kind)))
    c = types.SimpleNamespace(lane=lane, lost=False, canceled=False, report=None)
    runs = Runs(None, types.SimpleNamespace(death=lambda c, alone: End(c, DEATH)), None)
    runs.died(c, alone)
    runs.leave()
    runs.died(c, alone)
    assert ends == [DEATH, RELEASE]
