"""References: waiting for results, states, and operations on tasks. The tests do what a worker would do."""

import asyncio
import datetime
import threading
import time
import traceback

import msgpack
import pytest
import redis.asyncio as redis_asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

import godelayed
import godelayed.aio
import godelayed.aio.signals
import godelayed.ref
from godelayed import NoResultError, NotArchivedError, Queue, TaskError, WaitTimeoutError
from godelayed.link import AsyncLink

GO = 'example.com/app/mail.Welcome'


@pytest.fixture
def queue(server):
    with server.client() as client:
        yield Queue('mail', client).options(keep_result=60)


def end(redis, id, publish=True, **info):
    """Ends a pending task like a worker, but without a claim."""
    with redis.pipeline() as p:
        add_end(p, id, publish, **info)
        p.execute()


def add_end(p, id, publish=True, **info):
    """Adds the commands of end to a pipeline."""
    p.delete('mail', 'mail_noti')
    p.hset('mail_results', id, msgpack.packb({'reason': 'completed', 'function': GO, **info}))
    p.zadd('mail_completed', {id: int(time.time() * 1000) + 60_000})
    if publish:
        p.publish(f'mail_ended:{id}', 'ended')


def archive(redis, id, **info):
    message = redis.lindex('mail', 0)
    with redis.pipeline() as p:
        p.delete('mail', 'mail_noti')
        p.hset('mail_tasks', id, message)
        p.hset('mail_info', id, msgpack.packb(info))
        p.zadd('mail_archived', {id: int(time.time() * 1000) + 60_000})
        p.publish(f'mail_ended:{id}', 'ended')
        p.execute()


def waiters(redis, id):
    """Returns how many clients are subscribed to the end of a task."""
    return redis.pubsub_numsub(f'mail_ended:{id}')[0][1]


LIMIT = 60  # timeout for anything, in seconds


def wait_for(condition):
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)  # between two looks


async def subscribed(redis, ref, n=1):
    """Waits until that many clients are subscribed to the end of a task."""
    until = time.monotonic() + LIMIT
    while (found := waiters(redis, ref.id)) != n:
        assert time.monotonic() < until, f'waited for {n} clients that are subscribed to the end, found {found}'
        await asyncio.sleep(0.005)  # between two looks


def test_result_that_is_there(queue, redis):
    ref = queue.delay(GO, 1)
    end(redis, ref.id, result=msgpack.packb({'a': [1, b'x', msgpack.Timestamp(5, 0)]}))
    assert ref.result() == {'a': [1, b'x', datetime.datetime(1970, 1, 1, 0, 0, 5, tzinfo=datetime.timezone.utc)]}
    assert queue.ref(ref.id).result(timeout=datetime.timedelta(seconds=30)) == ref.result(0)
    assert ref.state() is godelayed.State.COMPLETED
    nothing = queue.delay(GO, 1)
    end(redis, nothing.id)
    assert nothing.result() is None


def test_result_that_comes(queue, redis, monkeypatch):
    """Redis publishes the end: without that, the caller would look only after an hour."""
    monkeypatch.setattr(godelayed.ref, 'LOOK_EVERY', 3600.0)
    ref = queue.delay(GO, 1)
    found = []
    t = threading.Thread(target=lambda: found.append(ref.result()))
    t.start()
    wait_for(lambda: waiters(redis, ref.id) == 1)
    end(redis, ref.id, result=msgpack.packb(42))
    t.join(60)
    assert found == [42]
    wait_for(lambda: waiters(redis, ref.id) == 0)


def test_result_that_nobody_tells_of(queue, redis, monkeypatch):
    monkeypatch.setattr(godelayed.ref, 'LOOK_EVERY', 0.05)
    ref = queue.delay(GO, 1)
    found = []
    t = threading.Thread(target=lambda: found.append(ref.result(timeout=60)))
    t.start()
    wait_for(lambda: waiters(redis, ref.id) == 1)
    end(redis, ref.id, publish=False, result=msgpack.packb(42))
    t.join(60)
    assert found == [42]


