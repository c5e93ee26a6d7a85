"""The producer against a Redis: where tasks come to lie, and what is refused."""

import asyncio
import datetime
import sys
import threading
import time
from importlib import resources

import msgpack
import pytest
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

import godelayed
import godelayed.aio
import godelayed.scripts
from godelayed import ArgumentsError, BatchError, DuplicateError, FullError, Queue, UnavailableError, UnknownError, call
from godelayed.scripts import Script, script

UTC = datetime.timezone.utc
GO, PY = 'example.com/app/mail.Welcome', 'mail.tasks:welcome'


class Blocking:
    """godelayed.aio by the names and manners of the synchronous package, so that tests run on both."""

    def __init__(self, port, name, **how):
        self.client = redis.asyncio.Redis(port=port)
        self.queue = godelayed.aio.Queue(name, self.client, **how)
        self.loop = asyncio.new_event_loop()

    def options(self, **options):
        other = object.__new__(Blocking)
        other.loop, other.client, other.queue = self.loop, self.client, self.queue.options(**options)
        return other

    def _run(self, what):
        return self.loop.run_until_complete(what)

    def delay(self, *args, **kwargs):
        return BlockingRef(self, self._run(self.queue.delay(*args, **kwargs)))

    def delay_many(self, calls):
        return [BlockingRef(self, r) for r in self._run(self.queue.delay_many(calls))]

    def ref(self, id):
        return BlockingRef(self, self.queue.ref(id))

    def __len__(self):
        return self._run(self.queue.length())

    def close(self):
        self._run(self.client.aclose())
        self.loop.close()


class BlockingRef:
    def __init__(self, blocking, ref):
        self._blocking, self._ref, self.id = blocking, ref, ref.id

    def __getattr__(self, name):
        return lambda *args, **kwargs: self._blocking._run(getattr(self._ref, name)(*args, **kwargs))


@pytest.fixture(params=['sync', 'aio'])
def queue(request, server):
    """Makes queues of either kind."""
    made = []
    if request.param == 'sync':
        client = server.client()
        yield lambda name='mail', **how: Queue(name, client, **how)
        client.close()
        return

    def make(name='mail', **how):
        made.append(Blocking(server.port, name, **how))
        return made[-1]

    yield make
    for q in made:
        q.close()


def pending(redis, name='mail'):
    return [msgpack.unpackb(m, strict_map_key=False) for m in redis.lrange(name, 0, -1)]


def test_delay(queue, redis):
    ref = queue().delay(GO, 42, 'en')
    [[path, payload, meta]] = pending(redis)
    assert (path, msgpack.unpackb(payload), meta['n'], meta['id']) == (GO, [42, 'en'], 2, ref.id)
    assert abs(meta['at'] - time.time() * 1000) < 60_000
    assert redis.lrange('mail_noti', 0, -1) == [b'1']
    assert len(queue()) == 1


def test_python_tasks(queue, redis):
    q = queue()
    q.delay(PY, 42, lang='en')
    q.delay(PY)
    assert pending(redis) == [[PY, [42], {'lang': 'en'}], [PY]]
    assert redis.get('mail_mode') == b'plain'
    with pytest.raises(godelayed.DelayedError, match='open it with extended=False'):
        queue(extended=True).delay(PY, 1)


def test_extended_python_tasks(queue, redis):
    ref = queue('x', extended=True).options(retry=2, keep_result=60).delay(PY, 42, lang='en')
    [[path, args, kwargs, retry, meta]] = pending(redis, 'x')
    assert (path, args, kwargs, retry, meta['id'], meta['n'], meta['kr']) == (PY, [42], {'lang': 'en'}, 2, ref.id, 2, 60_000)


def test_registered_functions_and_others(queue, redis):
    def welcome():
        pass

    with pytest.raises(ArgumentsError, match='is not registered'):
        queue().delay(welcome)
    welcome.delayed_path = PY
    queue().delay(welcome, 1)
    assert pending(redis) == [[PY, [1]]]
    for path in ('', ':x', 'x:', 'a:b:c', 'x' * 513, '\ud800'):
        with pytest.raises(ArgumentsError):
            queue().delay(path)


def test_prefix_and_legacy(queue, redis):
    queue(prefix='app:').delay(GO)
    assert redis.llen('app:mail') == 1
    queue('old', legacy=True).delay(PY, 1)
    assert pending(redis, 'old') == [[PY, [1]]]
    with pytest.raises(ArgumentsError, match='legacy'):
        queue(legacy=True, prefix='app:')


