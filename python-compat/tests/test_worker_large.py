"""Messages that are too large for a worker, and floods of bad ones."""

import re
import time

import msgpack
import pytest
from working import FILED, counters, left, runs, wait_for

import godelayed
from godelayed.worker.lines import Lines

OVERSIZED = b'x' * ((1 << 20) + 4097)


def test_large_messages_are_archived_unread(q, redis, start):
    redis.rpush('q', OVERSIZED)
    redis.rpush('q_noti', 1)
    redis.hset('q_tasks', mapping={'s': OVERSIZED, 'r': OVERSIZED})
    redis.zadd('q_scheduled', {'s': 1000})
    redis.zadd('q_retry', {'r': 1000})
    redis.hset('q_processing:dead', '1-1', OVERSIZED)
    redis.hset('q_processing', 'legacy', OVERSIZED)
    redis.sadd('q_workers', 'dead')
    redis.rpush('q_group:g', OVERSIZED)
    redis.zadd('q_groups', {'g': 1000})
    q.delay('worker_tasks:say', 'hello')
    w = start('--heartbeat-life', '1', '--sweep-interval', '0.2')
    runs(redis, 'say hello')
    wait_for(lambda: redis.zcard('q_archived') == 6, lambda: f'{redis.zcard("q_archived")} are archived\n{w.output()}')
    w.stop()
    assert left(redis) == {'q_archived', *FILED}
    assert redis.hvals('q_tasks') == [OVERSIZED] * 6
    infos = [msgpack.unpackb(i) for i in redis.hvals('q_info')]
    assert {(i['reason'], i['error']) for i in infos} == {
        ('too large', 'expected a message of at most 1052672 bytes, found one of 1052673')
    }
    assert counters(redis)['archived'] == 6


def test_large_tasks_are_not_read(q, redis):
    redis.hset('q_tasks', mapping={'t': OVERSIZED, 's': OVERSIZED})
    redis.zadd('q_archived', {'t': 4e12})
    redis.zadd('q_scheduled', {'s': 4e12})
    info = q.ref('t').info()
    assert (info.state, info.reason) == (godelayed.State.ARCHIVED, 'too large')
    with pytest.raises(godelayed.DelayedError, match='found one of 1052673; delete it'):
        q.ref('t').run_again()
    q.ref('s').cancel()
    q.ref('t').delete()
    assert left(redis) == set()


def test_floods_take_few_lines(redis, start):
    redis.rpush('q', *(b'rubbish %d' % i for i in range(2000)))
    redis.rpush('q_noti', *[1] * 2000)
    began = time.monotonic()
    w = start('--stop-when-empty')
    w.ends()
    lines = [line for line in w.output().splitlines() if 'message archived' in line]
    assert len(lines) <= time.monotonic() - began + 2
    assert sum(int(n[0]) if (n := re.findall(r'\((\d+) since', line)) else 1 for line in lines) == 2000


def test_lines_are_counted():
    lines, out = Lines(), []
    for i in range(250):
        lines.log(('q', 'unknown function', f'm:f{i % 150}'), lambda n, i=i: out.append((i, n)))
    assert out == [(i, 1) for i in range(101)]  # the functions beyond a hundred share a line
    lines.flush(all=False)
    assert len(out) == 101
    lines.flush()
    assert sum(n for _, n in out) == 250
    assert (149, 49) in out
    lines.flush()
    lines.log(('q', 'unknown function', 'm:f1'), lambda n: out.append(('again', n)))
    assert out[-1] == ('again', 1)
    lines.log(('q', 'unparked', ''), lambda n: out.append(('parked', n)), 3)
    lines.log(('q', 'unparked', ''), lambda n: out.append(('parked', n)), 4)
    lines.log(('q', 'unparked', ''), lambda n: out.append(('parked', n)), 5)
    lines.flush()
    assert out[-2:] == [('parked', 3), ('parked', 9)]
    lines.log(('q', 'unparked', ''), lambda n: out.append(('parked', n)), 6)
    lines.flush()
    assert out[-1] == ('parked', 6)