def test_result_behind_a_break_of_the_connection(queue, redis, monkeypatch):
    monkeypatch.setattr(godelayed.ref, 'LOOK_EVERY', 3600.0)
    ref = queue.delay(GO, 1)
    found = []
    t = threading.Thread(target=lambda: found.append(ref.result(timeout=120)))
    t.start()
    wait_for(lambda: waiters(redis, ref.id) == 1)
    with redis.pipeline() as p:  # at once: nobody is subscribed when the end is published
        p.client_kill_filter(_type='pubsub')
        p.execute()
    end(redis, ref.id, publish=False, result=msgpack.packb(42))
    t.join(120)
    assert found == [42]


def test_result_behind_an_outage(own_server, monkeypatch):
    """The caller learns of the end once Redis is back; by itself it would look only after an hour."""
    failures = []
    monkeypatch.setattr(godelayed.ref, 'LOOK_EVERY', 3600.0)
    monkeypatch.setattr(godelayed.ref, 'pause', lambda n: failures.append(n) or 0.01)
    client = own_server.client(retry=Retry(NoBackoff(), 0))
    two = own_server.client(
        retry=Retry(NoBackoff(), 0), max_connections=2
    )  # to listen and to look: none may stay behind
    ref = Queue('mail', two).options(keep_result=60).delay(GO, 1)
    found = []
    t = threading.Thread(target=lambda: found.append(ref.result(timeout=120)), daemon=True)
    t.start()
    wait_for(lambda: waiters(client, ref.id) == 1)
    own_server.stop()
    wait_for(lambda: len(failures) > 2)
    own_server.start()
    wait_for(lambda: waiters(client, ref.id) == 1)
    end(client, ref.id, result=msgpack.packb(42))
    t.join(20)
    assert found == [42]
    client.close()
    two.close()


def test_result_of_a_task_that_is_replaced(queue, redis, server):
    q = queue.options(countdown=3600, unique=60, on_conflict='replace')
    ref = q.delay(GO, 1)
    found = []

    def wait():
        with pytest.raises(godelayed.CanceledError, match='taken its place') as e:
            ref.result(timeout=120)
        found.append(e.value.id)

    t = threading.Thread(target=wait)
    t.start()
    wait_for(lambda: waiters(redis, ref.id) == 1)
    second = q.delay(GO, 1)
    t.join(120)
    assert found == [ref.id]

    async def run():
        async with redis_asyncio.Redis(port=server.port) as client:
            waiting = asyncio.ensure_future(godelayed.aio.Queue('mail', client).ref(second.id).result(timeout=120))
            await subscribed(redis, second)
            q.delay(GO, 1)
            with pytest.raises(godelayed.CanceledError, match='taken its place'):
                await waiting

    asyncio.run(run())


def test_timeout(queue):
    ref = queue.delay(GO, 1)
    with pytest.raises(WaitTimeoutError, match='has not ended within'):
        ref.result(timeout=0)
    with pytest.raises(TimeoutError):
        ref.result(timeout=0.05)


def test_failures_are_exceptions(queue, redis):
    ref = queue.delay(GO, 1)
    archive(redis, ref.id, reason='failed', error='no such user', attempts=3, at=1_700_000_000_000, stack='main.go:7')
    with pytest.raises(TaskError, match=f'task {ref.id} is archived .failed.: no such user') as e:
        ref.result()
    assert (e.value.state, e.value.attempts, e.value.text, e.value.at.year) == ('archived', 3, 'no such user', 2023)
    assert e.value.stack == 'main.go:7'
    assert '\nmain.go:7"' in ''.join(traceback.format_exception(type(e.value), e.value, None))
    info = ref.info()
    assert (info.state, info.error, info.stack, info.attempts, info.function) == (
        'archived',
        'no such user',
        'main.go:7',
        3,
        GO,
    )
    dropped = queue.delay(GO, 1)
    end(redis, dropped.id, reason='dropped', error='of no use')
    with pytest.raises(TaskError, match='dropped.*of no use'):
        dropped.result()


