"""Limits of time and memory, and health checks of a worker that runs."""

import http.client
import re
import time
import types

import pytest
from working import ran, wait_for

from godelayed.worker import WorkerConfig, limits
from godelayed.worker.limits import Limits
from godelayed.worker.memory import resident


@pytest.mark.parametrize(
    ('settings', 'patience'),
    [
        ({}, None),
        ({'max_tasks': 1}, 0.05),
        ({'stop_when_empty': True, 'max_time': 60}, 0.05),
        ({'max_memory': 1 << 40}, 1.0),
        ({'max_memory': 1 << 40, 'max_time': 60}, 1.0),
    ],
)
def test_how_often_limits_are_looked_at(settings, patience):
    assert Limits(WorkerConfig('q', **settings), None).patience() == patience


def test_the_limit_of_time(monkeypatch):
    found = Limits(WorkerConfig('q', max_time=60), None)
    assert 59 < found.patience() <= 60
    assert found.over() == ''
    monkeypatch.setattr(limits, 'time', types.SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
    assert (found.patience(), found.over()) == (0.0, 'max time')


def test_the_limit_of_memory_counts_all_processes(caplog):
    own, pool = resident(), types.SimpleNamespace(pids=lambda: ['self', 'self', 'gone'])
    assert Limits(WorkerConfig('q', max_memory=2 * own), None).over() == ''
    assert Limits(WorkerConfig('q', max_memory=2 * own), pool).over() == 'max memory'
    assert 'more than max_memory' in caplog.text
    assert Limits(WorkerConfig('q', max_memory=4 * own), pool).over() == ''


def test_a_process_that_takes_too_much_is_replaced(q, redis, start):
    for _ in range(3):
        q.delay('worker_tasks:pid')
    start('--concurrency', '1', '--max-memory-per-process', '1MiB', '--stop-when-empty').ends()
    assert len(set(ran(redis))) == 3


def test_a_worker_ends_in_time(start):
    w = start('--concurrency', '1', '--max-time', '1')
    w.ends()
    assert 'worker stops (max time)' in w.output()


def test_a_worker_that_takes_too_much_ends(q, redis, start):
    w = start('--max-memory', '1MiB', '--processes', '0', '--listen', '127.0.0.1:0')
    found = None

    def listens():
        nonlocal found
        found = re.search(r'health checks at 127.0.0.1:([0-9]+)', w.output())
        return found is not None

    wait_for(listens, w.output)
    c = http.client.HTTPConnection('127.0.0.1', int(found[1]), timeout=30)
    c.request('GET', '/healthz')
    assert c.getresponse().status == 200
    c.close()
    w.ends()
    assert 'worker stops (max memory)' in w.output()


def test_an_address_that_is_taken_ends_the_start(server, start):
    start('--listen', f'127.0.0.1:{server.port}').ends(1)
