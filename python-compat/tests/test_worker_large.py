"""Messages that are too large for a worker, and floods of bad ones."""

import re
import time

import msgpack
import pytest
from working import FILED, counters, left, runs, wait_for

import godelayed
from godelayed import asks
from godelayed.keys import Keys
from godelayed.link import run
from godelayed.worker.lines import Lines
from godelayed.worker.link import Source
from godelayed.worker.store import Acked, Store

OVERSIZED = b'x' * ((1 << 20) + 4097)


def test_large_messages_are_archived_unread(q, redis, start):
    redis.rpush('q', OVERSIZED)
    redis.rpush('q_noti', 1)
    redis.hset('q_tasks', mapping={'s': OVERSIZED, 'r': OVERSIZED})
    redis.zadd('q_scheduled', {'s': 1000})
    redis.zadd('q_retry', {'r': 1000})
    redis.hset('q_tasks', 'p', OVERSIZED)
    redis.hset('q_info', 'p', msgpack.packb({'function': 'worker_tasks:say'}))
    redis.zadd('q_parked', {'p': 4e12})
    redis.hset('q_processing:dead', '1-1', OVERSIZED)
    redis.hset('q_processing', 'legacy', OVERSIZED)
    redis.sadd('q_workers', 'dead')
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


SIZE = (1 << 20) + 4096
LARGEST = b'x' * SIZE
F = 'example.com/app.F'


@pytest.fixture
def store(redis):
    """A queue as a living worker sees it, with a link."""
    store = Store(Source(redis), '', 'q', 'w')
    link = store.link()
    store.register(link, 60_000, 'v')
    yield store, link
    store.unregister(link)
    link.hang_up()


def claimed(redis, store, link):
    redis.rpush('q', LARGEST, OVERSIZED)
    redis.rpush('q_noti', 1, 1)
    yield store.claim(link, 1, 1, 0, False, False, Acked()).messages
    yield store.claim(link, 2, 1, 0, False, False, Acked()).messages


def taken_over(redis, store, link):
    redis.hset('q_processing:dead', mapping={'1-1': LARGEST, '1-2': OVERSIZED})
    for token in ('1-1', '1-2'):
        yield [m for _, m in store.claims(link, 'q_processing:dead', [token])[0]]


def due(redis, store, link):
    redis.hset('q_tasks', mapping={'a': LARGEST, 'b': OVERSIZED})
    redis.zadd('q_retry', {'a': 1, 'b': 2})
    left = [size for _, size in store.move(link, 'retry', 10)[1]]
    yield redis.lrange('q', 0, -1)
    yield left


def unparked(redis, store, link):
    redis.hset('q_tasks', mapping={'a': LARGEST, 'b': OVERSIZED})
    redis.zadd('q_parked', {'a': 4e12, 'b': 4e12})
    for batch, id in enumerate('ab', 1):
        yield store.unpark(link, batch, 10, [id]).messages


@pytest.mark.parametrize('read', [claimed, taken_over, due, unparked])
def test_messages_up_to_the_limit_are_read_and_of_others_their_size(redis, store, read):
    """A larger message never leaves Redis, whichever script finds it."""
    assert list(read(redis, *store)) == [[LARGEST], [SIZE + 1]]
    redis.flushdb()


@pytest.mark.parametrize('over', [0, 1])
def test_what_is_kept_of_parked_tasks_is_read_up_to_a_limit(redis, store, over):
    """A hundred infos are read at a time. A task whose function is not read stays parked."""
    note = msgpack.packb({'function': 'm:f', 'error': 'x' * 32_000})
    note = note + b'x' * ((32 << 10) - len(note) + over)
    redis.hset('q_info', 'a', note)
    redis.zadd('q_parked', {'a': 1})
    store, link = store
    assert store.parked_page(link, 0, 100) == [('a', None if over else note)]
    assert store.overdue_parked(link, 1, 100) == [('a', None if over else note)]
    redis.flushdb()


@pytest.mark.parametrize('over', [0, 1])
def test_of_a_task_no_more_is_asked_for_than_a_limit(redis, q, over):
    redis.hset('q_tasks', 'a', b'x' * (SIZE + over))
    redis.zadd('q_archived', {'a': 4e12})
    found = run(asks.look(q._link, Keys('q'), 'a', message=True))
    assert (found.size, found.message) == ((SIZE + 1, None) if over else (0, LARGEST))
    redis.flushdb()


@pytest.mark.parametrize('over', [0, 1])
def test_of_what_is_kept_of_a_task_no_more_is_asked_for_than_a_limit(redis, q, over):
    """A result is at most as large as a message."""
    note = msgpack.packb({'reason': 'failed'})
    note = note + b'x' * ((2 << 20) + (64 << 10) - len(note) + over)
    redis.hset('q_results', 'a', note)
    redis.zadd('q_completed', {'a': 4e12})
    found = run(asks.look(q._link, Keys('q'), 'a'))
    assert found.result == (None if over else note)
    redis.flushdb()


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
    assert out == [(i, 1) for i in range(101)]  # the functions after the first hundred share a line
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


def test_ids_that_are_no_utf_8_stop_no_worker(q, redis, start):
    """They are names that strangers have written. The worker takes them as they are, and its log shows them escaped."""
    odd = b'odd\xff\n'
    redis.hset('q_tasks', mapping={odd: OVERSIZED, odd + b'2': b'no message'})
    redis.zadd('q_retry', {odd: 1000, odd + b'2': 1000})
    redis.hset(b'q_processing:' + odd, odd, OVERSIZED)
    redis.sadd('q_workers', odd)
    w = start('--heartbeat-life', '1', '--sweep-interval', '0.2')
    wait_for(lambda: redis.zcard('q_archived') == 3, lambda: f'{redis.zcard("q_archived")} are archived\n{w.output()}')
    q.delay('worker_tasks:say', 'hello')
    runs(redis, 'say hello')
    w.stop()
    assert left(redis) == {'q_archived', *FILED}
    assert r'odd\udcff\n' in w.output()