def test_no_result(queue, redis, server):
    plain = queue.options(keep_result=None).delay(GO, 1)
    with pytest.raises(NoResultError, match='without keep_result'):
        plain.result()
    gathered = queue.options(group='x').delay(GO, [1])
    with pytest.raises(NoResultError, match='gathered'):
        gathered.result()
    lost = queue.delay(GO, 1)
    end(redis, lost.id, error='a chan has no form')
    with pytest.raises(NoResultError, match='could not be kept: a chan has no form'):
        lost.result()
    broken = queue.delay(GO, 1)
    end(redis, broken.id, result=b'\xc1')
    with pytest.raises(NoResultError, match='cannot be read'):
        broken.result()


def test_result_of_an_earlier_task_of_the_same_id(queue, redis):
    end(redis, 'invoice', result=msgpack.packb('old'), enqueued=1_600_000_000_000)
    redis.zadd('mail_completed', {'invoice': int(time.time() * 1000) + 60_000})
    q = queue.options(task_id='invoice', on_conflict='skip')
    ref = q.delay(GO, 1)  # skipped, because the old task is still kept
    assert queue.ref('invoice').result() == 'old'
    with pytest.raises(WaitTimeoutError):
        ref.result(timeout=0)


def test_progress(queue, redis):
    ref = queue.delay(GO, 1)
    redis.hset('mail_results', ref.id, msgpack.packb({'reason': 'active', 'done': 3, 'total': 10, 'note': 'mails'}))
    assert ref.progress() == (3, 10, 'mails')
    assert ref.state() == 'active'


@pytest.mark.parametrize(('year', 'over'), [(2001, {'dl', 'ru', 'xp'}), (2101, set())])
def test_delete_and_run_again(queue, redis, year, over):
    """Only times that are over are removed, because with them the task would not start, or not be tried again."""
    end_of_it = datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc)
    ref = queue.options(deadline=end_of_it, retry_until=end_of_it).delay(GO, [1, b'x'], 1.5)
    before = msgpack.unpackb(redis.lindex('mail', 0))
    before[2].update(rt=2, d=1, da=5, al=1, ff=7, zzz=[1], xp=before[2]['dl'])
    redis.lset('mail', 0, msgpack.packb(before))
    for change in (ref.delete, ref.run_again):
        with pytest.raises(NotArchivedError):
            change()
    archive(redis, ref.id, reason='failed')
    ref.run_again()
    after = msgpack.unpackb(redis.lindex('mail', 0))
    meta = {k: v for k, v in before[2].items() if k not in {'rt', 'd', 'da', 'al', 'ff', *over}}
    due = after[2].pop('du')  # now
    assert before[2]['at'] <= due < before[2]['at'] + 60_000
    assert after == [before[0], before[1], meta]
    assert redis.llen('mail_noti') == 1
    archive(redis, ref.id, reason='failed')
    ref.delete()
    assert redis.exists('mail_tasks', 'mail_info', 'mail_archived') == 0
    ended = queue.delay(GO, 1)
    end(redis, ended.id)
    ended.delete()
    assert ended.state() == 'unknown'