def test_scheduled(queue, redis):
    soon = queue().options(countdown=3600).delay(GO, 1)
    at = datetime.datetime(2040, 1, 1, tzinfo=UTC)
    late = queue().options(eta=at).delay(GO, 2)
    python = queue().options(countdown=datetime.timedelta(hours=2)).delay(PY, 2)
    assert redis.zscore('mail_scheduled', late.id) == at.timestamp() * 1000
    assert 3_590_000 < redis.zscore('mail_scheduled', soon.id) - time.time() * 1000 < 3_660_000
    assert set(redis.hkeys('mail_tasks')) == {soon.id.encode(), late.id.encode(), python.id.encode()}
    queue().options(countdown=0).delay(GO, 3)
    queue().options(countdown=-5).delay(GO, 4)
    assert redis.llen('mail') == 2
    assert soon.state() == 'scheduled'


def test_many(queue, redis):
    refs = queue().delay_many([call(GO, i) for i in range(2500)])
    assert [m[2]['id'] for m in pending(redis)] == [r.id for r in refs]
    assert [msgpack.unpackb(m[1])[0] for m in pending(redis)] == list(range(2500))
    assert queue().delay_many([]) == []
    with pytest.raises(ArgumentsError, match='call 1: '):
        queue().delay_many([call(GO, 1), call(GO, object()), call(GO, 1)])
    with pytest.raises(ArgumentsError, match='an id names one task'):
        queue().options(task_id='x').delay_many([call(GO, 1), call(GO, 1)])
    assert redis.llen('mail') == 2500
    refs = queue().options(countdown=60).delay_many([call(GO, i) for i in range(1500)])
    assert redis.zcard('mail_scheduled') == len(refs) == 1500


def test_batches_have_a_size(queue, redis):
    calls = [call(GO, b'x' * 1_000_000) for _ in range(20)]
    redis.config_resetstat()
    queue().delay_many(calls)
    runs = redis.info('commandstats')
    assert runs.get('cmdstat_evalsha', {'calls': 0})['calls'] == 3  # of 8, 8 and 4
    assert redis.llen('mail') == 20
    redis.delete('mail', 'mail_noti')


def test_task_id(queue, redis):
    q = queue().options(task_id='invoice-17')
    assert q.delay(GO, 1).id == 'invoice-17'
    with pytest.raises(DuplicateError, match="a task with id 'invoice-17' is there already") as e:
        q.delay(GO, 2)
    assert e.value.id == 'invoice-17'
    assert q.options(on_conflict='skip').delay(GO, 2).id == 'invoice-17'
    assert len(pending(redis)) == 1


def test_unique(queue, redis):
    q = queue().options(unique=60)
    first = q.delay(GO, 42, 'en')
    with pytest.raises(DuplicateError, match='holds its lock') as e:
        q.delay(GO, 42, 'en')
    assert e.value.id == first.id
    assert q.options(on_conflict='skip').delay(GO, 42, 'en').id == first.id
    q.delay(GO, 42, 'de')
    q.delay(GO, 42, ['en'])
    second = q.options(on_conflict='replace').delay(GO, 42, 'en')
    assert second.id != first.id
    assert redis.zscore('mail_revoked', first.id) is not None
    lock = pending(redis)[0][2]['uk']
    assert redis.hget('mail_locks', lock).decode() == second.id
    with pytest.raises(DuplicateError, match='task 1: '):
        q.delay_many([call(GO, 7), call(GO, 42, 'en')])
    assert len(pending(redis)) == 4


def test_unique_batches(queue, redis):
    q = queue().options(unique=60)
    q.delay(GO, 170)
    with pytest.raises(BatchError, match='100 of 250 tasks were enqueued: task 170: ') as e:
        q.delay_many([call(GO, i) for i in range(250)])
    assert e.value.sent == 100
    assert redis.llen('mail') == 101
    refs = q.options(on_conflict='skip').delay_many([call(GO, 7), call(GO, 1000), call(GO, 1000)])
    assert refs[1].id == refs[2].id
    assert redis.llen('mail') == 102


def test_debounce(queue, redis):
    q = queue().options(debounce=60, unique_key='index', unique=3600)
    first, second = q.delay(GO, 1), q.delay(GO, 2)
    assert redis.zrange('mail_scheduled', 0, -1) == [second.id.encode()]
    assert first.state() == 'unknown'


def test_front(queue, redis):
    q = queue()
    q.delay(GO, 1)
    q.options(front=True).delay_many([call(GO, 2), call(GO, 3)])
    q.options(front=True).delay(PY, 4)
    assert [m[0] for m in pending(redis)] == [PY, GO, GO, GO]
    assert [msgpack.unpackb(m[1])[0] for m in pending(redis)[1:]] == [2, 3, 1]
    with pytest.raises(ArgumentsError, match='go to the front together'):
        q.options(front=True).delay_many([call(GO, 1)] * 101)


def test_group(queue, redis):
    q = queue().options(group='search', group_grace=3600)
    ref = q.delay(GO, 'tenant', [7, 8])
    q.delay_many([call(GO, 'tenant', [9]), call(GO, 'other', [1]), call(GO, 'tenant', [])])
    groups = redis.zrange('mail_groups', 0, -1)
    assert sorted(redis.llen(b'mail_group:' + g) for g in groups) == [1, 3]
    assert ref.state() == 'aggregating'
    assert ref.info().function == GO
    later = q.options(countdown=60).delay(GO, 'tenant', [1])
    assert later.state() == 'scheduled'


