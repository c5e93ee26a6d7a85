"""How others act on a worker: cancellations, pauses, orders, restarts. Also locks, groups, handing on, and several
queues."""

import re
import signal

import msgpack
import pytest
from working import FILED, control, counters, left, notes, ran, runs, wait_for

import godelayed
import godelayed.cli
from godelayed import CanceledError, TaskError, Worker
from godelayed.registry import Registry
from godelayed.worker.pool import Pool


def worker_id(redis):
    return redis.smembers('q_workers').pop().decode()


def test_results_by_ref(q, both):
    both()
    kept = q.options(keep_result=60)
    assert kept.delay('worker_tasks:add', 20, b=22).result(timeout=60) == 42
    value = {'a': [1, 2.5, None, True, b'\0', 'ü'], 'n': -(1 << 63)}
    assert kept.delay('worker_tasks:give', value).result(timeout=60) == value
    with pytest.raises(TaskError, match='ValueError: why'):
        kept.options(retry=0).delay('worker_tasks:fail', 'why').result(timeout=60)


def test_registered_function_is_delayed_by_itself(q, redis, both):
    @godelayed.task(path='worker_tasks:say', registry=Registry())
    def say(word):
        raise AssertionError('not here')

    both()
    q.delay(say, 1)
    runs(redis, 'say 1')


def test_cancel_of_a_pending_task(q, redis, both):
    ref = q.options(keep_result=60).delay('worker_tasks:say', 'never')
    q.delay('worker_tasks:say', 'other')
    ref.cancel()
    w = both()
    with pytest.raises(CanceledError):
        ref.result(timeout=60)
    runs(redis, 'say other')
    w.stop()
    assert left(redis) - {'q_control'} == {'q_completed', 'q_results'}
    assert counters(redis) == {'canceled': 1, 'processed': 1}


def test_cancel_of_a_running_task(q, redis, start):
    ref = q.options(keep_result=60).delay('worker_tasks:sleep_on')
    w = start('--heartbeat-life', '1000')
    wait_for(lambda: ran(redis), 'the task to start')
    ref.cancel()
    with pytest.raises(CanceledError):
        ref.result(timeout=60)
    w.stop()
    assert ran(redis)[-1] == 'told TaskCanceled'
    assert left(redis) - {'q_control'} == {'q_completed', 'q_results'}


def test_cancel_kills_what_does_not_end(q, redis, start):
    ref = q.options(keep_result=60).delay('worker_tasks:sleep_on', True)
    w = start('--kill-after', '0.1')
    wait_for(lambda: ran(redis), 'the task to start')
    ref.cancel()
    with pytest.raises(CanceledError):
        ref.result(timeout=60)
    w.stop()
    assert left(redis) - {'q_control'} == {'q_completed', 'q_results'}


def test_cancel_without_signals(q, redis, start):
    ref = q.options(task_id='x', keep_result=60).delay('worker_tasks:sleep_on')
    w = start('--heartbeat-life', '1')
    wait_for(lambda: ran(redis), 'the task to start')
    # As cancel.lua does, but without a signal: the heartbeat finds it.
    redis.zadd('q_revoked', {'x': 1 << 42})
    redis.hset('q_control', 'version', 7)
    with pytest.raises(CanceledError):
        ref.result(timeout=60)
    w.stop()
    assert not redis.exists('q_revoked')


def test_task_that_succeeds_although_cancelled(q, redis, start):
    ref = q.options(keep_result=60).delay('worker_tasks:hold')
    w = start('--processes', '0')
    runs(redis, 'holding')
    ref.cancel()
    notes(redis).rpush('go', 1)
    assert ref.result(timeout=60) is None
    w.stop()
    assert left(redis) - {'q_control'} == {'q_completed', 'q_results'}  # the cancellation is deleted


def test_queue_is_paused_and_resumed(q, redis, both):
    control(redis, 'paused', 'now')
    w = both()
    q.delay('worker_tasks:say', 1)
    w.sees('paused')
    assert ran(redis) == []
    control(redis, 'paused', '')
    runs(redis, 'say 1')
    control(redis, 'paused', 'now')
    wait_for(lambda: w.output().count('queue q: paused') == 2, 'the pause')
    q.delay('worker_tasks:say', 2)
    w.stop()
    assert ran(redis) == ['say 1']
    assert left(redis) == {'q', 'q_noti', 'q_control'}


