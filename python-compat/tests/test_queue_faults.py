"""The producer when Redis fails or loses an answer, and when many threads, coroutines or processes use it at once."""

import asyncio
import os
import signal
import threading
import time
import types

import msgpack
import pytest
import redis.asyncio
from conftest import Server
from producing import GO, Blocking, pending
from redis.backoff import NoBackoff
from redis.retry import Retry

import godelayed
import godelayed.aio
from godelayed import FullError, Queue, UnavailableError, UnknownError, WaitTimeoutError, link
from godelayed.coalescer import Coalescer


def test_a_script_that_redis_has_forgotten(queue, redis):
    q = queue()
    q.delay(GO, 1)
    redis.script_flush()
    q.delay(GO, 2)
    assert redis.llen('mail') == 2


def test_a_full_redis(queue, redis):
    redis.config_set('maxmemory', 1)
    try:
        for q in (queue(), queue().options(countdown=5), queue().options(unique=5), queue().options(group='x')):
            with pytest.raises(FullError, match='Redis refuses writes'):
                q.delay(GO, [1])
    finally:
        redis.config_set('maxmemory', 0)
    assert redis.dbsize() == 0


def test_an_answer_that_nobody_expects(queue, redis):
    redis.set('mail', 'text')
    with pytest.raises(godelayed.DelayedError, match='WRONGTYPE') as e:
        queue().delay(GO, 1)
    assert type(e.value) is godelayed.DelayedError
    redis.delete('mail', 'mail_noti')


def test_redis_is_down(own_server):
    client = own_server.client(retry=Retry(NoBackoff(), 0))  # the user decides how long redis-py tries to connect
    q = Queue('mail', client).options(keep_result=60)
    ref = q.delay(GO, 1)
    own_server.stop()
    for ask in (lambda: q.delay(GO, 1), ref.state, ref.cancel):
        with pytest.raises(UnavailableError, match='nothing was sent'):
            ask()
    with pytest.raises(WaitTimeoutError, match='Redis could not be asked: look: nothing was sent'):
        ref.result(timeout=0.05)
    own_server.start()
    assert len(q) == 0  # the first one was lost with the server
    client.close()


class Proxy:
    """Stands between client and server, and loses one reply: the first one after a command that contains the given
    bytes."""

    def __init__(self, port, marker):
        import socket

        self.marker, self.lost, self.seen = marker, False, 0
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.target = port
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        import socket

        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(('127.0.0.1', self.target))
            threading.Thread(target=self.pump, args=(client, server), daemon=True).start()

    def pump(self, client, server):
        import select

        cut = False
        with client, server:
            while True:
                for s in select.select([client, server], [], [])[0]:
                    try:
                        data = s.recv(1 << 16)
                    except OSError:
                        return
                    if not data:
                        return
                    if s is client:
                        if self.marker in data:
                            self.seen += 1
                            cut = not self.lost
                        server.sendall(data)
                    elif cut:
                        self.lost = True
                        return
                    else:
                        client.sendall(data)


@pytest.mark.parametrize('kind', ['sync', 'aio'])
def test_questions_change_nothing(server, redis, kind):
    """After a lost answer to a question, nothing has changed, and a caller that waits for a result goes on waiting,
    from the first look on."""
    ref = Queue('mail', redis).options(keep_result=60).delay(GO, 1)
    ref.state()  # now Redis knows the script
    proxy = Proxy(server.port, ref.id.encode())
    if kind == 'sync':
        client = redis_client(proxy.port)
        q = Queue('mail', client)
    else:
        q = Blocking(proxy.port, 'mail')
    with pytest.raises(UnavailableError, match='look: Redis did not answer'):
        q.ref(ref.id).state()
    proxy.lost = False
    redis.delete('mail', 'mail_noti')
    redis.hset('mail_results', ref.id, msgpack.packb({'reason': 'completed', 'result': msgpack.packb(7)}))
    redis.zadd('mail_completed', {ref.id: 1 << 42})
    assert q.ref(ref.id).result(timeout=60) == 7
    assert proxy.lost
    proxy.listener.close()
    (client if kind == 'sync' else q).close()


