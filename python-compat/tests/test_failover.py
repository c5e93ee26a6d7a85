"""Fail-overs behind one address: the address stays, and the server behind it changes; what a worker has told a server
that has lost it; and sweeps without INFO."""

import asyncio
import contextlib
import os
import select
import socket
import threading
import time

import pytest
import redis as redis_py
from conftest import Server
from redis import asyncio as redis_asyncio
from working import LIMIT, Command, notes, ran, wait_for

import godelayed
import godelayed.aio
from godelayed import CanceledError, UnavailableError, UnknownError, WaitTimeoutError, link
from godelayed.address import client_of

FAILOVERS = int(os.environ.get('FAILOVERS', '5'))


class Proxy:
    """Leads new connections to the server on port, and keeps those that are open."""

    def __init__(self, port):
        self.port = port
        self.cuts = 0  # connections from before the last cut stay open, and pass nothing on
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
            try:
                server = socket.create_connection(('127.0.0.1', self.port))
            except OSError:  # the server is stopped
                client.close()
                continue
            threading.Thread(target=self.pass_on, args=(client, server), daemon=True).start()

    def pass_on(self, client, server):
        cuts = self.cuts
        with client, server, contextlib.suppress(OSError):
            while True:
                for s in select.select([client, server], [], [])[0]:
                    data = s.recv(1 << 16)
                    if not data:
                        return
                    if self.cuts == cuts:
                        (server if s is client else client).sendall(data)


class Pair:
    """A master and its replica behind a proxy."""

    def __init__(self, tmp_path):
        self.servers = []
        for name in ('a', 'b'):
            (tmp_path / name).mkdir()
            self.servers.append(Server(tmp_path / name, '--repl-diskless-sync-delay', '0'))
        self.clients = [s.client() for s in self.servers]
        self.proxy = Proxy(self.servers[0].port)
        self.follow()

    @property
    def master(self):
        return self.clients[0]

    def follow(self):
        """Makes the second server a replica of the first."""
        self.clients[1].replicaof('127.0.0.1', self.servers[0].port)
        wait_for(lambda: self.clients[1].info('replication')['master_link_status'] == 'up', 'the replica')

    def fail_over(self):
        """Promotes the replica, and makes the old master its replica. Nothing is lost. Returns when it was done."""
        a, b = self.clients
        a.execute_command('CLIENT', 'PAUSE', 10_000, 'WRITE')
        offset = a.info('replication')['master_repl_offset']
        wait_for(lambda: b.info('replication')['slave_repl_offset'] >= offset, 'the replica')
        b.replicaof('NO', 'ONE')
        self.proxy.port = self.servers[1].port
        a.replicaof('127.0.0.1', self.servers[1].port)
        a.execute_command('CLIENT', 'UNPAUSE')
        done = time.monotonic()
        self.servers.reverse()
        self.clients.reverse()
        return done

    def stop(self):
        self.proxy.socket.close()
        for c in self.clients:
            c.close()
        for s in self.servers:
            s.stop()


@pytest.fixture
def pair(tmp_path):
    p = Pair(tmp_path)
    yield p
    p.stop()


class Load:
    """Threads that do something again and again, and note when it last succeeded. What fails must say so in order."""

    def __init__(self):
        self.stopped, self.threads, self.done, self.faults = False, [], {}, []

    def start(self, name, work):
        def loop():
            n = 0
            while not self.stopped:
                began = time.monotonic()
                try:
                    work(n)
                    self.done[name] = began
                except (UnavailableError, UnknownError, WaitTimeoutError):
                    time.sleep(0.01)  # as a program that tries again would
                except Exception as e:
                    self.faults.append((name, e))
                    raise
                n += 1

        self.threads.append(threading.Thread(target=loop))
        self.threads[-1].start()

    def since(self, at):
        """Waits until everything has been begun and done after a time, and returns for how long each took."""
        names = set(self.done)
        took = {}

        def all_done():
            for name in names - set(took):
                if self.done[name] >= at:
                    took[name] = time.monotonic() - at
            return len(took) == len(names)

        wait_for(all_done, lambda: f'waited for {names - set(took)}')
        return took

    def stop(self):
        self.stopped = True
        for t in self.threads:
            t.join()


