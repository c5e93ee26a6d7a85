"""Workers that die, replies that are lost, a Redis that is unreachable."""

import contextlib
import os
import random
import signal
import socket
import threading
import time

import msgpack
import pytest
from working import Command, control, counters, info_of, left, notes, ran, runs, wait_for

import godelayed
from godelayed.registry import Registry
from godelayed.worker import Worker
from godelayed.worker.contact import Contact
from godelayed.worker.heartbeat import Heartbeat
from godelayed.worker.lane import Lane
from godelayed.worker.link import Source
from godelayed.worker.store import Store
from godelayed.worker.sweep import Sweeping
from godelayed.worker.tally import Tally

QUICK = ('--heartbeat-life', '1', '--sweep-interval', '0.1')


def test_killed_worker(q, redis, both):
    q.options(task_id='x').delay('worker_tasks:hold')
    first = both(*QUICK)
    runs(redis, 'holding')
    first.kill()
    second = both(*QUICK)
    wait_for(lambda: ran(redis).count('holding') == 2, 'another worker to run it')
    # The set may still name the first worker, which holds nothing any more.
    (claim,) = [c for w in redis.smembers('q_workers') for c in redis.hvals(f'q_processing:{w.decode()}')]
    meta = msgpack.unpackb(claim)[4]
    assert (meta['d'], meta.get('al')) == (1, None)
    notes(redis).rpush('go', 1, 1)  # the first worker's processes may live for a moment after it
    wait_for(lambda: counters(redis).get('processed') == 1, 'its end')
    second.stop()
    assert left(redis) == set()
    assert counters(redis) == {'processed': 1, 'swept': 1}


def test_processes_die_with_their_worker(q, redis, start):
    q.delay('worker_tasks:sleep_on')
    w = start('--concurrency', '2')
    wait_for(lambda: ran(redis), 'the task to start')
    pid = int(ran(redis)[0].split()[1])
    w.kill()
    wait_for(lambda: is_gone(pid), 'the process to die')


def is_gone(pid):
    """Returns whether a process has ended."""
    try:
        with open(f'/proc/{pid}/stat') as f:
            return f.read().rpartition(')')[2].split()[0] == 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_killed_again_and_again(q, redis, start):
    """Only deaths that were certainly alone lead to the archive. The first death of a task that was no suspect is not
    one of them."""
    q.options(task_id='x').delay('worker_tasks:hold')
    for n in range(4):
        w = start(*QUICK)
        wait_for(lambda n=n: len(ran(redis)) == n + 1, 'the task to start')
        w.kill()
    w = start(*QUICK)
    wait_for(lambda: redis.zcard('q_archived'), w.output)
    w.stop()
    info = info_of(redis, 'x')
    assert (info['reason'], info['deaths']) == ('deaths', 4)


@pytest.mark.parametrize('n', [1, 2])
def test_nursery_is_killed(q, redis, start, n):
    """All processes die with it, because others run their tasks. None has died alone, unless there was only one."""
    for _ in range(n):
        q.delay('worker_tasks:sleep_on')
    w = start('--concurrency', str(n))
    wait_for(lambda: len(ran(redis)) == n, 'the tasks to start')
    control(redis, 'paused', '1')  # the next worker leaves the tasks alone
    w.sees('paused; no more')
    with open(f'/proc/{w.process.pid}/task/{w.process.pid}/children') as f:
        children = f.read().split()
    os.kill(int(children[0]), signal.SIGKILL)
    pids = [int(said.split()[1]) for said in ran(redis)]
    wait_for(lambda: all(map(is_gone, pids)), 'the processes to die')
    wait_for(lambda: w.output().count(' started: queues') == 2, w.output)
    assert 'forks worker processes' in w.output()
    assert 'starting another worker' in w.output()
    w.stop()
    metas = [msgpack.unpackb(m)[4] for m in redis.lrange('q', 0, -1)]
    assert [(m['d'], m.get('al')) for m in metas] == [(1, 1 if n == 1 else None)] * n
    redis.rpush('q_noti', 1)  # the wait that was cut off may have taken one; the next worker needs one


