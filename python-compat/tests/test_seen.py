"""What others see of producers and workers: queues, functions, and what workers do."""

import datetime
import json
import types
from collections.abc import Sequence
from typing import Any, Optional

import pytest
from working import notes, wait_for

import godelayed
from godelayed import task
from godelayed.catalog import listing
from godelayed.registry import Registry
from godelayed.worker.executors import Executors
from godelayed.worker.memory import ToldMemory, resident
from godelayed.worker.status import Status

GO = 'example.com/app/mail.Welcome'


def test_producers_announce_their_queues(queue, redis):
    q = queue()
    q.delay(GO, 1)
    assert redis.hgetall('delayed_queues') == {b'mail': b'0'}
    redis.config_resetstat()
    q.delay(GO, 2)
    q.options(countdown=60).delay(GO, 3)
    assert redis.info('commandstats')['cmdstat_evalsha']['calls'] == 2  # the queue is known
    queue('old', legacy=True).delay(GO, 1)
    queue('sales', prefix='eu:').delay_many([godelayed.call(GO, 1)])
    assert redis.hgetall('delayed_queues') == {b'mail': b'0', b'old': b'1'}
    assert redis.hgetall('eu:delayed_queues') == {b'sales': b'0'}


def test_a_queue_works_although_it_cannot_be_announced(queue, redis):
    redis.set('delayed_queues', "another program's")
    q = queue()
    q.delay(GO, 1)
    q.delay(GO, 2)
    assert redis.llen('mail') == 2
    redis.delete('delayed_queues')


def test_workers_tell_what_they_are_and_do(q, redis, both):
    w = both('--queue', 'q', '--heartbeat-life', '2')
    ref = q.delay('worker_tasks:hold')

    def status():
        for field, text in redis.hgetall('q_functions').items():
            if field.endswith(b' status') and b'running": [' in text:
                return json.loads(text)
        return None

    wait_for(status, 'the status')
    told = status()
    listed = json.loads(redis.hget('q_functions', redis.smembers('q_workers').pop()))
    assert redis.hgetall('delayed_queues') == {b'q': b'0'}
    assert told['version'] == 1
    assert told['state'] == 'running'
    assert told['concurrency'] == 2
    assert told['queues'] == 'q (strict)'
    assert told['library'].startswith('godelayed')
    assert 1 << 20 < told['memory'] < 1 << 40
    (running,) = told['running']
    assert running['id'] == ref.id
    assert running['function'] == 'worker_tasks:hold'
    assert abs(running['started'] / 1000 - redis.time()[0]) < 120
    add = {f['path']: f for f in listed['functions']}['worker_tasks:add']
    assert [p['name'] for p in add['parameters']] == ['a', 'b']
    assert add['optional'] == 1
    notes(redis).rpush('go', 1)
    wait_for(lambda: status() is None, 'the end of the task')
    w.stop()
    assert not redis.exists('q_functions')


class Lane:
    """A lane of a registered worker, which lists what it was given to publish."""

    def __init__(self):
        self.published = []
        self.name, self.confirmed, self.pulse = 'q', (0.0, 0.0), 'host:1:1'
        source = types.SimpleNamespace(of=lambda key: source)
        self.store = types.SimpleNamespace(prefix='', name='q', source=source, publish=self.publish)

    def publish(self, link, what, text):
        self.published.append(what)
        return True


def test_a_worker_that_registers_again_tells_everything_again():
    """Who has forgotten the worker has forgotten that too."""
    lane, link = Lane(), types.SimpleNamespace(open=lambda: None, dials=1, do=lambda *_: [b'0'], run=lambda *_: None)
    status = Status(Executors(1, None, 15.0), Registry(), False, 'q (strict)', lambda: 'running')
    status.tell(link, [lane])
    status.tell(link, [lane])
    assert lane.published == ['', ' status']
    lane.pulse = 'host:1:2'
    status.tell(link, [lane])
    assert lane.published == ['', ' status'] * 2
    link.dials = 2  # perhaps to another server
    status.tell(link, [lane])
    assert lane.published == ['', ' status'] * 3


def test_memory():
    used = resident()
    assert 4 << 20 < used < 1 << 40
    assert used // 4 < resident('/nowhere') < 64 * used  # the most that there was
    told = ToldMemory()
    mib = 1 << 20
    steps = (16, 0, 16), (18, 60, 16), (28, 61, 28), (48, 62, 28), (48, 91, 48), (44, 200, 48), (42, 200, 42)
    assert [told.tell(used * mib, at) // mib for used, at, _ in steps] == [want for *_, want in steps]


@pytest.mark.parametrize(
    ('hint', 'shape'),
    [
        (int, {'kind': 'int64'}),
        (bool, {'kind': 'bool'}),
        (str, {'kind': 'string'}),
        (bytes, {'kind': 'bytes'}),
        (float, {'kind': 'float64'}),
        (datetime.datetime, {'kind': 'time'}),
        (Any, {'kind': 'any'}),
        ('nowhere.Type', {'kind': 'any'}),
        (Optional[int], {'kind': 'optional', 'elem': {'kind': 'int64'}}),
        (list, {'kind': 'list', 'elem': {'kind': 'any'}}),
        (Sequence[str], {'kind': 'list', 'elem': {'kind': 'string'}}),
        (tuple[int, ...], {'kind': 'list', 'elem': {'kind': 'int64'}}),
        (tuple[int, str], {'kind': 'list', 'elem': {'kind': 'any'}}),
        (dict[str, int], {'kind': 'map', 'key': {'kind': 'string'}, 'elem': {'kind': 'int64'}}),
        (Registry, {'kind': 'any'}),
    ],
)
def test_types_in_listings(hint, shape):
    def f(x: hint):
        pass

    f.__annotations__['x'] = hint
    registry = Registry()
    task(path='m:f', registry=registry)(f)
    (one,) = json.loads(listing(registry))['functions']
    assert one['path'] == 'm:f'
    assert one['parameters'][0]['name'] == 'x'
    assert one['parameters'][0]['type'] == shape


def test_parameters_in_listings():
    def f(a: int, *rest: str, key: int, **more) -> str | None:
        pass

    registry = Registry()
    task(path='m:f', registry=registry)(f)
    task(path='m:print', registry=registry)(lambda: None)
    first, second = json.loads(listing(registry))['functions']
    assert first['variadic']
    assert [p['name'] for p in first['parameters']] == ['a', 'rest']
    assert first['parameters'][1]['type'] == {'kind': 'list', 'elem': {'kind': 'string'}}
    assert first['result']['type'] == {'kind': 'optional', 'elem': {'kind': 'string'}}
    assert second == {'path': 'm:print', 'parameters': []}


def test_listings_are_bounded():
    registry = Registry()
    for i in range(2000):
        task(path=f'm:f{i:04}', registry=registry)(lambda a, b: None)
    text = listing(registry)
    listed = json.loads(text)
    assert len(text) <= 64 << 10
    assert listed['more'] + len(listed['functions']) == 2000
    assert len(listed['functions']) > 100