def test_info_of_what_waits(queue):
    ref = queue().options(countdown=3600).delay(GO, 1)
    info = ref.info()
    assert (info.id, info.state, info.function) == (ref.id, 'scheduled', GO)
    assert abs(info.enqueued_at - datetime.datetime.now(UTC)) < datetime.timedelta(minutes=1)
    assert info.due > info.enqueued_at
    assert ref.progress() == (0, 0, '')
    assert queue().ref('nothing').state() == 'unknown'
    with pytest.raises(godelayed.NoIdError):
        queue().ref('').state()


def test_cancel_what_waits(queue, redis):
    ref = queue().options(countdown=3600, unique=60, keep_result=60).delay(GO, 1)
    ref.cancel()
    assert ref.state() == 'canceled'
    assert redis.exists('mail_locks', 'mail_scheduled', 'mail_tasks') == 0
    with pytest.raises(godelayed.CanceledError, match='canceled') as e:
        ref.result(timeout=30)
    assert (e.value.id, e.value.state, e.value.reason) == (ref.id, 'canceled', 'canceled')
    with pytest.raises(godelayed.EndedError):
        ref.cancel()
    silent = queue().options(countdown=3600).delay(GO, 1)
    silent.cancel()
    assert silent.state() == 'unknown'


def test_cancel_what_is_pending(queue, redis):
    ref = queue().delay(GO, 1)
    ref.cancel()
    assert redis.zscore('mail_revoked', ref.id) > time.time() * 1000
    assert int(redis.hget('mail_control', 'version')) > 0


@pytest.mark.parametrize('keyword', ['decode_responses', 'protocol'])
def test_clients_of_every_kind(server, redis, keyword):
    client = server.client(**{keyword: {'decode_responses': True, 'protocol': 2}[keyword]})
    q = Queue('mail', client).options(keep_result=60, unique=9, on_conflict='skip')
    ref = q.delay(GO, b'\xff')
    assert q.delay(GO, b'\xff').id == ref.id
    assert len(q) == 1
    assert ref.state() == 'unknown'
    client.close()


def test_clusters_are_refused(server):
    with pytest.raises(ArgumentsError, match='found redis.asyncio'):
        Queue('mail', redis.asyncio.Redis(port=server.port))
    with pytest.raises(ArgumentsError, match=r'expected a redis.asyncio.Redis, found redis'):
        godelayed.aio.Queue('mail', redis.Redis(port=server.port))
    for kind, of in ((Queue, redis.RedisCluster), (godelayed.aio.Queue, redis.asyncio.RedisCluster)):
        with pytest.raises(ArgumentsError, match='clusters are not supported'):
            kind('mail', object.__new__(of))


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
    client = own_server.client(retry=Retry(NoBackoff(), 0))  # how long redis-py tries to connect is its user's choice
    q = Queue('mail', client).options(keep_result=60)
    ref = q.delay(GO, 1)
    own_server.stop()
    for ask in (lambda: q.delay(GO, 1), ref.state, ref.cancel, lambda: ref.result(timeout=60)):
        with pytest.raises(UnavailableError, match='nothing was sent'):
            ask()
    own_server.start()
    assert len(q) == 0  # the first went with the server
    client.close()


class Proxy:
    """Stands between client and server, and loses one reply: the first one behind a command that holds the given bytes."""

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
def test_a_lost_reply_is_not_sent_again(server, redis, kind):
    proxy = Proxy(server.port, b'marker-in-the-task')
    Queue('mail', redis).delay(GO)  # Redis knows the script
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
            await asyncio.sleep(0)  # all have joined, none is sent
            tasks[3].cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(found[3], asyncio.CancelledError)
            return found

    asyncio.run(run())
    assert [msgpack.unpackb(m[1])[0] for m in pending(redis)] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.skipif(sys.version_info < (3, 10), reason='before Python 3.10 the locks of redis-py belong to one loop')
def test_one_queue_in_two_loops(server, redis):
    client = redis_asyncio(server)
    q = godelayed.aio.Queue('mail', client)

    async def run():
        await asyncio.gather(*(q.delay(GO, i) for i in range(10)), q.options(unique=5).delay(GO))
        await client.aclose()

    asyncio.run(run())
    redis.delete('mail_locks', 'mail_locked')
    asyncio.run(run())
    assert redis.llen('mail') == 22


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


def test_every_script_is_known_by_name():
    files = {f.name[:-4] for f in resources.files('godelayed').joinpath('lua').iterdir()}
    constants = {v.name for v in vars(godelayed.scripts).values() if isinstance(v, Script)}
    assert constants == files
    assert script('ack') is godelayed.scripts.ACK
    with pytest.raises(FileNotFoundError):
        _ = Script('nothing').source