def test_everything_goes_on_after_fail_overs(pair, server, redis, tmp_path):
    """Producers, claims, results and those who wait for them, over connections of which most stay open."""
    url, sent = pair.proxy.url, []
    own = redis_py.Redis.from_url(url)  # a client of the program
    q = godelayed.Queue('q', own)
    made = godelayed.Queue('q', client_of(url, 'url'))
    loop = asyncio.new_event_loop()
    aio = godelayed.aio.Queue('q', client_of(url, 'url', aio=True))
    w = Command(server, tmp_path / 'log', '--queue', 'q', '--redis-url', url, '--concurrency', '2')
    load = Load()

    def say(queue, word):
        def work(n):
            queue.delay('worker_tasks:say', word, n)
            sent.append(f'say {word} {n}')

        return work

    async def say_aio(n):
        await asyncio.gather(*(aio.delay('worker_tasks:say', f'aio{i}', n) for i in range(3)))
        sent.extend(f'say aio{i} {n}' for i in range(3))
        assert await (await aio.options(keep_result=60).delay('worker_tasks:add', n, 1)).result(timeout=20) == n + 1

    def slow(work):
        def slowly(n):
            work(n)
            time.sleep(0.005)

        return slowly

    def wait(n):
        assert made.options(keep_result=60).delay('worker_tasks:add', n, 2).result(timeout=20) == n + 2

    try:
        load.start('own', slow(say(q, 'own')))
        load.start('made', slow(say(made, 'made')))
        load.start('waits', wait)
        load.start('aio', lambda n: loop.run_until_complete(say_aio(n)))
        wait_for(lambda: len(load.done) == 4, 'all')
        longest = {}
        for _ in range(FAILOVERS):
            took = load.since(pair.fail_over())
            longest = {name: max(s, longest.get(name, 0)) for name, s in took.items()}
            pair.follow()
        print('longest until it went on, in seconds:', {name: round(s, 2) for name, s in longest.items()})
        load.stop()
        wait_for(lambda: set(sent) <= set(ran(redis)), lambda: f'lost: {sorted(set(sent) - set(ran(redis)))[:10]}')
        assert load.faults == []
        w.stop()
    finally:
        load.stop()
        w.kill()
        own.close()
        made._link.client.close()
        loop.run_until_complete(aio._link.client.aclose())
        loop.close()


def test_a_worker_that_waits_is_woken_by_the_new_master(pair, server, redis, tmp_path):
    w = Command(server, tmp_path / 'log', '--queue', 'q', '--redis-url', pair.proxy.url, '--concurrency', '1')
    try:
        for n in range(FAILOVERS):
            wait_for(
                lambda: any(c['cmd'] == 'blpop' for c in pair.master.client_list()),
                lambda: f'the wait\n{w.output()}',
            )
            pair.fail_over()
            godelayed.Queue('q', pair.master).delay('worker_tasks:say', n)
            wait_for(lambda n=n: f'say {n}' in ran(redis), lambda: w.output())
            pair.follow()
        w.stop()
    finally:
        w.kill()


@pytest.mark.parametrize('kind', ['sync', 'aio'])
def test_a_subscription_on_an_old_master_is_left(pair, kind, monkeypatch):
    """Whoever waits for a result hears of its end although the old master stays silent: it does not replicate."""
    monkeypatch.setattr(godelayed.ref, 'LOOK_EVERY', 3600.0)
    channel = 'q_ended:x'

    def subscribers():
        return pair.master.pubsub_numsub(channel)[0][1]

    def wait():
        with contextlib.suppress(CanceledError):
            if kind == 'sync':
                with redis_py.Redis.from_url(pair.proxy.url) as client:
                    godelayed.Queue('q', client).ref('x').result(timeout=60)
                return

            async def wait():
                async with redis_asyncio.Redis.from_url(pair.proxy.url) as client:
                    await godelayed.aio.Queue('q', client).ref('x').result(timeout=60)

            asyncio.run(wait())

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_for(subscribers, 'the subscription')
    for _ in range(FAILOVERS):
        pair.fail_over()
        wait_for(subscribers, 'the subscription to the new master')
        pair.follow()
    pair.master.publish(channel, 'canceled')
    waiting.join(LIMIT)
    assert not waiting.is_alive()


def test_who_only_reads_leaves_an_old_master(pair):
    """Nothing that it gets is an error."""
    with redis_py.Redis.from_url(pair.proxy.url) as client:
        q = godelayed.Queue('q', client)
        assert len(q) == 0
        pair.fail_over()
        pair.clients[1].replicaof('127.0.0.1', 1)  # so that the old master knows nothing of what is new
        q2 = godelayed.Queue('q', pair.master)
        q2.delay('worker_tasks:say', 1)
        wait_for(lambda: len(q) == 1, 'the new master')
        pair.clients[1].replicaof('127.0.0.1', pair.servers[0].port)


