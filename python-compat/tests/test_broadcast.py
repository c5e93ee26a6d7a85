"""What those who watch a queue are told."""

import json
import time
import types

import pytest

from godelayed.worker.broadcast import Broadcast
from godelayed.worker.lane import Lane
from godelayed.worker.link import Source
from godelayed.worker.store import Store


@pytest.fixture
def heard(redis):
    """Returns what is published on the queue's channel."""
    p = redis.pubsub(ignore_subscribe_messages=True)
    p.subscribe('q_events')
    p.get_message(timeout=5)

    def take():
        m = p.get_message(timeout=0.2)
        return json.loads(m['data']) if m else None

    yield take
    p.close()


def claim(lane, id='x'):
    message = types.SimpleNamespace(id=id, path='m:f', retried=1)
    return types.SimpleNamespace(lane=lane, message=message)


def test_nothing_is_told_while_nobody_watches(redis, heard):
    lane, other = (Lane(Store(Source(redis), '', name, 'w'), False) for name in ('q', 'other'))
    b = Broadcast(Source(redis), 'w')
    b.add(['task done'], claim(lane))
    b.publish()
    assert heard() is None
    b.watch(lane, 60_000)
    b.add(['task done'], claim(other))
    b.publish()
    assert heard() is None


def test_the_latest_events_are_told(redis, heard):
    lane = Lane(Store(Source(redis), '', 'q', 'w'), False)
    b = Broadcast(Source(redis), 'w')
    b.watch(lane, 60_000)
    for i in range(250):
        b.add(['task failed'], claim(lane, f'x{i}'), took=5, wait=0, error='ü' * 400)
    b.publish()
    told = heard()
    assert (told['version'], told['worker'], told['missed'], told['before']) == (1, 'w', 50, 50)
    assert [e['id'] for e in told['events']] == [f'x{i}' for i in range(50, 250)]
    assert told['events'][0] == {
        'kind': 'task failed',
        'at': told['events'][0]['at'],
        'id': 'x50',
        'function': 'm:f',
        'attempt': 2,
        'took': 5,
        'error': 'ü' * 250,
    }
    b.add(['task done'], claim(lane))
    b.publish()
    assert (heard()['before'], b.on) == (250, True)


def test_watching_ends(redis, heard, monkeypatch):
    lane = Lane(Store(Source(redis), '', 'q', 'w'), False)
    b = Broadcast(Source(redis), 'w')
    b.watch(lane, 10**8)  # a minute at most
    there = time.monotonic
    monkeypatch.setattr(time, 'monotonic', lambda: there() + 61)
    b.publish()
    assert not b.on
    b.add(['task done'], claim(lane))
    b.publish()
    assert heard() is None
