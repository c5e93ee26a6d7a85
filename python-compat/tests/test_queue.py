"""The producer with a Redis: where it puts tasks, and what it refuses."""

import asyncio
import datetime
import time
import types

import msgpack
import pytest
import redis.asyncio
from producing import GO, PY, pending

import godelayed
import godelayed.aio
import godelayed.producer
from godelayed import ArgumentsError, BatchError, DuplicateError, NoIdError, NotArchivedError, Queue, call
from godelayed.producer import MAX_BATCH
from godelayed.registry import Registry
from godelayed.scripts import Script, script

UTC = datetime.timezone.utc
LATER = datetime.datetime(2100, 1, 1, tzinfo=UTC)


def test_delay(queue, redis):
    ref = queue().delay(GO, 42, 'en')
    [[path, payload, meta]] = pending(redis)
    assert (path, msgpack.unpackb(payload), meta['n'], meta['id']) == (GO, [42, 'en'], 2, ref.id)
    assert abs(meta['at'] - time.time() * 1000) < 60_000
    assert redis.lrange('mail_noti', 0, -1) == [b'1']
    assert len(queue()) == 1


def test_plain_python_tasks(queue, redis):
    q = queue(legacy=True)
    assert q.delay(PY, 42, lang='en').id == ''
    assert [r.id for r in q.delay_many([call(PY)])] == ['']
    assert pending(redis) == [[PY, [42], {'lang': 'en'}], [PY]]
    assert redis.get('mail_mode') == b'plain'
    refused = queue()
    for _ in range(2):  # what was refused once is not confirmed
        with pytest.raises(godelayed.DelayedError, match='open it with legacy=True'):
            refused.delay(PY, 1)
    queue().delay(GO, 1)  # a Go task has only one form
    for _ in range(2):
        redis.lpop('mail')
    with pytest.raises(godelayed.DelayedError, match='may hold plain'):
        queue().delay(PY, 1)


