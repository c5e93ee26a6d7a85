"""What workers count: the bytes of samples, and what Redis has of them."""

import time
import types

import pytest
import redis as redis_py

from godelayed import errors
from godelayed.worker.lane import Lane
from godelayed.worker.link import Link, Source, UnansweredError, UnreachableError
from godelayed.worker.sample import BUCKETS, Durations, Sample
from godelayed.worker.store import Store
from godelayed.worker.tally import Tally

# Of the Go package internal/metrics.
BYTES = '01ac020201d3d7b8a8fd96010500010301200257012a01dc0b0200012501'


def sample():
    s = Sample()
    s.runs, s.failed, s.archived = 300, 2, 1
    for us in (0, 3, 1000, 1000, 3_600_000_000, 60 * 86_400_000_000):
        s.wait.add(us)
    s.run.add(-1_000_000)
    s.run.add(1500)
    return s


def test_bytes_are_those_of_go():
    assert sample().encode().hex() == BYTES


def test_samples_are_merged():
    s = sample()
    assert s.merge_encoded(bytes.fromhex(BYTES))
    assert (s.runs, s.failed, s.archived) == (600, 4, 2)
    assert s.wait.counts[0] == 2 and s.run.total == 3000 and sum(s.wait.counts.values()) == 12  # noqa: PT018
    twice = Sample()
    assert twice.merge_encoded(s.encode())
    assert twice.encode() == s.encode()


@pytest.mark.parametrize(
    'raw',
    [
        b'',
        b'\2',
        bytes.fromhex(BYTES)[:-1],
        bytes.fromhex(BYTES) + b'\0',
        b'\1' + b'\xff' * 9,
        b'\1\0\0\0\0\1\xc8\1\1\0\0',
    ],
)
def test_what_is_no_sample_changes_nothing(raw):
    s = sample()
    assert not s.merge_encoded(raw)
    assert s.encode().hex() == BYTES


def test_every_duration_has_a_bucket():
    for us in (0, 1, 4, 7, 8, 1 << 20, 1 << 40, 1 << 62):
        d = Durations()
        d.add(us)
        assert 0 <= next(iter(d.counts)) < BUCKETS


@pytest.fixture
def tally(server):
    client = server.client()
    lane = Lane(Store(Source(client), '', 'q', 'w'), False)
    yield Tally(lane)
    client.close()


def claim(path='m:f', enqueued=0, ran=0.01, **meta):
    return types.SimpleNamespace(
        started=time.monotonic() - ran,
        message=types.SimpleNamespace(meta={**({'at': enqueued} if enqueued else {}), **meta}),
        function=types.SimpleNamespace(path=path),
    )


def read(redis, key='q_metrics:total'):
    found = {}
    for field, raw in redis.hgetall(key).items():
        s = Sample()
        assert s.merge_encoded(raw)
        found[field.decode()] = s
    return found


def test_runs_are_told_once(tally, redis):
    link = Link(Source(redis))
    for _ in range(3):
        tally.add(claim(enqueued=int(time.time() * 1000) - 5000), failed=False, archived=False)
    tally.add(claim('m:g', ran=2), failed=True, archived=True)
    tally.tell(link)
    tally.tell(link)
    found = read(redis)
    assert found['0 m:f'].runs == 3 and found['0 m:f'].failed == 0  # noqa: PT018
    assert 4_000_000 < found['0 m:f'].wait.total / 3 < 60_000_000
    g = found['0 m:g']
    assert (g.runs, g.failed, g.archived, sum(g.wait.counts.values())) == (1, 1, 1, 0)
    assert 2_000_000 <= g.run.total < 60_000_000
    grains = {k.decode()[10] for k in redis.keys('q_metrics:*')}
    assert grains == set('smdt')
    assert all(redis.ttl(k) > 3000 for k in redis.keys('q_metrics:*'))
    tally.add(claim(), failed=False, archived=False)
    tally.tell(link)
    assert read(redis)['0 m:f'].runs == 4
    link.hang_up()


def test_tasks_wait_from_when_they_are_due(tally, redis):
    link = Link(Source(redis))
    now = int(time.time() * 1000)
    tally.add(claim(enqueued=now - 3_600_000, du=now - 5000), failed=False, archived=False)
    tally.tell(link)
    assert 4_000_000 < read(redis)['0 m:f'].wait.total < 600_000_000
    link.hang_up()


def test_further_functions_share_a_place(tally, redis):
    link = Link(Source(redis))
    for i in range(150):
        tally.add(claim(f'm:f{i}'), failed=False, archived=False)
    tally.tell(link)
    found = read(redis)
    assert len(found) == 65
    assert found['0 '].runs == 150 - 64
    link.hang_up()


def test_what_redis_has_not_got_is_told_again(tally, redis):
    tally.add(claim(), failed=False, archived=False)
    with pytest.raises(UnreachableError):
        tally.tell(Link(Source(redis_py.Redis(port=1))))
    link = Link(Source(redis))
    run, refused = link.run, []

    def lost(*args):
        if not refused:
            refused.append(run(*args))
            raise UnansweredError('lost')
        return run(*args)

    link.run = lost
    with pytest.raises(errors.DelayedError):
        tally.tell(link)
    tally.tell(link)
    assert [s.runs for s in read(redis).values()] == [1]
    (seconds,) = redis.keys('q_metrics:s*')
    assert [s.runs for s in read(redis, seconds).values()] == [1]
    link.hang_up()
