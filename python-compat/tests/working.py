"""What tests of the worker share: the command delayed-worker, and the remaining keys of a queue."""

import contextlib
import os
import signal
import time

import forked
import msgpack
import pytest
import redis as redis_py
from forked import HERE

from godelayed.scripts import script

LIMIT = 60  # timeout for anything, in seconds


class Command:
    """A running delayed-worker."""

    def __init__(self, server, log, *args, module='worker_tasks', cwd=HERE):
        self.log = log
        env = {
            **os.environ,
            'TEST_REDIS': server.url[:-1] + '1',
            'REDIS_URL': server.url,
            'PYTHONDONTWRITEBYTECODE': '' if 'PYTHONPYCACHEPREFIX' in os.environ else '1',  # nothing beside the sources
        }
        log.touch()
        self.process = forked.start([*module.split(), '--log-level', 'debug', *args], env, log, cwd)

    def output(self):
        return self.log.read_text()

    def send(self, sig):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.kill(self.process.pid, sig)

    def ends(self, code=0):
        self.process.join(LIMIT)
        if self.process.is_alive():
            pytest.fail(f'the worker did not end:\n{self.output()}')
        assert self.process.exitcode == code, self.output()

    def stop(self):
        self.send(signal.SIGTERM)
        self.ends()

    def sees(self, text):
        wait_for(lambda: text in self.output(), lambda: f'waited for {text!r} in\n{self.output()}')

    def kill(self):
        self.process.kill()
        self.process.join()


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            pytest.fail(what() if callable(what) else f'waited for {what}')
        time.sleep(0.005)  # between two looks


def control(redis, field, value):
    """Sets a field of the queue's control hash as Go's Pause, Resume and orders do, and signals the workers."""
    redis.eval(script('control').source, 1, 'q_control', field, value, 'q_signals')


def notes(redis):
    """Returns a client for the database to which tasks write."""
    kwargs = redis.connection_pool.connection_kwargs
    return redis_py.Redis(host=kwargs['host'], port=kwargs['port'], db=1)


def ran(redis):
    with notes(redis) as c:
        return [b.decode() for b in c.lrange('ran', 0, -1)]


def runs(redis, *words):
    """Waits until tasks have recorded these words, in any order."""
    wait_for(lambda: len(ran(redis)) >= len(words), lambda: f'waited for {words}, found {ran(redis)}')
    assert sorted(ran(redis)) == sorted(words)


def left(redis):
    """Returns the keys of the queue that exist when no worker runs, without counters, metrics, sweeper's lock and
    mode."""
    keys = {k.decode() for k in redis.scan_iter('q*')}
    return {k for k in keys if not k.startswith(('q_stats:', 'q_metrics:')) and k not in ('q_sweeper', 'q_mode')}


def counters(redis):
    found = {}
    for key in redis.scan_iter('q_stats:*'):
        for name, n in redis.hgetall(key).items():
            found[name.decode()] = found.get(name.decode(), 0) + int(n)
    return found


def info_of(redis, id, key='q_info'):
    return msgpack.unpackb(redis.hget(key, id))


FILED = {'q_tasks', 'q_info'}