def test_orders_for_one_worker(q, redis, both):
    w = both()
    wait_for(lambda: redis.smembers('q_workers'), 'the worker')
    field = f'worker:{worker_id(redis)}'
    control(redis, field, 'pause')
    w.sees('worker paused')
    q.delay('worker_tasks:say', 1)
    control(redis, field, '')
    runs(redis, 'say 1')
    control(redis, field, 'quiet')
    w.sees('worker is quiet')
    control(redis, field, 'stop')
    w.ends()


def test_restart(q, redis, both):
    control(redis, 'restart', '1')  # an order from before the worker began
    w = both()
    q.delay('worker_tasks:say', 1)
    runs(redis, 'say 1')
    control(redis, 'restart', 'now')
    w.ends()
    assert 'worker stops (restart)' in w.output()


def test_locks_are_freed(q, redis, both):
    w = both()
    unique = q.options(unique=600, keep_result=60)
    assert unique.delay('worker_tasks:add', 1).result(timeout=60) == 2
    assert unique.delay('worker_tasks:add', 1).result(timeout=60) == 2  # otherwise it would be a duplicate
    for n in (1, 2):  # nothing else is kept of these
        q.options(unique=600).delay('worker_tasks:say', 'alone')
        wait_for(lambda n=n: ran(redis).count('say alone') == n, 'the task to run')
        wait_for(lambda: not redis.exists('q_locks'), 'the lock to be free')
    q.options(unique=600, retry=0).delay('worker_tasks:fail')
    wait_for(lambda: redis.zcard('q_archived'), 'the task to be archived')
    q.options(unique=600, retry=0).delay('worker_tasks:fail')
    wait_for(lambda: redis.zcard('q_archived') == 2, 'the second as well')
    w.stop()
    assert left(redis) == {'q_archived', 'q_completed', 'q_results', *FILED}


def test_lock_until_start(q, redis, both):
    w = both()
    once = q.options(unique=600, until_start=True)
    once.delay('worker_tasks:hold')
    runs(redis, 'holding')
    once.delay('worker_tasks:hold')  # the first has started
    wait_for(lambda: ran(redis).count('holding') == 2, 'the second')
    notes(redis).rpush('go', 1, 1)
    wait_for(lambda: ran(redis).count('released') == 2, 'both')
    w.stop()
    assert left(redis) == set()


def test_go_tasks_are_handed_on(q, redis, both):
    q.delay('example.com/app/mail.Welcome', 1)
    q.options(task_id='x').delay('example.com/app/mail.Welcome', 2)
    both('--go-queue', 'gone', '--stop-when-empty').ends()
    assert left(redis) == set()
    assert [msgpack.unpackb(m)[0] for m in redis.lrange('gone', 0, -1)] == ['example.com/app/mail.Welcome'] * 2
    assert redis.llen('gone_noti') == 2


def test_gathered_calls_are_left_to_go_workers(q, redis, both):
    grouped = q.options(group='daily', group_grace=0.1)
    grouped.delay('example.com/app/mail.Digest', 'ann', [1])
    message = redis.lrange(redis.keys('q_group:*')[0], 0, -1)
    late = grouped.options(countdown=0.05).delay('example.com/app/mail.Digest', 'ann', [2])
    w = both('--go-queue', 'gone')
    wait_for(lambda: redis.llen('gone'), 'the scheduled call')
    w.stop()
    assert msgpack.unpackb(redis.lindex('gone', 0))[2]['id'] == late.id
    assert redis.llen('gone') == 1
    assert redis.lrange(redis.keys('q_group:*')[0], 0, -1) == message
    redis.delete(*redis.keys('q_group*'), 'q_gathered', 'q_wake')


def test_parked_tasks_are_released(q, redis, both):
    # This is how a worker of an older version parked tasks.
    message = msgpack.packb(['worker_tasks:say', ['again'], {}, 0, {'id': 'x'}])
    redis.hset('q_tasks', 'x', message)
    redis.hset('q_info', 'x', msgpack.packb({'function': 'worker_tasks:say'}))
    redis.zadd('q_parked', {'x': 1 << 42})
    w = both()
    runs(redis, 'say again')
    w.stop()
    assert left(redis) == set()


def test_queues_in_order(redis, start):
    for name in ('low', 'high'):
        for i in range(3):
            godelayed.Queue(name, redis).delay('worker_tasks:say', name, i)
    start(
        '--queue',
        'high',
        '--queue',
        'low',
        '--concurrency',
        '1',
        '--processes',
        '0',
        '--prefetch',
        '0',
        '--stop-when-empty',
    ).ends()
    assert ran(redis) == [f'say {name} {i}' for name in ('high', 'low') for i in range(3)]