@pytest.mark.parametrize('kind', ['sync', 'aio'])
def test_a_lost_reply_is_not_sent_again(server, redis, kind):
    proxy = Proxy(server.port, b'marker-in-the-task')
    Queue('mail', redis).delay(GO)  # now Redis knows the script
    redis.delete('mail', 'mail_noti')
    if kind == 'sync':
        client = redis_client(proxy.port)
        q = Queue('mail', client)
    else:
        q = Blocking(proxy.port, 'mail')
    with pytest.raises(UnknownError, match='may or may not'):
        q.delay(GO, 'marker-in-the-task')
    assert proxy.seen == 1
    assert redis.llen('mail') == 1
    q.delay(GO, 'next')
    assert redis.llen('mail') == 2
    proxy.listener.close()
    (client if kind == 'sync' else q).close()


def redis_client(port):
    return redis.Redis(port=port, retry=Retry(NoBackoff(), 5))


def test_threads_share_round_trips(server, redis):
    client = server.client()
    q = Queue('mail', client)
    q.delay(GO)
    redis.config_resetstat()
    start = threading.Barrier(50)
    ids = []

    def produce(n):
        start.wait()
        ids.extend([q.delay(GO, n, i).id for i in range(40)])

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(m[2]['id'] for m in pending(redis)[1:]) == sorted(ids)
    assert len(ids) == 2000
    by_thread = {}
    for m in pending(redis)[1:]:
        n, i = msgpack.unpackb(m[1])
        assert by_thread.setdefault(n, 0) == i, 'the tasks of a thread keep their order'
        by_thread[n] += 1
    assert redis.info('commandstats')['cmdstat_evalsha']['calls'] < 2000
    client.close()


def test_threads_with_locks_wait_for_a_connection(server, redis):
    client = server.client(max_connections=8)
    q = Queue('mail', client).options(unique=60)
    errors = []

    def produce(n):
        try:
            q.delay(GO, n)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert redis.llen('mail') == 50
    client.close()


@pytest.mark.parametrize('options', [{}, {'countdown': 60}, {'unique': 60}])
def test_a_thousand_at_once_in_asyncio(server, redis, options):
    async def run():
        async with redis_asyncio(server) as client:
            q = godelayed.aio.Queue('mail', client).options(**options)
            return await asyncio.gather(*(q.delay(GO, i) for i in range(1000)))

    redis.config_resetstat()
    refs = asyncio.run(run())
    assert len({r.id for r in refs}) == redis.llen('mail') + redis.zcard('mail_scheduled') == 1000
    calls = sum(redis.info('commandstats').get('cmdstat_' + c, {'calls': 0})['calls'] for c in ('evalsha', 'eval'))
    if not options:
        assert calls <= 5
    assert redis.info('stats')['total_connections_received'] < 60


def redis_asyncio(server):
    return redis.asyncio.Redis(port=server.port)


def test_a_call_that_is_cancelled_before_it_is_sent(server, redis):
    async def run():
        async with redis_asyncio(server) as client:
            q = godelayed.aio.Queue('mail', client)
            tasks = [asyncio.ensure_future(q.delay(GO, i)) for i in range(10)]
            await asyncio.sleep(0)  # all have joined, but none is sent
            tasks[3].cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(found[3], asyncio.CancelledError)
            return found

    asyncio.run(run())
    assert [msgpack.unpackb(m[1])[0] for m in pending(redis)] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_one_queue_in_two_loops(server, redis):
    client = redis_asyncio(server)
    q = godelayed.aio.Queue('mail', client)

    async def run():
        await asyncio.gather(*(q.delay(GO, i) for i in range(10)), q.options(unique=5).delay(GO))
        await client.aclose()

    asyncio.run(run())
    redis.delete('mail_locks')
    asyncio.run(run())
    assert redis.llen('mail') == 22


@pytest.mark.filterwarnings('ignore:.*multi-threaded')  # pytest-xdist has a thread
def test_a_process_that_forks(server, redis):
    import multiprocessing

    client = server.client()
    q = Queue('mail', client)
    q.delay(GO)
    child = multiprocessing.get_context('fork').Process(target=q.delay, args=(GO, 1))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert redis.llen('mail') == 2
    client.close()