def test_another_master_is_noticed_by_whoever_dials(pair):
    """The old one does not know that it is none any more, as when it was cut off from the others."""
    with redis_py.Redis.from_url(pair.proxy.url) as client, redis_py.Redis.from_url(pair.proxy.url) as other:
        q = godelayed.Queue('q', client)
        assert len(q) == 0
        pair.clients[1].replicaof('NO', 'ONE')
        pair.proxy.port = pair.servers[1].port
        other.rpush('q', 'x')
        kept = client.connection_pool.get_connection()  # so that the next call dials

        def look():
            return len(q) == 1

        try:
            wait_for(look, 'the new master')
        finally:
            client.connection_pool.release(kept)
        wait_for(look, 'the new master, over the old connection')
        other.flushall()


def test_connections_that_pass_nothing_on_end(server, redis, tmp_path):
    """As when a firewall has forgotten them: there is no end of the connection, and no answer."""
    proxy = Proxy(server.port)
    client = client_of(proxy.url + '?socket_timeout=1', 'url')
    q = godelayed.Queue('q', client)
    args = '--queue', 'q', '--heartbeat-life', '2', '--redis-url', proxy.url, '--concurrency', '1'
    w = Command(server, tmp_path / 'log', *args)
    waiting = threading.Thread(target=lambda: q.ref('x').result())
    try:
        waiting.start()
        wait_for(lambda: redis.pubsub_numsub('q_ended:x')[0][1], 'the subscription')
        q.delay('worker_tasks:say', 1)
        wait_for(lambda: 'say 1' in ran(redis), lambda: w.output())
        proxy.cuts += 1
        own = godelayed.Queue('q', redis)
        own.options(task_id='x', keep_result=60).delay('worker_tasks:add', 1)
        waiting.join(LIMIT)
        assert not waiting.is_alive(), w.output()
        wait_for(lambda: attempt(lambda: q.delay('worker_tasks:say', 2)), 'the producer')
        wait_for(lambda: 'say 2' in ran(redis), lambda: w.output())
        w.stop()
    finally:
        w.kill()
        proxy.socket.close()
        client.close()


def attempt(work):
    try:
        work()
    except (UnavailableError, UnknownError):
        return False
    return True


def test_a_replica_on_purpose_is_read(pair, monkeypatch):
    with pair.servers[1].client() as client:
        q = godelayed.Queue('q', client)
        pair.master.rpush('q', 'x')
        wait_for(lambda: len(q) == 1, 'replication')
        monkeypatch.setattr(link, '_ASK_EVERY', 0.0)
        assert len(q) == 1
        assert len(q) == 1
        assert q._link.epoch == 0
        with pytest.raises(UnavailableError, match='nothing was written, for another server is the master now'):
            q.delay('worker_tasks:say', 1)
        pair.master.delete('q')


def test_what_a_server_has_lost_is_told_again(server, redis, own_server, tmp_path):
    """After FLUSHALL: the announcement, the functions, the status and the entries that the code declares."""
    args = '--queue', 'q', '--heartbeat-life', '2', '--redis-url', own_server.url
    w = Command(server, tmp_path / 'log', *args, module='periodic_tasks')
    with own_server.client() as c, notes(redis) as noted:

        def complete():
            told = {k.decode() for k in c.hkeys('q_functions')}
            status = any(k.endswith(' status') for k in told)
            return c.hexists('delayed_queues', 'q') and len(told) == 2 and status and c.hexists('q_periodic', 'every')

        try:
            for lose in (c.flushall, c.flushall, lambda: (own_server.stop(), own_server.start())):
                wait_for(complete, lambda: f'what the worker tells, found {c.keys()}\n{w.output()}')
                lose()
            wait_for(complete, lambda: f'what the worker tells, found {c.keys()}\n{w.output()}')
            c.delete('delayed_queues')
            wait_for(complete, lambda: f'the announcement, found {c.keys()}\n{w.output()}')
            ticks = int(noted.get('ticks 1') or 0)
            wait_for(lambda: int(noted.get('ticks 1') or 0) > ticks, 'a tick')
            w.stop()
        finally:
            w.kill()


@pytest.mark.parametrize('refused', ['-info', '-info -role'])
def test_tasks_of_killed_workers_come_back_without_info(server, redis, own_server, tmp_path, refused):
    with own_server.client() as c:
        c.execute_command('ACL', 'SETUSER', 'default', *refused.split())
        args = '--queue', 'q', '--heartbeat-life', '1', '--sweep-interval', '0.1', '--redis-url', own_server.url
        q = godelayed.Queue('q', c)
        q.delay('worker_tasks:hold')
        first = Command(server, tmp_path / 'first', *args)
        second = None
        try:
            wait_for(lambda: 'holding' in ran(redis), lambda: first.output())
            first.kill()
            second = Command(server, tmp_path / 'second', *args)
            wait_for(lambda: ran(redis).count('holding') == 2, lambda: second.output())
        finally:
            first.kill()
            if second:
                second.kill()