def test_weighted_queues(redis, start):
    for name in ('low', 'high'):
        for i in range(20):
            godelayed.Queue(name, redis).delay('worker_tasks:say', name, i)
    start('--queue', 'high:3', '--queue', 'low', '--stop-when-empty').ends()
    assert len(ran(redis)) == 40


def test_max_tasks(q, redis, both):
    for i in range(5):
        q.delay('worker_tasks:say', i)
    w = both('--max-tasks', '3')
    w.ends()
    assert len(ran(redis)) == 3
    assert left(redis) == {'q', 'q_noti'}
    assert 'max tasks' in w.output()


def test_processes_are_replaced(q, redis, start):
    for _ in range(6):
        q.options(retry=0).delay('worker_tasks:pid')
    start('--concurrency', '1', '--max-tasks-per-process', '2', '--stop-when-empty').ends()
    assert len(set(ran(redis))) == 3
    assert left(redis) == set()


def test_nobody_but_the_worker_hears_signals(q, redis, start):
    """A Ctrl-C in a terminal goes to all processes of the group. Programs that a task starts end as usual."""
    q.delay('worker_tasks:hold_in_group')
    w = start('--concurrency', '1')
    numbers = (int(getattr(signal, f'SIG{name}')) for name in ('INT', 'TERM', 'HUP', 'USR1', 'USR2', 'PIPE'))
    holding = ' '.join(map(str, ('holding', *numbers, -1)))  # -1: no file descriptor is told of signals
    runs(redis, holding)
    w.send(signal.SIGTERM)
    w.sees('stopping')
    notes(redis).rpush('go', 1)
    w.ends()
    assert ran(redis) == [holding, 'released']


def test_second_signal_before_the_pool_runs(server, monkeypatch, caplog):
    """The worker that is left behind ends silently: it logs neither a fault nor the death of a task."""
    w = Worker(server.client(), ['q'], concurrency=1)
    run = Pool.run

    def late(pool):
        w.stop()
        w.kill()
        run(pool)

    monkeypatch.setattr(Pool, 'run', late)
    w.run()
    assert w.stop_reason == 'stop'
    assert not [r for r in caplog.records if r.levelname == 'ERROR']


def test_second_signal_counts_although_the_first_has_done_its_work(monkeypatch):
    class Stopped:
        stop_reason = 'stop'
        stop = kill = staticmethod(lambda: None)

        def run(self):
            for _ in range(2):
                program._obey('SIGTERM')

    monkeypatch.setattr(godelayed.cli.os, '_exit', lambda _: None)
    program = godelayed.cli._Program(Stopped())
    assert program.run() == 130


def test_workers_that_know_different_functions(q, redis, start):
    """A worker that knows its function runs each task.

    Only the signal says that others have parked tasks.
    """
    first = start('--processes', '0', '--concurrency', '8', module='worker_tasks seldom')
    second = start('--processes', '0', '--concurrency', '2', module='other_tasks seldom')
    for w in (first, second):
        w.sees('started')
    wait_for(lambda: redis.pubsub_numsub('q_signals')[0][1] >= 2, 'both to hear signals')
    for _ in range(100):
        q.delay('worker_tasks:say', 'a')
        q.delay('other_tasks:tell', 'b')
    wait_for(lambda: len(ran(redis)) == 200, lambda: f'waited for 200, found {len(ran(redis))}')
    logged = 0
    for w in (first, second):
        w.stop()
        # One line may stand for many tasks, but no task is left out.
        for n in re.findall(
            r'parked, as this worker cannot run it \(unknown function\)(?: \((\d+) since the last line\))?', w.output()
        ):
            logged += int(n or 1)
    parked = counters(redis)['parked']
    assert 0 < parked == logged
    assert left(redis) == set()


def test_go_tasks_that_others_have_parked_are_handed_on(q, redis, both):
    message = msgpack.packb(['example.com/app.F', b'', {'id': 'x'}])
    redis.hset('q_tasks', 'x', message)
    redis.hset('q_info', 'x', msgpack.packb({'function': 'example.com/app.F', 'reason': 'go', 'worker': 'w'}))
    redis.zadd('q_parked', {'x': 1 << 42})
    w = both('--go-queue', 'go')
    wait_for(lambda: redis.lrange('go', 0, -1) == [message], 'it to be handed on')
    w.stop()
    redis.delete('go', 'go_noti')
    assert left(redis) == set()