def test_waiting_in_asyncio(server, redis, monkeypatch):
    """1,000 callers wait on one connection, and each is told."""
    monkeypatch.setattr(godelayed.ref, 'LOOK_EVERY', 3600.0)

    sync = redis

    async def run():
        async with redis_asyncio.Redis(port=server.port) as client:
            q = godelayed.aio.Queue('mail', client).options(keep_result=60)
            refs = await q.delay_many([godelayed.call(GO, i) for i in range(1000)])
            waiting = [asyncio.ensure_future(r.result(timeout=120)) for r in refs]
            last = asyncio.ensure_future(refs[-1].result(timeout=120))
            for r in refs:
                await subscribed(sync, r)
            with sync.pipeline() as p:
                for i, r in enumerate(refs):
                    add_end(p, r.id, result=msgpack.packb(i))
                await asyncio.get_running_loop().run_in_executor(None, p.execute)
            assert await asyncio.gather(*waiting) == list(range(1000))
            assert await last == 999
            assert await asyncio.wait_for(refs[5], LIMIT) == 5
            failed = await q.delay(GO, 1)
            with pytest.raises(WaitTimeoutError):
                await failed.result(timeout=0.05)
            archive(sync, failed.id, reason='failed', error='oh')
            with pytest.raises(TaskError, match='oh'):
                await failed.result(timeout=120)
            return (await client.info('clients'))['connected_clients']

    assert asyncio.run(run()) < 50


def test_break_of_the_connection_in_asyncio(server, monkeypatch, redis):
    monkeypatch.setattr(godelayed.ref, 'LOOK_EVERY', 3600.0)
    sync = redis

    async def run():
        async with redis_asyncio.Redis(port=server.port) as client:
            q = godelayed.aio.Queue('mail', client).options(keep_result=60)
            ref = await q.delay(GO, 1)
            waiting = asyncio.ensure_future(ref.result(timeout=120))
            await subscribed(sync, ref)
            sync.client_kill_filter(_type='pubsub')
            end(sync, ref.id, publish=False, result=msgpack.packb(42))
            assert await waiting == 42
            again = await q.delay(GO, 1)
            waiting = asyncio.ensure_future(again.result(timeout=120))
            await subscribed(sync, again)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await subscribed(sync, again, 0)

    asyncio.run(run())


def test_cancellation_that_comes_with_the_signal_is_not_swallowed():
    async def run():
        told = godelayed.aio.signals.Told()
        waiting = asyncio.ensure_future(told.wait(60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        told.set()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await told.wait(60)  # returns, because told was set
        await told.wait(0.001)

    asyncio.run(run())


def test_who_begins_to_wait_beside_another_looks_once_more(server):
    """The end may have been published between its first look and listen, while the subscription of the other caller is
    active already."""

    async def run():
        async with redis_asyncio.Redis(port=server.port) as client:
            signals = godelayed.aio.signals.Signals(AsyncLink.of(client))
            with signals.listen('c') as first:
                await first.wait(60)
                with signals.listen('c') as second:
                    assert second._event.is_set()
                    assert not first._event.is_set()

    asyncio.run(run())


def test_the_channel_of_who_has_given_up_is_left(server, redis, monkeypatch):
    """It unsubscribes at once, while others go on listening."""
    monkeypatch.setattr(godelayed.aio.signals, 'VERIFY_EVERY', 3600.0)

    async def run():
        async with redis_asyncio.Redis(port=server.port) as client:
            signals = godelayed.aio.signals.Signals(AsyncLink.of(client))
            with signals.listen('stays') as stays:
                with signals.listen('leaves') as leaves:
                    await leaves.wait(60)
                    await stays.wait(60)
                while await client.pubsub_numsub('stays', 'leaves') != [(b'stays', 1), (b'leaves', 0)]:
                    await asyncio.sleep(0.01)  # between two looks

    asyncio.run(asyncio.wait_for(run(), 20))


def test_many_who_wait_for_a_moment(server):
    """Each of them ends in time, whatever happens to their common connections."""

    async def run():
        async with redis_asyncio.Redis(port=server.port) as client:
            ref = await godelayed.aio.Queue('mail', client).options(keep_result=60).delay(GO, 1)
            for _ in range(3):
                waiting = [asyncio.ensure_future(asyncio.wait_for(ref.result(), 0.05)) for _ in range(50)]
                done, late = await asyncio.wait(waiting, timeout=30)
                assert not late
                assert all(isinstance(w.exception(), asyncio.TimeoutError) for w in done)

    asyncio.run(run())