@pytest.mark.filterwarnings('ignore:.*multi-threaded')
def test_a_process_that_forks_while_a_thread_enqueues():
    """That thread does not exist in the child, so the child must not wait for it."""
    import multiprocessing

    parent, began, go = os.getpid(), threading.Event(), threading.Event()

    def send(_):
        if os.getpid() == parent:
            began.set()
            assert go.wait(60)

    coalescer = Coalescer(send)
    thread = threading.Thread(target=coalescer.enqueue, args=(b'1',))
    thread.start()
    assert began.wait(60)
    child = multiprocessing.get_context('fork').Process(target=coalescer.enqueue, args=(b'2',))
    child.start()
    child.join(20)
    code = child.exitcode
    child.kill()
    go.set()
    thread.join()
    assert code == 0


@pytest.fixture
def replicated(tmp_path):
    """A master with a replica that is up to date."""
    folders = [tmp_path / 'master', tmp_path / 'replica']
    for folder in folders:
        folder.mkdir()
    master = Server(folders[0], '--repl-diskless-sync-delay', '0')
    replica = Server(folders[1], '--replicaof', f'127.0.0.1 {master.port}')
    with master.client() as c:
        until = time.monotonic() + 20
        while c.info('replication').get('slave0', {}).get('state') != 'online':
            assert time.monotonic() < until
            time.sleep(0.005)  # between two looks
    yield master, replica
    replica.process.send_signal(signal.SIGCONT)
    replica.stop()
    master.stop()


@pytest.mark.parametrize('kind', ['sync', 'aio'])
def test_replicas_must_have_a_task(kind, replicated):
    master, replica = replicated
    q = Queue('mail', master.client(), wait=1) if kind == 'sync' else Blocking(master.port, 'mail', wait=1)
    with master.client() as c, replica.client() as r:
        for queue in (q, q.options(countdown=60), q.options(unique=60), q.options(group='x')):
            c.script_flush()
            c.config_resetstat()
            queue.delay(GO, [1])
            assert (
                c.info('commandstats')['cmdstat_wait']['calls'] == 2
            )  # behind EVALSHA, which finds no script, and EVAL
        assert r.llen('mail') == 2
    if kind == 'aio':
        q.close()


def test_too_few_replicas_have_a_task(replicated):
    master, replica = replicated

    async def delay():
        async with redis.asyncio.Redis(port=master.port, socket_timeout=1) as client:
            await godelayed.aio.Queue('mail', client, wait=1).delay(GO, 2)

    replica.process.send_signal(signal.SIGSTOP)
    with master.client(socket_timeout=1) as client:
        with pytest.raises(UnknownError, match='it was enqueued, and 0 of 1 replicas'):
            Queue('mail', client, wait=1).delay(GO, 1)
        with pytest.raises(UnknownError, match='it was enqueued, and 0 of 1 replicas'):
            asyncio.run(delay())
        assert client.llen('mail') == 2
        client.acl_setuser('default', enabled=True, nopass=True, categories=['+@all'], commands=['-wait'])
        with pytest.raises(UnknownError, match='no permissions'):
            Queue('mail', client, wait=1).delay(GO, 3)


@pytest.mark.parametrize(('timeout', 'ms'), [(None, 4000), (1, 800), (2.5, 2000), (5, 4000), (60, 4000), (0.0001, 1)])
def test_how_long_replicas_are_waited_for(timeout, ms):
    """Redis answers before the connection's timeout, and within 4 s."""
    assert link.patience(types.SimpleNamespace(socket_timeout=timeout)) == ms


@pytest.mark.parametrize(('most', 'calls'), [(1, 1), (3, 1), (20, 10), (64, 32), (66, 32), (2**31, 32)])
def test_calls_at_a_time_leave_connections_to_others(most, calls):
    """A pool that has no connection left refuses to give one."""
    assert link.most_calls(types.SimpleNamespace(connection_pool=types.SimpleNamespace(max_connections=most))) == calls


@pytest.mark.parametrize('wait', [-1, True, '1', 1.5])
def test_a_number_of_replicas_that_cannot_be(queue, wait):
    with pytest.raises(godelayed.ArgumentsError, match='wait'):
        queue(wait=wait)
