"""A Redis Cluster and Sentinels, by their URLs: real servers, a worker, and what happens when a slot or master
moves."""

import asyncio
import contextlib
import subprocess

import pytest
import redis as redis_py
from conftest import Server, free_port
from working import Command, wait_for

import godelayed
from godelayed import ArgumentsError, Delayed, UnavailableError
from godelayed.cluster import Cluster, slot_of

QUEUES = '{a}', '{b}', '{c}'  # one on each node
SAY = 'worker_tasks:say'


class Nodes:
    """A cluster of three masters without replicas, each with a third of the slots."""

    def __init__(self, folder, servers):
        self.servers = servers
        for i in range(3):
            (folder / str(i)).mkdir()
            port = next(p for p in iter(free_port, 0) if p < 55_000)  # nodes talk to one another on that plus 10,000
            options = '--cluster-enabled', 'yes', '--cluster-node-timeout', '10000'
            self.servers.append(Server(folder / str(i), *options, port=port))
        clients = [s.client() for s in self.servers]
        for i, c in enumerate(clients):
            c.execute_command('CLUSTER ADDSLOTSRANGE', i * 16384 // 3, (i + 1) * 16384 // 3 - 1)
            c.execute_command('CLUSTER SET-CONFIG-EPOCH', i + 1)  # or nodes may argue about a slot that moves
            c.execute_command('CLUSTER MEET', '127.0.0.1', self.servers[0].port)
        wait_for(lambda: all(self._knows_all(c) for c in clients), 'the cluster to form')
        self.url = 'redis://' + ','.join(f'127.0.0.1:{s.port}' for s in self.servers)

    def _knows_all(self, client):
        info = client.execute_command('CLUSTER INFO')
        return info['cluster_state'] == 'ok' and info['cluster_size'] == info['cluster_known_nodes'] == '3'

    def node(self, key):
        """Returns a client of the node that had a key at the start, and its number."""
        n = min(slot_of(key) * 3 // 16384, 2)
        return self.servers[n].client(decode_responses=True), n

    def move(self, key, n, to):
        """Moves the slot of a key from one node to another: begins, and goes on when it is asked to."""
        source, target = (self.servers[i].client(decode_responses=True) for i in (n, to))
        slot = slot_of(key)
        ids = source.execute_command('CLUSTER MYID'), target.execute_command('CLUSTER MYID')
        target.execute_command('CLUSTER SETSLOT', slot, 'IMPORTING', ids[0])
        source.execute_command('CLUSTER SETSLOT', slot, 'MIGRATING', ids[1])
        yield
        for k in source.execute_command('CLUSTER GETKEYSINSLOT', slot, 1000):
            source.execute_command('MIGRATE', '127.0.0.1', self.servers[to].port, k, 0, 5000)
        for c in (target, source):
            c.execute_command('CLUSTER SETSLOT', slot, 'NODE', ids[1])


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    servers = []
    try:
        yield Nodes(tmp_path_factory.mktemp('cluster'), servers)
    finally:
        for s in servers:
            s.stop()


@pytest.fixture
def app(cluster):
    for s in cluster.servers:
        s.client().flushall()
    return Delayed(cluster.url, queue='{a}')


def test_calls_go_to_the_node_of_their_queue(app, cluster):
    for name in QUEUES:
        q = app.queue(name)
        q.delay(SAY, 'x')
        q.delay_many([godelayed.call(SAY, 'y')] * 2)
        assert len(q) == cluster.node(name)[0].llen(name) == 3
    assert {cluster.node(name)[1] for name in QUEUES} == {0, 1, 2}


def test_a_queue_needs_a_tag(app):
    with pytest.raises(ArgumentsError, match=r"queue 'mail': expected a tag in its name, such as \{mail\}"):
        app.queue('mail')
    with pytest.raises(ArgumentsError, match="queue 'mail': expected a tag"):
        godelayed.Worker(app.client, ['{a}', 'mail'])
    with pytest.raises(ArgumentsError, match=r"go_queue '\{b\}': expected the tag"):
        godelayed.Worker(app.client, ['{a}'], go_queue='{b}')


def test_a_worker_serves_queues_of_all_nodes(app, cluster, server, tmp_path):
    """It makes tasks pending that are due, and takes over those of a dead worker, on each node."""
    refs = [app.queue(name).options(keep_result=60).delay('worker_tasks:add', i, 1) for i, name in enumerate(QUEUES)]
    refs.append(app.queue('{b}').options(keep_result=60, countdown=0.05).delay('worker_tasks:add', 5, 5))
    node = cluster.servers[cluster.node('{c}')[1]].client()
    app.queue('{c}').options(task_id='left', keep_result=60).delay('worker_tasks:add', 6, 6)
    node.hset('{c}_processing:dead', '1-1', node.lpop('{c}'))
    node.sadd('{c}_workers', 'dead')
    refs.append(app.queue('{c}').ref('left'))
    args = [a for name in QUEUES for a in ('--queue', name)]
    args += ['--heartbeat-life', '1', '--sweep-interval', '0.2', '--redis-url', cluster.url]
    w = Command(server, tmp_path / 'log', *args)
    try:
        assert [r.result(timeout=30) for r in refs] == [1, 2, 3, 10, 12]
        wait_for(lambda: not node.sismember('{c}_workers', 'dead'), 'the dead worker to be forgotten')
    finally:
        w.stop()
    for name in QUEUES:
        assert not cluster.node(name)[0].exists(f'{name}_workers')


def test_asyncio(app):
    async def main():
        q = app.aio_queue('{c}')
        ref = await q.options(keep_result=60).delay('worker_tasks:add', 1, 2)
        await asyncio.gather(*(q.delay(SAY, i) for i in range(50)))
        assert await q.length() == 51
        return ref.id

    id = asyncio.run(main())
    godelayed.Worker(app.client, ['{c}'], registry=_adding(), processes=False, stop_when_empty=True).run()
    assert app.queue('{c}').ref(id).result(timeout=10) == 3


def _adding():
    registry = godelayed.Registry()
    app = Delayed()
    app.task(path='worker_tasks:add', registry=registry)(lambda a, b: a + b)
    app.task(path=SAY, registry=registry)(lambda *_: None)
    return registry


def test_calls_wait_for_a_slot_that_moves_and_follow_it(app, cluster, monkeypatch):
    """No call is lost or made twice: a node that answers that the slot is elsewhere has not run it."""
    q = app.queue('{a}')
    q.delay(SAY, 1)
    _, n = cluster.node('{a}')
    to = (n + 1) % 3
    moving = cluster.move('{a}', n, to)
    next(moving)
    monkeypatch.setattr(godelayed.link, '_MOVING', 0.1)
    with pytest.raises(UnavailableError, match='nothing was run'):
        q.options(task_id='x').delay(SAY, 2)  # it needs keys that are not here, and may be there already
    monkeypatch.setattr(godelayed.link, '_MOVING', 30.0)
    rests = []
    monkeypatch.setattr(godelayed.link.Link, 'rest', staticmethod(lambda _: rests.append(list(moving))))
    q.options(task_id='y').delay(SAY, 3)
    assert len(rests) == 1
    assert len(q) == cluster.servers[to].client().llen('{a}') == 2
    q.delay(SAY, 4)
    assert len(q) == 3
    assert list(cluster.move('{a}', to, n)) == [None]


def test_a_node_that_is_away(app, cluster):
    server = cluster.servers[cluster.node('{b}')[1]]
    q, other = app.queue('{b}'), app.queue('{a}')
    q.delay(SAY)
    other.delay(SAY)
    server.stop()
    try:
        with pytest.raises(UnavailableError):
            q.delay(SAY)
        other.delay(SAY)
        assert len(other) == 2
    finally:
        server.start()
    wait_for(lambda: cluster._knows_all(server.client()), 'the node to be back')
    q.delay(SAY)
    assert len(q) == 1  # it has lost its memory


def test_who_a_cluster_is(cluster):
    c = Delayed(cluster.url).client
    assert isinstance(c, Cluster)
    assert c.ping()
    with pytest.raises(ArgumentsError, match='a cluster has database 0 only'):
        Delayed(cluster.url + '/1')
    with pytest.raises(UnavailableError, match='no node of the cluster says who has'):
        Delayed(f'redis://127.0.0.1:{free_port()},127.0.0.1:{free_port()}').queue('{a}').delay(SAY)


# Sentinel.


@pytest.fixture
def watched(tmp_path):
    """A master, its replica and a Sentinel that watches them: their URL, with a Sentinel that is away, and a client of
    the one that is there."""
    servers = []
    for name in ('master', 'replica'):
        (tmp_path / name).mkdir()
        more = ('--replicaof', '127.0.0.1', str(servers[0].port)) if servers else ()
        servers.append(Server(tmp_path / name, *more))
    for s in servers:
        s.client().config_set('requirepass', 'hunter2', 'masterauth', 'hunter2')
    port = free_port()
    file = tmp_path / 'sentinel.conf'
    file.write_text(
        f'bind 127.0.0.1\nport {port}\nrequirepass hunter3\nsentinel monitor m 127.0.0.1 {servers[0].port} 1\n'
        'sentinel auth-pass m hunter2\nsentinel down-after-milliseconds m 300\nsentinel failover-timeout m 1000\n'
    )
    process = subprocess.Popen([servers[0].binary, str(file), '--sentinel'], stdout=subprocess.DEVNULL)
    sentinel = redis_py.Redis(port=port, password='hunter3', decode_responses=True)

    def knows():
        with contextlib.suppress(redis_py.exceptions.ConnectionError):
            return sentinel.execute_command('SENTINEL MASTER', 'm')['num-slaves'] == 1
        return False

    wait_for(knows, 'the Sentinel to know the replica')
    url = f'redis://:hunter2@127.0.0.1:{port},127.0.0.1:{free_port()}/0?master=m&sentinel_password=hunter3'
    yield url, sentinel
    process.kill()
    process.wait()
    for s in servers:
        s.stop()


def test_sentinels_lead_to_the_master_and_to_its_successor(watched, server, tmp_path):
    """The worker carries on by itself."""
    url, sentinel = watched
    app = Delayed(url, queue='q')
    w = Command(server, tmp_path / 'log', '--queue', 'q', '--heartbeat-life', '1', '--redis-url', url)
    try:
        q = app.queue().options(keep_result=60)
        assert q.delay('worker_tasks:add', 1, 2).result(timeout=30) == 3

        async def add(a, b):
            ref = await app.aio_queue().options(keep_result=60).delay('worker_tasks:add', a, b)
            return await ref.result(timeout=30)

        assert asyncio.run(add(3, 4)) == 7
        master = sentinel.execute_command('SENTINEL GET-MASTER-ADDR-BY-NAME', 'm')

        def failed_over():
            if sentinel.execute_command('SENTINEL GET-MASTER-ADDR-BY-NAME', 'm') != master:
                return True
            with contextlib.suppress(redis_py.exceptions.ResponseError):  # one is under way
                sentinel.execute_command('SENTINEL FAILOVER', 'm')  # again: on a busy machine a Sentinel gives up
            return False

        wait_for(failed_over, 'another master')
        old = redis_py.Redis(port=int(master[1]), password='hunter2', decode_responses=True)

        def follows():
            with contextlib.suppress(redis_py.exceptions.ConnectionError):
                return old.role()[0] == 'slave'
            return False

        wait_for(follows, 'the old master to follow the new one: until then it takes tasks that are lost')

        def added():
            with contextlib.suppress(godelayed.DelayedError):
                return q.delay('worker_tasks:add', 5, 6).result(timeout=30) == 11
            return False

        wait_for(added, w.output)
        assert asyncio.run(add(7, 8)) == 15
    finally:
        w.stop()


@pytest.mark.parametrize(
    ('url', 'why'),
    [
        ('redis://a,b?sentinel_password=x', 'expected the parameter master as well'),
        ('redis://a,,b', 'expected hosts as in a:6379,b:6379'),
        ('redis://,a?master=m', 'expected hosts as in a:6379,b:6379'),
        ('redis://a:x,b', 'special characters'),
        ('redis://a,b/1', 'a cluster has database 0 only'),
        ('redis://a,b?db=1', 'a cluster has database 0 only'),
        ('redis://a,b?protocol=9', 'protocol'),
        ('redis://a,b?master=m&protocol=9', 'protocol'),
        ('unix:///tmp/s?master=m', "unknown parameter 'master'"),
    ],
)
def test_addresses_of_several_servers_that_cannot_be(url, why):
    with pytest.raises(ArgumentsError) as e:
        Delayed(url)
    assert why in str(e.value)


@pytest.mark.parametrize(
    'url',
    [
        'rediss://u:p%40@a,b:6380?ssl_cert_reqs=none',
        'rediss://:p@[::1]:7,b/2?master=m&sentinel_user=u&socket_timeout=2',
    ],
)
def test_addresses_of_several_servers(url):
    client = Delayed(url).client
    kwargs = client.connection_pool.connection_kwargs
    assert kwargs['password'] in ('p@', 'p')
    assert 'SSL' in client.connection_pool.connection_class.__name__
