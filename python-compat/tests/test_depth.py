"""How many tasks are pending, over time: what Redis has of it, and when a worker notes it."""

import time
import types

import pytest
import redis as redis_py

from godelayed.worker import depth
from godelayed.worker.depth import Depths, Pace
from godelayed.worker.lane import Lane
from godelayed.worker.link import Link, Source
from godelayed.worker.mover import Mover
from godelayed.worker.slot import note_depths
from godelayed.worker.store import Store

NOON = 1_735_819_210.9  # 2025-01-02 12:00:10, in the second ten seconds of a minute


@pytest.fixture
def link(server):
    client = server.client()
    link = Link(Source(client))
    yield link
    link.hang_up()
    client.close()


def store(name='q', source=None):
    return Store(source or Source(redis_py.Redis()), '', name, 'w')


def kept(redis, key='q_depths'):
    return {field.decode(): text.decode() for field, text in redis.hgetall(key).items()}


def test_bytes_are_those_of_go(link, redis):
    """The first case in internal/redisstore/depth_test.go, and a lower and a higher depth after it."""
    at = 1_735_776_010.9
    redis.rpush('q', 'a', 'b', 'c')
    assert note_depths(link, [store()], at) == [3]
    days = '446:' + '-,' * 20
    assert kept(redis) == {'s0': '1928640:-,3', 'm8': '241080:3', 'd2': days + '3'}
    assert redis.ttl('q_depths') > 89 * 86_400
    redis.rpush('q', 'd')
    assert note_depths(link, [store()], at) == [-1]
    redis.ltrim('q', 0, 0)
    assert note_depths(link, [store(), store('empty')], at + 10) == [1, 0]
    redis.rpush('q', *'abcd')
    assert note_depths(link, [store()], at + 50) == [5]
    assert kept(redis) == {'s0': '1928640:-,3,1,-,-,-,5', 'm8': '241080:3,5', 'd2': days + '5'}
    assert kept(redis, 'empty_depths') == {'s0': '1928640:-,-,', 'm8': '241080:', 'd2': days}
    redis.delete('q')


@pytest.mark.parametrize(
    ('seen', 'next_', 'rest'),
    [
        ([0], 9.1, 279.1),  # empty from the first look on
        ([-1], 29.1, 29.1),  # another worker has noted it
        ([3], 9.1, 9.1),
        ([3, 0], 9.1, 49.1),  # in the next minute again
        ([3, 0, 0], 9.1, 279.1),
        ([3, -1, 0], 9.1, 279.1),
    ],
)
def test_pace(seen, next_, rest):
    pace = Pace()
    assert pace.due(0.0, False)
    for pending in seen:
        pace.done(pending, 1000.0, NOON)
    assert (pace.next - 1000, pace.rest - 1000) == pytest.approx((next_, rest))
    assert not pace.due(pace.next - 0.1, True)
    assert pace.due(pace.next, True)
    assert pace.due(pace.rest, False)
    assert pace.due(pace.next, False) == (pace.rest == pace.next)


def test_depths_are_noted_once(link, redis, monkeypatch):
    asked = []
    monkeypatch.setattr(depth, 'note_depths', lambda *args: asked.append(args) or note_depths(*args))
    lanes = [Lane(store(name, link.source), False) for name in 'qr']
    depths = Depths(lanes)
    for _ in range(5):
        depths.tell(link)
    assert len(asked) == 1
    assert redis.exists('q_depths', 'r_depths') == 2
    # The mover finds a task: with the next ten seconds its queue is due, and not the other one.
    redis.rpush('r', 'm')
    redis.rpush('r_noti', '1')
    lines = types.SimpleNamespace(flush=lambda **_: None)
    mover = Mover(lanes, lambda *_: None, lambda *_: True, lambda: None, 1000, lines)
    mover.look()
    mover.link.hang_up()
    for pace in depths._paces.values():
        pace.next = 0.0
    depths.tell(link)
    assert [[s.name for s in args[1]] for args in asked] == [['q', 'r'], ['r']]


def test_what_redis_refuses_is_left_alone(link, redis):
    lane = Lane(store(), False)
    redis.set('q_depths', 'of another program')
    assert note_depths(link, [lane.store], time.time()) == [-1]
    depths = Depths([lane])
    depths.tell(link)
    assert depths._paces[lane].next > time.monotonic() + 10