@pytest.mark.parametrize(
    'place', ['', '_scheduled', '_retry', '_parked', '_archived', '_processing', '_processing:w', '_periodic']
)
def test_form_ends_with_the_last_task(queue, redis, place, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(
        godelayed.producer, 'time', types.SimpleNamespace(monotonic=lambda: now[0], time_ns=time.time_ns)
    )
    redis.sadd('mail_workers', 'v', 'w')
    redis.set('mail_mode', 'extended')
    if place == '':
        redis.rpush('mail', 'm')
        redis.rpush('mail_noti', 1)
    elif place in ('_processing', '_processing:w', '_periodic'):
        redis.hset(f'mail{place}', '1-1', 'm')
    else:
        redis.zadd(f'mail{place}', {'x': 1})
        redis.hset('mail_tasks', 'x', 'm')
    with pytest.raises(godelayed.DelayedError, match='may hold extended Python tasks'):
        queue(legacy=True).delay(PY, 1)
    redis.delete(f'mail{place}', 'mail_tasks', 'mail_noti')
    q = queue(legacy=True)
    q.delay(PY, 1)
    assert redis.get('mail_mode') == b'plain'
    # A producer that has seen the form confirmed asks again after a while.
    redis.set('mail_mode', 'extended')
    now[0] += 0.99
    q.delay(PY, 2)
    now[0] += 0.01
    with pytest.raises(godelayed.DelayedError, match='may hold extended Python tasks'):
        q.delay(PY, 3)


def test_legacy_queue_refuses_what_keakon_cannot_read(queue, redis):
    q = queue(legacy=True)
    for bad in ({1: 'a'}, {True: 1}, [{'a': [{2: 1}]}], {'a': {b'k'[0]: 1}}):
        for args, kwargs in (((bad,), {}), ((), {'k': bad})):
            with pytest.raises(ArgumentsError, match='keys that are str only'):
                q.delay(PY, *args, **kwargs)
            with pytest.raises(ArgumentsError, match='keys that are str only'):
                q.delay_many([call(PY), call(PY, *args, **kwargs)])
    assert not redis.exists('mail')
    queue('new').delay(PY, {1: 'a'})
    q.delay(GO, {1: 'a'})  # keakon's package does not read the payload of Go tasks


def test_tasks_without_an_id(queue, redis):
    """A question that needs an id raises an error."""
    q = queue(legacy=True)
    ref = q.delay(PY)
    for what in (ref.cancel, ref.result, ref.state, ref.info, ref.progress, ref.delete, ref.run_again):
        with pytest.raises(godelayed.NoIdError):
            what()
    later, many = q.options(countdown=3600).delay(PY), q.options(countdown=3600).delay_many([call(PY)])[0]
    for r in (later, many):
        r.cancel()
        with pytest.raises(godelayed.NoIdError, match='not scheduled any more'):
            r.cancel()
    assert not redis.exists('mail_scheduled', 'mail_revoked')


def test_extended_python_tasks(queue, redis):
    ref = queue('x').options(retry=2, keep_result=60).delay(PY, 42, lang='en')
    [[path, args, kwargs, retry, meta]] = pending(redis, 'x')
    assert (path, args, kwargs, retry, meta['id'], meta['n'], meta['kr']) == (
        PY,
        [42],
        {'lang': 'en'},
        2,
        ref.id,
        2,
        60_000,
    )


def test_who_can_be_cancelled_on_a_legacy_queue(queue, redis):
    """A Go task always carries its id; a Python task has one only while it is scheduled."""
    calls = [call(GO, 1)] * MAX_BATCH + [call(PY, 1), call(GO, 2)]
    refs = queue(legacy=True).options(countdown=3600).delay_many(calls)
    single = queue(legacy=True).delay(GO, 3)
    redis.delete('mail_scheduled', 'mail_tasks')  # as if workers had taken them
    for ref in (refs[0], refs[-1], single):
        ref.cancel()
    with pytest.raises(NoIdError, match='does not carry the id'):
        refs[MAX_BATCH].cancel()
    assert redis.zcard('mail_revoked') == 3


def test_registered_functions_and_others(queue, redis):
    def welcome(user_id):
        pass

    with pytest.raises(ArgumentsError, match='is not registered'):
        queue().delay(welcome)
    welcome = godelayed.task(path=PY, registry=Registry())(welcome)
    queue().delay(welcome, 1)
    with pytest.raises(ArgumentsError, match="unexpected keyword argument 'zzz'"):
        queue().delay(welcome, 1, zzz=4)
    assert pending(redis)[0][:2] == [PY, [1]]
    for path in ('', ':x', 'x:', 'a:b:c', 'x' * 513, '\ud800', 'a:b\n', 'a.b\x1b[2J', 'a.\u2028b'):
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
    with pytest.raises(ArgumentsError, match=r'call 2: example\.com/app/mail\.Welcome: argument 1: '):
        queue().delay_many([call(GO, 1), call(GO, object()), call(GO, 1)])
    with pytest.raises(ArgumentsError, match='an id names one task'):
        queue().options(task_id='x').delay_many([call(GO, 1), call(GO, 1)])
    assert redis.llen('mail') == 2500
    refs = queue().options(countdown=60).delay_many([call(GO, i) for i in range(1500)])
    assert redis.zcard('mail_scheduled') == len(refs) == 1500


def test_batches_have_a_size(queue, redis):
    calls = [call(GO, b'x' * 250_000) for _ in range(20)]
    redis.config_resetstat()
    queue().delay_many(calls)
    runs = redis.info('commandstats')
    assert runs.get('cmdstat_evalsha', {'calls': 0})['calls'] == 6  # five of 4, and one that announces the queue
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


@pytest.mark.parametrize(('lock', 'id'), [(30, 30), (1, 7)])
def test_an_id_stays_taken_for_a_week_or_as_long_as_the_lock(queue, redis, lock, id):
    queue().options(task_id='x', unique=datetime.timedelta(days=lock)).delay(GO, 1)
    now, day = redis.time()[0], 24 * 3600
    for name, value in redis.hgetall('mail_locks').items():
        lasts = id if name == b'#x' else lock
        assert int(value.split()[0]) / 1000 - now == pytest.approx(lasts * day, abs=60), name
    assert redis.hlen('mail_locks') == 2


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
    assert redis.hget('mail_locks', lock).decode().split()[1] == second.id
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


def test_calls_of_several_groups_go_together(queue, redis):
    """Also if they alternate, and all or none of them."""
    q = queue().options(group='search', group_grace=3600)
    calls = [call(GO, f'tenant {i % 3}', [i]) for i in range(600)]
    q.delay(GO, 'tenant 0', [])  # now the queue and the script are known
    redis.config_resetstat()
    q.delay_many(calls)
    assert redis.info('commandstats')['cmdstat_evalsha']['calls'] == 2
    lists = redis.keys('mail_group:*')
    assert sorted(redis.llen(name) for name in lists) == [200, 200, 201]
    redis.delete(lists[0])
    redis.set(lists[0], 'of another program')
    with pytest.raises(godelayed.DelayedError, match='WRONGTYPE'):
        q.delay_many(calls[:9])
    assert {redis.llen(name) for name in lists[1:]} <= {200, 201}
    redis.delete(lists[0])


def test_a_call_is_found_in_a_long_group(queue):
    """It reads the group page by page."""
    refs = queue().options(group='search', group_grace=3600).delay_many([call(GO, [i]) for i in range(450)])
    assert [refs[i].state() for i in (0, 199, 200, 399, 400, 449)] == ['aggregating'] * 6


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


def archived(redis, id):
    with redis.pipeline() as p:
        p.hset('mail_tasks', id, redis.lindex('mail', 0))
        p.delete('mail', 'mail_noti')
        p.hset('mail_info', id, msgpack.packb({'reason': 'failed'}))
        p.zadd('mail_archived', {id: 1 << 42})
        p.execute()


def test_delete_and_run_again(queue, redis):
    ref = queue().delay(GO, 1)
    for change in (ref.delete, ref.run_again):
        with pytest.raises(NotArchivedError):
            change()
    message = redis.lindex('mail', 0)
    archived(redis, ref.id)
    ref.run_again()
    assert redis.lrange('mail', 0, -1) == [message]
    archived(redis, ref.id)
    ref.delete()
    assert redis.exists('mail', 'mail_tasks', 'mail_info', 'mail_archived') == 0
    assert ref.state() == 'unknown'


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
        with pytest.raises(ArgumentsError, match='expected Delayed with the URL of the cluster'):
            kind('mail', object.__new__(of))


@pytest.mark.parametrize('aio', [False, True])
def test_misuse_is_an_arguments_error(server, aio):
    kind, client = (godelayed.aio.Queue, redis.asyncio.Redis(port=server.port)) if aio else (Queue, server.client())
    for settings, text in (
        ({'name': '\ud800'}, 'expected printable'),
        ({'name': 'x' * 1_000_000}, 'expected 1 to 128 bytes, found 1000000'),
        ({'name': 5}, 'expected a str'),
        ({'prefix': None}, 'prefix None: expected a str'),
        ({'prefix': b'p'}, 'expected a str'),
        ({'prefix': '\ud800'}, 'expected a str in Unicode'),
        ({'wait': 2**70}, 'wait: expected'),
        ({'redis': None}, 'expected a redis.* found builtins.NoneType'),
        ({'redis': 'redis://localhost'}, 'found builtins.str'),
        ({'redis': client.pipeline()}, 'Pipeline'),
    ):
        with pytest.raises(ArgumentsError, match=text) as e:
            kind(**{'name': 'mail', 'redis': client, **settings})
        assert len(str(e.value)) < 400
    q = kind('mail', client)
    for id in ('\ud800', 5, None, b'x'):
        with pytest.raises(ArgumentsError, match='expected a str in Unicode'):
            q.ref(id)
    for calls, n in (([5], 1), ([call(GO), None], 2), ([GO], 1)):
        with pytest.raises(ArgumentsError, match=rf'call {n}: expected what godelayed.call\(\) returns'):
            asyncio.run(q.delay_many(calls)) if aio else q.delay_many(calls)
    assert str(q.ref('a\n\x1b[2J\u2028')) == r'mail/a\n\x1b[2J\u2028'


def test_errors_are_one_line():
    e = godelayed.TaskError('a\nb', 'archived', 'failed', 'forged\x1b\u2028', 1, 0, None)
    assert str(e) == r'task a\nb is archived (failed): forged\x1b\u2028'
    assert (e.id, e.text) == ('a\nb', 'forged\x1b\u2028')


def test_a_script_is_read_once():
    assert script('ack') is script('ack')
    with pytest.raises(FileNotFoundError):
        _ = Script('nothing').source


@pytest.mark.parametrize(
    ('start', 'end', 'found'),
    [
        ({'countdown': 60}, {'ttl': 60}, 'ends 0.0 s before'),
        ({'countdown': 61}, {'ttl': 60}, 'ends 1.0 s before'),
        ({'debounce': 61}, {'ttl': 60}, 'ends 1.0 s before'),
        ({'eta': LATER}, {'ttl': 60}, 'a ttl that is longer'),
        ({'eta': LATER}, {'deadline': LATER}, 'lies 0.0 s before'),
        (
            {'countdown': 60},
            {'deadline': datetime.datetime(2020, 1, 1, tzinfo=UTC)},
            'a deadline after the task is due',
        ),
    ],
)
def test_a_task_that_could_never_start_is_refused(queue, start, end, found):
    q = queue()
    with pytest.raises(ArgumentsError, match=found):
        q.options(**start, **end).delay(GO, 1)
    q.options(countdown=59, ttl=60).delay(GO, 2)
    q.options(eta=LATER, deadline=LATER + datetime.timedelta(milliseconds=1)).delay(GO, 3)
    q.options(ttl=60).delay(GO, 4)
