"""Scripts for all queues of one slot: with more queues than one script takes, and more workers than one reply has."""

import pytest
import redis as redis_py

from godelayed.worker import slot
from godelayed.worker.link import Link, Source
from godelayed.worker.store import Store

BUSY, UNKNOWN = slot._PAGE + 7, 2 * slot._PAGE  # a queue of the second page, and the last one


@pytest.fixture
def link(server):
    client = server.client()
    link = Link(Source(client))
    yield link
    link.hang_up()
    client.close()


def store(name):
    return Store(Source(redis_py.Redis()), '', name, 'w')


def test_each_of_many_queues_gets_the_answer_that_is_its_own(link, redis, monkeypatch):
    stores, asked, run = [store(f'q{i}') for i in range(2 * slot._PAGE + 1)], [], link.run
    for s in stores[:UNKNOWN]:
        run('register', [s.keys.heartbeat + 'w', s.keys.workers, s.keys.processing + 'w'], 60_000, 'w', 'v')
    redis.rpush(f'q{BUSY}', 'a', 'b', 'c')
    redis.rpush(f'q{BUSY}_noti', 1, 1, 1)
    monkeypatch.setattr(link, 'run', lambda name, *args: asked.append(name) or run(name, *args))
    pulses, _ = slot.beat(link, stores, 60_000, True, True)
    todos, _ = slot.check(link, stores)
    sights, _ = slot.survey(link, stores, 'me', 60_000)
    pending = [3 if i == BUSY else 0 for i in range(len(stores))]
    alive = [i != UNKNOWN for i in range(len(stores))]
    assert [p.alive for p in pulses] == alive
    assert [t.pending for t in todos] == [s.pending for s in sights] == pending
    assert [s.workers for s in sights] == [['w'] if a else [] for a in alive]
    assert all(s.mine for s in sights)
    assert asked == ['beat'] * 3 + ['check'] * 3 + ['survey'] * 3


def test_a_survey_finds_all_of_many_workers(link, redis):
    many = [f'w{i:05}' for i in range(2 * slot._WORKERS + 5)]
    redis.sadd('few_workers', 'a')
    redis.sadd('many_workers', *many)
    redis.sadd('three_workers', 'b', 'c', 'd')
    sights, _ = slot.survey(link, [store('few'), store('many'), store('three')], 'me', 60_000)
    assert [sorted(s.workers) for s in sights] == [['a'], many, ['b', 'c', 'd']]
    assert all(s.mine for s in sights)
