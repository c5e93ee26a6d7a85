"""What the tests share: a Redis of their own, and checks at the end of each test that uses it."""

import os
import re
import shutil
import socket
import subprocess
import time
import types
from collections import Counter

import msgpack
import pytest
import redis as redis_py
from producing import Blocking
from working import Command

import godelayed
from godelayed.registry import Registry
from godelayed.worker import Worker
from godelayed.worker.lane import Lane
from godelayed.worker.store import Haul


def free_port():
    """Returns a port on which no program listens."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Server:
    """A redis-server of the tests, in a folder of its own."""

    def __init__(self, folder, *options, port=None):
        binary = os.environ.get('REDIS_SERVER', 'redis-server')
        if shutil.which(binary) is None:
            pytest.fail(f'{binary} is not there: set REDIS_SERVER, or run make setup')
        self.folder, self.options, self.binary = folder, options, binary
        self.process = None
        self.port = port or free_port()
        self.start()

    def start(self):
        """Starts the server, or restarts it on the same port."""
        self.process = subprocess.Popen(
            [
                self.binary,
                '--port',
                str(self.port),
                '--bind',
                '127.0.0.1',
                '--save',
                '',
                '--appendonly',
                'no',
                *self.options,
            ],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        until = time.monotonic() + 30
        while True:
            try:
                with self.client() as c:
                    c.ping()
                return
            except redis_py.exceptions.ConnectionError:
                if self.process.poll() is not None or time.monotonic() > until:
                    pytest.fail(f'redis-server does not answer on port {self.port}')
                time.sleep(0.01)  # between two looks

    def stop(self):
        """Kills the server."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    @property
    def url(self):
        return f'redis://127.0.0.1:{self.port}/0'

    def client(self, **options):
        """Returns a new client."""
        return redis_py.Redis(host='127.0.0.1', port=self.port, **options)


@pytest.fixture(scope='session')
def shared_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp('redis'))
    yield server
    server.stop()


@pytest.fixture
def server(shared_server):
    """The server that tests share, without data. What a test leaves in it must be consistent: see check_queues."""
    with shared_server.client() as c:
        c.flushall()
        c.script_flush()
        yield shared_server
        check_queues(c)


@pytest.fixture
def own_server(tmp_path):
    """A server of one test, which may stop it."""
    s = Server(tmp_path)
    yield s
    s.stop()


@pytest.fixture
def redis(server):
    with server.client() as c:
        yield c


def task_id(message):
    """Returns the id that a message carries; None if it carries none or is not a message."""
    try:
        fields = msgpack.unpackb(message, strict_map_key=False)
        meta = fields[-1]
        return meta.get('id') if isinstance(fields, list) and len(fields) in (3, 5) and isinstance(meta, dict) else None
    except (ValueError, TypeError):
        return None


def check_queues(redis):
    """Checks invariants of all queues of a Redis: every task is in exactly one place, and every task in a set has its
    message."""
    names = {k.decode() for k in redis.scan_iter(count=1000)}
    suffixes = ('_tasks', '_noti', '_scheduled', '_locks', '_groups')
    queues = {n[: -len(s)] for n in names for s in suffixes if n.endswith(s)} | {
        n for n in names if redis.type(n) == b'list'
    }
    parts = ('_group:', '_history:', '_rewait:')  # lists that are no queues, as are those that end so
    queues = {q for q in queues if not q.endswith(('_noti', '_wake')) and not any(p in q for p in parts)}
    for q in sorted(queues):
        pending = redis.lrange(q, 0, -1)
        if redis.llen(q + '_noti') < len(pending):
            pytest.fail(f'{q}: {len(pending)} pending tasks, but only {redis.llen(q + "_noti")} notifications')
        filed = {}
        for state in ('scheduled', 'retry', 'parked', 'archived'):
            for id in redis.zrange(f'{q}_{state}', 0, -1):
                assert id not in filed, f'{q}: {id!r} is {filed[id]} and {state}'
                filed[id] = state
        assert set(redis.hkeys(q + '_tasks')) == set(filed), f'{q}: messages and sets of filed tasks differ'
        places = Counter()
        for message in pending:
            places[task_id(message)] += 1
        for n in names:
            if n.startswith(q + '_processing:'):
                for message in redis.hvals(n):
                    places[task_id(message)] += 1
            if n.startswith(q + '_group:'):
                group = n[len(q + '_group:') :]
                assert redis.zscore(q + '_groups', group) is not None, f'{q}: group {group} is due at no time'
                for message in redis.lrange(n, 0, -1):
                    places[task_id(message)] += 1
        for id in filed:
            places[id.decode(errors='surrogateescape')] += 1
        places.pop(None, None)
        twice = [id for id, n in places.items() if n > 1]
        assert not twice, f'{q}: tasks in two places: {twice}'
        for name, value in redis.hgetall(q + '_locks').items():
            assert re.match(rb'\d+ .', value, re.DOTALL), f'{q}: lock {name!r}: expected time and task, found {value!r}'


@pytest.fixture(params=['sync', 'aio'])
def queue(request, server):
    """Makes queues of both kinds."""
    made = []
    if request.param == 'sync':
        client = server.client()
        yield lambda name='mail', **how: godelayed.Queue(name, client, **how)
        client.close()
        return

    def make(name='mail', **how):
        made.append(Blocking(server.port, name, **how))
        return made[-1]

    yield make
    for q in made:
        q.close()


@pytest.fixture
def start(server, tmp_path):
    """Starts workers, and kills those that still run at the end."""
    commands = []

    def start(*args, **kwargs):
        args = args if '--queue' in args else ('--queue', 'q', *args)
        c = Command(server, tmp_path / f'worker-{len(commands)}.log', *args, **kwargs)
        commands.append(c)
        return c

    yield start
    for c in commands:
        c.kill()


@pytest.fixture(params=['processes', 'threads'])
def both(request, start):
    """Starts workers of both kinds, with two tasks at once."""
    return lambda *args: start('--processes', '1' if request.param == 'processes' else '0', '--concurrency', '2', *args)


@pytest.fixture
def q(redis):
    return godelayed.Queue('q', redis)


@pytest.fixture
def worker():
    """Makes workers that never run."""
    return lambda *queues, **settings: Worker(
        redis_py.Redis(port=1),
        queues[0] if isinstance(queues[0], dict) else list(queues),
        registry=Registry(),
        processes=False,
        **settings,
    )


@pytest.fixture
def lane():
    """A lane that has claimed two tasks: 1-1 and 1-2."""
    store = types.SimpleNamespace(name='q', link=lambda: None, claim=lambda *_: Haul(1, 0, None, 0, [b'a', b'b']))
    store.source = types.SimpleNamespace(slot=0)
    lane = Lane(store, False)
    lane.finisher = types.SimpleNamespace(acknowledged=lambda *_: None)
    lane.claim(None, 2, 0, False, [])
    return lane