def test_stopped_worker_does_not_start_what_may_be_lost(q, redis, start):
    """A worker that was suspended for longer than its heartbeat lives finds that its claims were given to others."""
    q.options(task_id='x').delay('worker_tasks:hold')
    first = start(*QUICK, '--concurrency', '1')
    runs(redis, 'holding')
    first.send(signal.SIGSTOP)
    second = start(*QUICK, '--concurrency', '1')
    wait_for(lambda: ran(redis).count('holding') == 2, 'the other worker')
    first.send(signal.SIGCONT)
    first.sees('1 claims lost')
    notes(redis).rpush('go', 1, 1)
    wait_for(lambda: counters(redis).get('processed') == 1, 'the end')
    for w in (first, second):
        w.stop()
    assert left(redis) == set()
    assert counters(redis) == {'processed': 1, 'swept': 1, 'lost': 1}


class Proxy:
    """Passes commands on to Redis, and loses the replies to some scripts together with the connection."""

    def __init__(self, port, share):
        self.port, self.share, self.lost = port, share, 0
        self.socket = socket.create_server(('127.0.0.1', 0))
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f'redis://127.0.0.1:{self.socket.getsockname()[1]}/0'

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            server = socket.create_connection(('127.0.0.1', self.port))
            threading.Thread(target=self.serve, args=(client, server), daemon=True).start()

    def serve(self, client, server):
        doomed = threading.Event()

        def answers():
            try:
                while b := server.recv(1 << 16):
                    if doomed.is_set():
                        break
                    client.sendall(b)
            except OSError:
                pass
            for s in (client, server):
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
                s.close()

        threading.Thread(target=answers, daemon=True).start()
        try:
            while b := client.recv(1 << 20):
                if b'EVALSHA' in b and random.random() < self.share:
                    doomed.set()
                    self.lost += 1
                server.sendall(b)
        except OSError:
            pass
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize('processes', ['1', '0'])
def test_lost_replies(q, redis, server, tmp_path, processes):
    """No task is lost, and none runs twice: the worker finds what a lost claim brought, and tells Redis again how
    claims ended."""
    proxy = Proxy(server.port, 0.2)
    for i in range(300):
        q.options(keep_result=60 if i % 3 == 0 else 0).delay('worker_tasks:say', i)
    args = (
        '--redis-url',
        proxy.url,
        '--processes',
        processes,
        '--concurrency',
        '4',
        '--heartbeat-life',
        '4',
        '--prefetch',
        '2',
        '--no-sweeper',
    )
    w = Command(server, tmp_path / 'log', '--queue', 'q', *args)
    try:
        wait_for(lambda: len(ran(redis)) >= 300, lambda: f'{len(ran(redis))} of 300\n{w.output()[-3000:]}')
        proxy.share = 0
        w.stop()
    finally:
        w.kill()
        proxy.socket.close()
    assert sorted(ran(redis)) == sorted(f'say {i}' for i in range(300))
    assert proxy.lost > 5
    assert left(redis) == {'q_completed', 'q_results'}
    assert redis.zcard('q_completed') == 100


def test_redis_restarts(own_server, tmp_path):
    with own_server.client() as redis:
        q = godelayed.Queue('q', redis)
        w = Command(own_server, tmp_path / 'log', '--queue', 'q', '--heartbeat-life', '1', '--concurrency', '1')
        try:
            q.delay('worker_tasks:say', 1)
            runs(redis, 'say 1')
            own_server.stop()
            w.sees('cannot')
            own_server.start()
            q.delay('worker_tasks:say', 2)
            wait_for(lambda: ran(redis)[-1:] == ['say 2'], 'the worker to carry on')
            w.stop()
            assert left(redis) == set()
            assert w.output().count('cannot claim') <= 2
        finally:
            w.kill()


def test_legacy_claims_are_swept(redis, both):
    redis.hset('q_processing', '123', msgpack.packb(['worker_tasks:say', ['swept']]))
    redis.hset('q_processing', '456', msgpack.packb(['worker_tasks:say', ['alive']]))
    redis.set('456', 1)
    w = both(*QUICK)
    runs(redis, 'say swept')
    w.stop()
    assert left(redis) == {'q_processing', 'q_deaths'}
    assert redis.hkeys('q_processing') == [b'456']
    assert 72 * 3600 - 600 < redis.ttl('q_deaths') <= 72 * 3600


def test_sweeper_mends_and_trims(redis, start):
    past, future = 1, 1 << 42
    redis.hset('q_tasks', mapping={'old': b'm', 'new': b'm', 'parked': b'm'})
    redis.hset('q_info', mapping={'old': b'\x80', 'new': b'\x80', 'parked': msgpack.packb({'function': 'a:b'})})
    redis.zadd('q_archived', {'old': past, 'new': future})
    redis.zadd('q_parked', {'parked': past})
    redis.zadd('q_completed', {'over': past})
    redis.hset('q_results', 'over', b'\x80')
    redis.hset('q_locks', mapping={'k:a': f'{past} x', '#x': f'{past} x'})
    redis.zadd('q_revoked', {'y': past})
    redis.rpush('q_noti', 1, 1)
    w = start(*QUICK)
    wait_for(lambda: {b.decode() for b in redis.zrange('q_archived', 0, -1)} == {'new', 'parked'}, 'the archive')
    wait_for(lambda: not redis.exists('q_noti', 'q_locks', 'q_revoked', 'q_completed', 'q_results'), 'the rest')
    assert info_of(redis, 'parked')['reason'] == 'parked too long'
    w.stop()


def test_contact():
    c = Contact(1000)
    assert c.unbroken() is None
    with c.call():
        pass
    since = c.unbroken()
    assert since is not None
    with c.call():
        assert c.unbroken() == since
    c.broken()
    assert c.unbroken() is None
    with pytest.raises(OSError, match='away'), c.call():
        raise OSError('away')
    assert c.unbroken() is None


def test_counters_follow_redis(redis, monkeypatch):
    now, _ = redis.time()
    there = time.time
    monkeypatch.setattr(time, 'time', lambda: there() + 3 * 86400)  # the clock of this machine is wrong
    lane = Lane(Store(Source(redis), '', 'q', 'w'), False)
    beat = Heartbeat([lane], 15.0, 'host', Contact(15.0), lambda: None)
    beat.beat()
    assert lane.store._stats in {lane.store.keys.stats_of(now), lane.store.keys.stats_of(now + 60)}
    assert abs(lane.now() / 1000 - now) < 60
    lane.store.unregister(beat.link)
    beat.link.hang_up()


@pytest.mark.parametrize('skew', [3600, -3600])
def test_deaths_follow_redis(redis, skew):
    """Redis's clock gives the time of a death, even if the clock of the sweeper's machine is wrong by an hour."""
    store = Store(Source(redis), '', 'q', 'w')
    store.skew = float(skew)
    redis.hset('q_processing:dead', '1-1', msgpack.packb(['t:f', [], {}, 0, {'id': 'x'}]))
    sweeping = Sweeping([store], 'w', 15.0, 15.0, Contact(15.0), 1, 1)
    before = store.now()
    assert sweeping._sweep_hash(store, 'dead') == 1
    meta = msgpack.unpackb(redis.lpop('q'))[4]
    assert (meta['d'], before <= meta['da'] <= store.now()) == (1, True)
    sweeping.link.hang_up()
    redis.delete('q_noti')


def test_heartbeats_go_on_while_there_is_much_to_tell(redis, monkeypatch):
    """On a distant Redis, telling metrics can take longer than a heartbeat lives. The last telling is not left out."""
    telling, go, told = threading.Event(), threading.Event(), []

    def tell(tally, link):
        told.append(tally)
        telling.set()
        assert go.wait(60)

    monkeypatch.setattr(Tally, 'tell', tell)
    w = Worker(redis, ['q'], registry=Registry(), processes=False, heartbeat_life=1)
    t = threading.Thread(target=w.run)
    t.start()
    try:
        assert telling.wait(60)
        (lane,) = w._lanes
        for _ in range(3):
            before = lane.confirmed
            wait_for(lambda before=before: lane.confirmed != before, 'another heartbeat')
        assert len(told) == 1  # one telling at a time
    finally:
        go.set()
        before = len(told)
        w.stop()
        t.join(60)
    assert not t.is_alive()
    assert len(told) > before
