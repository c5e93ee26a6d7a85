"""The worker, as the command delayed-worker, with processes and with threads."""

import datetime
import signal
import time

import msgpack
import pytest
from working import FILED, Command, counters, info_of, left, notes, ran, runs, wait_for

import godelayed


def test_runs_what_is_enqueued(q, redis, both):
    w = both()
    q.delay('worker_tasks:say', 1, 'zwei', None, x=[3])
    for i in range(50):
        q.delay('worker_tasks:say', 'n', i)
    runs(redis, 'say 1 zwei None x=[3]', *(f'say n {i}' for i in range(50)))
    w.stop()
    assert left(redis) == set()
    assert counters(redis) == {'processed': 51}


def test_sleeping_worker_is_woken(q, redis, both):
    w = both('--sweep-interval', '1000')
    w.sees('started')
    wait_for(lambda: redis.info('clients')['blocked_clients'] == 1, 'the worker to block')
    q.delay('worker_tasks:say', 'hello')
    runs(redis, 'say hello')
    w.stop()
    assert left(redis) == set()


def test_named_and_unregistered(q, redis, both):
    q.delay('named:task')
    q.options(task_id='x').delay('worker_tasks:unregistered')
    q.options(task_id='y').delay('os:getpid')
    q.options(task_id='z').delay('example.com/app/mail.Welcome', 1)
    both('--stop-when-empty').ends()
    assert ran(redis) == ['named']
    assert left(redis) == {'q_parked', 'q_locks', *FILED}  # their ids are in the sets
    assert set(redis.zrange('q_parked', 0, -1)) == {b'x', b'y', b'z'}
    assert [info_of(redis, id)['reason'] for id in 'xyz'] == ['unknown function', 'unknown function', 'go']
    assert info_of(redis, 'x')['function'] == 'worker_tasks:unregistered'
    assert counters(redis) == {'processed': 1, 'parked': 3}


def test_retries_until_archived(q, redis, both):
    q.options(task_id='x', headers={'a': 'b'}).delay('worker_tasks:fail', 'why')
    w = both()
    runs(redis, 'fail 1', 'fail 2', 'fail 3')
    wait_for(lambda: redis.zcard('q_archived'), 'the task to be archived')
    w.stop()
    assert left(redis) == {'q_archived', *FILED}
    message = msgpack.unpackb(redis.hget('q_tasks', 'x'))
    assert message[:4] == ['worker_tasks:fail', ['why'], {}, 0]
    meta = message[4]
    assert (meta['id'], meta['rt'], meta['h']) == ('x', 2, {'a': 'b'})
    info = info_of(redis, 'x')
    assert (info['reason'], info['error'], info['attempts'], info['first']) == (
        'failed',
        'ValueError: why',
        3,
        meta['ff'],
    )
    assert info['stack'].endswith('ValueError: why\n')
    assert 'worker_tasks.py' in info['stack']
    assert 'godelayed/worker' not in info['stack']
    assert counters(redis) == {'processed': 3, 'failed': 3, 'retried': 2, 'archived': 1}
    assert in_seconds(redis, 'q_archived', 'x') == pytest.approx(90 * 86400, abs=600)


def in_seconds(redis, key, id):
    """Returns in how many seconds the time of a task in a set is due."""
    return redis.zscore(key, id) / 1000 - time.time()


def test_times_of_what_is_filed(q, redis, both):
    q.options(task_id='x', retry=1, backoff=3600).delay('worker_tasks:fail')
    q.options(task_id='y', backoff=[7200], max_backoff=600).delay('worker_tasks:fail')
    q.options(task_id='z').delay('worker_tasks:unregistered')
    q.options(task_id='v', keep_result=60).delay('worker_tasks:add', 1)
    q.options(task_id='w', unique=600, retry=1, backoff=300).delay('worker_tasks:fail')
    w = both()
    wait_for(lambda: redis.zcard('q_retry') == 3 and redis.zcard('q_parked') and redis.zcard('q_completed'), w.output)
    w.stop()
    for key, id, seconds in (
        ('q_retry', 'x', 3600),
        ('q_retry', 'y', 600),
        ('q_parked', 'z', 7 * 86400),
        ('q_completed', 'v', 60),
        ('q_retry', 'w', 300),
    ):
        assert in_seconds(redis, key, id) == pytest.approx(seconds, abs=30), id
    (lasts,) = [int(v.split()[0]) for n, v in redis.hgetall('q_locks').items() if n[:1] != b'#' and v.endswith(b' w')]
    assert lasts / 1000 - redis.time()[0] == pytest.approx(900, abs=30)  # the lock lasts longer by the countdown


def test_retry_that_succeeds(q, redis, both):
    q.options(task_id='x', keep_result=60).delay('worker_tasks:fail_times', 2)
    w = both()
    wait_for(lambda: redis.zcard('q_completed'), 'the task to succeed')
    w.stop()
    assert ran(redis) == ['try 1', 'try 2', 'try 3']
    assert left(redis) == {'q_completed', 'q_results'}
    kept = info_of(redis, 'x', 'q_results')
    assert (kept['reason'], kept['attempts'], msgpack.unpackb(kept['result'])) == ('completed', 3, 3)


def test_plain_retry_is_the_fourth_element(redis, both):
    q = godelayed.Queue('q', redis, legacy=True)
    q.options(retry=2).delay('worker_tasks:fail')
    q.delay('worker_tasks:say', 'x')
    w = both()
    wait_for(lambda: redis.zcard('q_archived'), 'the task to be archived')
    w.stop()
    # Plain messages do not contain the number of the attempt.
    assert ran(redis).count('fail 1') == 3
    assert left(redis) == {'q_archived', *FILED}
    id = redis.zrange('q_archived', 0, -1)[0]
    assert msgpack.unpackb(redis.hget('q_tasks', id)) == ['worker_tasks:fail', [], {}, 0]
    assert counters(redis) == {'processed': 4, 'failed': 3, 'retried': 2, 'archived': 1}


def test_outcomes(q, redis, both):
    for name in ('discard', 'drop', 'snooze_once', 'retry_in'):
        q.options(task_id=name).delay(f'worker_tasks:{name}')
    w = both()
    runs(redis, 'awake 1', 'again 2')
    wait_for(lambda: counters(redis).get('processed') == 5, lambda: f'the counters, found {counters(redis)}')
    w.stop()
    assert left(redis) == {'q_archived', *FILED}
    assert redis.zrange('q_archived', 0, -1) == [b'discard']
    assert info_of(redis, 'discard')['error'] == 'Archive: not worth it'
    assert counters(redis) == {'processed': 5, 'failed': 2, 'retried': 1, 'snoozed': 1, 'archived': 1}


def test_arguments_that_do_not_fit(q, redis, both):
    q.options(task_id='x').delay('worker_tasks:add')
    q.options(task_id='y', retry=0).delay('worker_tasks:add', 1, 'a')
    both('--stop-when-empty').ends()
    assert left(redis) == {'q_archived', *FILED}
    assert info_of(redis, 'x')['reason'] == 'arguments'
    assert info_of(redis, 'y')['reason'] == 'failed'


def test_results(q, redis, both):
    q.options(task_id='sum', keep_result=60).delay('worker_tasks:add', 1, b=2)
    q.options(task_id='async', keep_result=60).delay('worker_tasks:add_later', 1, 5)
    q.options(task_id='none', keep_result=60, retention=100).delay('worker_tasks:say')
    q.options(task_id='bad', keep_result=60).delay('worker_tasks:give', 'x' * 1_040_000)
    both('--stop-when-empty').ends()
    assert left(redis) == {'q_completed', 'q_results'}
    assert msgpack.unpackb(info_of(redis, 'sum', 'q_results')['result']) == 3
    assert msgpack.unpackb(info_of(redis, 'async', 'q_results')['result']) == 6
    none = info_of(redis, 'none', 'q_results')
    assert msgpack.unpackb(none['result']) is None
    assert msgpack.unpackb(none['message'])[0] == 'worker_tasks:say'
    assert {'at', 'began', 'enqueued', 'worker', 'function', 'attempts'} <= set(none)


def test_context(q, redis, both):
    q.options(task_id='x', headers={'trace': 't'}).delay('worker_tasks:about')
    both('--stop-when-empty').ends()
    assert ran(redis) == ["x q worker_tasks:about 1 0 [('trace', 't')] True None"]


def test_progress(q, redis, both):
    q.options(task_id='x', keep_result=60).delay('worker_tasks:report')
    w = both()
    runs(redis, 'reported')
    wait_for(lambda: redis.hexists('q_results', 'x'), 'the report')
    report = info_of(redis, 'x', 'q_results')
    assert (report['reason'], report['done'], report['total'], report['note']) == ('active', 1, 2, 'half')
    notes(redis).rpush('go', 1)
    wait_for(lambda: redis.zcard('q_completed'), 'the task to succeed')
    w.stop()
    kept = info_of(redis, 'x', 'q_results')
    assert (kept['reason'], kept['done'], kept['note']) == ('completed', 2, 'whole')
    assert left(redis) == {'q_completed', 'q_results'}


def test_scheduled_tasks_are_moved(q, redis, both):
    w = both()
    q.options(countdown=0.2).delay('worker_tasks:say', 'later')
    runs(redis, 'say later')
    w.stop()
    assert left(redis) == set()


def test_ttl(q, redis, both):
    q.options(ttl=0.001, task_id='x').delay('worker_tasks:say', 'late')
    wait_for(lambda: redis.time()[1] % 10_000 < 5000, 'some ms')  # the TTL is over
    both('--stop-when-empty').ends()
    assert ran(redis) == []
    assert left(redis) == {'q_archived', *FILED}
    assert info_of(redis, 'x')['reason'] == 'expired'
    assert counters(redis) == {'expired': 1, 'archived': 1}


def test_garbage_is_archived(q, redis, both):
    garbage = [
        b'',
        b'\xc1',
        b'\x90',
        b'\xa3a:b',
        b'\x91\xc0',
        b'\x96\xa3a:b\x90\x80\x00\x80\x00',
        b'\x92\xa3a:b\x05',
        b'\x95\xa3a:b\x90\x80\x00\x81\xa2mr\xa1x',
        b'\x95\xa3a:b\x90\x80\x00\x82\xa2id\xa1a\xa2id\xa1b',
        b'\x92\xa3a:b' + b'\x91' * 32 + b'\x00',
        b'\x92\xa3a:b\xdd\x00\x00\xff\xff' + b'\x91\x00' * 65_535,
    ]
    redis.rpush('q', *garbage)
    redis.rpush('q_noti', *[1] * len(garbage))
    both('--stop-when-empty').ends()
    assert left(redis) == {'q_archived', *FILED}
    assert sorted(redis.hvals('q_tasks')) == sorted(garbage)
    assert all(msgpack.unpackb(i)['reason'] == 'undecodable' for i in redis.hvals('q_info'))


def test_timeout_ends_the_task(q, redis, start):
    q.options(task_id='x').delay('worker_tasks:sleep_long')
    start('--concurrency', '2', '--stop-when-empty').ends()
    assert left(redis) == {'q_archived', *FILED}
    info = info_of(redis, 'x')
    assert info['error'].startswith('it took longer than 1 s: TaskTimeout')
    assert 'time.sleep(120)' in info['stack']
    assert 'godelayed/worker' not in info['stack']


def test_timeout_kills_what_does_not_end(q, redis, start):
    q.options(task_id='x', timeout=1, retry=0).delay('worker_tasks:sleep_on', True)
    q.delay('worker_tasks:say', 'beside')
    w = start('--concurrency', '1', '--kill-after', '1', '--stop-when-empty')
    w.ends()
    assert sorted(ran(redis))[-1] == 'told TaskTimeout'
    assert 'say beside' in ran(redis)
    assert left(redis) == {'q_archived', *FILED}
    assert 'its process was killed' in info_of(redis, 'x')['error']


def says_nothing_of_event_loops(w, tracebacks=0):
    for word in ('Exception', 'never retrieved', 'never awaited', 'killed'):
        assert word not in w.output(), w.output()
    assert w.output().count('Traceback') == tracebacks, w.output()


@pytest.mark.parametrize('how', ['await', 'turn'])
def test_timeout_ends_a_coroutine(q, redis, start, how):
    for i in range(3):
        q.options(task_id=str(i), timeout=1).delay('worker_tasks:wait_long', how)
    w = start('--concurrency', '3', '--kill-after', '300', '--stop-when-empty')
    w.ends()
    assert left(redis) == {'q_archived', *FILED}
    for i in '012':
        assert info_of(redis, i)['error'] == 'it took longer than 1 s: TaskTimeout: timeout'
        assert 'in wait_long' in info_of(redis, i)['stack']
    says_nothing_of_event_loops(w, tracebacks=3)


@pytest.mark.parametrize('how', ['await', 'gather', 'turn', 'iterate', 'block'])
def test_coroutine_is_told_to_end(q, redis, start, how):
    """It is cancelled where it waits, and interrupted where it runs. The event loop logs nothing about it."""
    n = 1 if how == 'block' else 3  # one that blocks keeps the others from starting
    refs = [q.options(keep_result=60).delay('worker_tasks:wait_long', how) for _ in range(n)]
    w = start('--concurrency', '3', '--kill-after', '300')
    wait_for(lambda: ran(redis).count('waiting') == n, w.output)
    for ref in refs:
        ref.cancel()
    for ref in refs:
        with pytest.raises(godelayed.CanceledError):
            ref.result(timeout=60)
    w.stop()
    # More if one was interrupted while it noted that it was cancelled.
    assert ran(redis).count('cancelled') + ran(redis).count('interrupted') >= n
    says_nothing_of_event_loops(w)


def test_times_beyond_all_bounds(q, redis, both):
    """select and poll accept at most 24.8 days, and a datetime the year 9999."""
    far = datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)
    kept = q.options(keep_result=60)
    both(
        *(
            w
            for name in ('timeout', 'grace', 'cancel-grace', 'kill-after', 'heartbeat-life', 'sweep-interval')
            for w in (f'--{name}', '9e9')
        )
    )
    assert kept.options(timeout=9e9).delay('worker_tasks:add', 1).result(timeout=60) == 2
    assert kept.options(timeout=25 * 86400).delay('worker_tasks:add', 2).result(timeout=60) == 3
    assert kept.options(deadline=far, ttl=9e9, retry_until=far).delay('worker_tasks:add', 3).result(timeout=60) == 4
    assert kept.delay('worker_tasks:add', 4).result(timeout=60) == 5
    most = (1 << 63) - 1
    meta = {'id': 'x', 'at': most, 'to': most, 'dl': most, 'xp': most, 'ru': most, 'rc': most, 'kr': 60_000, 'rd': [0]}
    redis.rpush('q', msgpack.packb(['worker_tasks:about', [], {}, 0, meta]))
    redis.rpush('q_noti', 1)
    assert q.ref('x').result(timeout=60) is None
    late = q.options(eta=far).delay('worker_tasks:add', 1)
    assert late.info().due.year == 9999
    redis.zadd('q_scheduled', {late.id: most})
    assert late.info().due is None


def test_old_deaths_do_not_count(q, redis, start):
    message = ['worker_tasks:die', [1], {}, 0, {'id': 'x', 'd': 2, 'da': int(time.time() * 1000) - 73 * 3600 * 1000}]
    redis.rpush('q', msgpack.packb(message))
    redis.rpush('q_noti', 1)
    w = start('--concurrency', '1')
    wait_for(lambda: ran(redis) == ['survived'], w.output)
    w.stop()
    assert left(redis) == set()


SECRET = 'hunter2'
FORGED = 'id\n2026-01-01 00:00:00,000 ERROR forged\x1b[2J'


def test_log_and_info_hold_neither_values_nor_control_characters(q, redis, both):
    bad = [
        ['worker_tasks:add', f'password={SECRET}'],
        ['worker_tasks:add', [], SECRET],
        ['worker_tasks:add', [], {}, SECRET],
        ['worker_tasks:add', [], {}, 0, SECRET],
        ['worker_tasks:add', [], {}, 0, {'to': SECRET}],
        ['worker_tasks:add', [], {}, 0, {'id': [SECRET]}],
        ['worker_tasks:add', [], {}, 0, {'h': SECRET}],
        ['worker_tasks:add', [], {}, 0, {b'x': SECRET}],
        [SECRET, {'a': 1}],
        'worker_tasks:add',
        ['worker_tasks:add', [{1: SECRET}, SECRET], {'no': SECRET}],
        [f'a:b{FORGED}', [SECRET]],
        [f'b{FORGED}', SECRET.encode()],
    ]
    for message in bad:
        redis.rpush('q', msgpack.packb(message))
        redis.rpush('q_noti', 1)
    named = q.options(task_id=FORGED, retry=1, backoff=0)
    named.options(task_id=FORGED + '1').delay('worker_tasks:fail', 'two\nlines')
    named.options(task_id=FORGED + '2').delay('worker_tasks:discard')
    named.options(task_id=FORGED + '3').delay('worker_tasks:unregistered')
    named.options(task_id=FORGED + '4', ttl=0.001).delay('worker_tasks:say')
    named.options(task_id=FORGED + '5', keep_result=60).delay('worker_tasks:give_keys', SECRET)
    w = both()
    wait_for(
        lambda: redis.zcard('q_archived') + redis.zcard('q_parked') + redis.zcard('q_completed') == len(bad) + 5,
        w.output,
    )
    w.stop()
    out = w.output()
    assert SECRET not in out, out
    assert 'forged' in out
    for line in out.splitlines():
        assert not line.startswith('2026-01-01'), out
        assert line.isprintable(), line
        assert line[:2] in ('20', '  '), out  # one of a traceback is indented
    infos = {id: msgpack.unpackb(i) for key in ('q_info', 'q_results') for id, i in redis.hgetall(key).items()}
    assert len(infos) == len(bad) + 5
    for info in infos.values():
        text = {k: v for k, v in info.items() if isinstance(v, str)}
        assert SECRET not in str(text)
        assert all(v.isprintable() for k, v in text.items() if k != 'stack'), text
        assert all(line.isprintable() for line in text.get('stack', '').expandtabs().splitlines()), text


def test_death_of_a_process(q, redis, start):
    q.options(task_id='x').delay('worker_tasks:die', 2)
    q.options(task_id='y').delay('worker_tasks:hold')
    w = start('--concurrency', '2')
    wait_for(lambda: 'survived' in ran(redis), 'the task to survive')
    notes(redis).rpush('go', 1)
    runs(redis, 'survived', 'holding', 'released')
    w.stop()
    assert left(redis) == set()
    assert counters(redis) == {'swept': 2, 'processed': 2}


def test_third_death_archives(q, redis, start):
    q.options(task_id='x').delay('worker_tasks:die')
    start('--concurrency', '2', '--stop-when-empty').ends()
    assert left(redis) == {'q_archived', *FILED}
    assert msgpack.unpackb(redis.hget('q_tasks', 'x'))[4]['d'] == 3
    assert info_of(redis, 'x')['reason'] == 'deaths'
    assert counters(redis) == {'swept': 3, 'archived': 1}


def test_deaths_of_a_plain_task_are_counted_beside_it(redis, start):
    godelayed.Queue('q', redis, legacy=True).delay('worker_tasks:die')
    start('--concurrency', '2', '--stop-when-empty').ends()
    assert left(redis) == {'q_archived', *FILED}
    assert notes(redis).get('deaths') == b'3'


def test_stop_waits_for_tasks(q, redis, both):
    q.delay('worker_tasks:hold')
    w = both()
    runs(redis, 'holding')
    q.delay('worker_tasks:say', 'not here')
    wait_for(lambda: 'say not here' in ran(redis), 'the second slot to run it')
    w.send(signal.SIGINT)
    w.sees('stopping')
    notes(redis).rpush('go', 1)
    w.ends()
    assert 'released' in ran(redis)
    assert left(redis) == set()


def test_stop_tells_tasks_to_end(q, redis, start):
    q.options(task_id='x', retry=0).delay('worker_tasks:sleep_on')
    w = start('--grace', '0.01', '--cancel-grace', '30')
    wait_for(lambda: ran(redis), 'the task to start')
    w.stop()
    assert ran(redis)[-1] == 'told WorkerStopping'
    assert left(redis) == {'q', 'q_noti', 'q_locks'}  # given back, without using up a retry
    assert msgpack.unpackb(redis.lindex('q', 0))[4] == msgpack.unpackb(redis.lindex('q', 0))[4] | {'id': 'x'}
    assert 'rt' not in msgpack.unpackb(redis.lindex('q', 0))[4]


def test_stop_kills_tasks_that_do_not_end(q, redis, start):
    q.delay('worker_tasks:sleep_on', True)
    w = start('--grace', '0.01', '--cancel-grace', '0.1', '--kill-after', '100')
    wait_for(lambda: ran(redis), 'the task to start')
    w.stop()
    assert left(redis) == {'q', 'q_noti'}


def test_threads_that_do_not_end(q, redis, start):
    q.delay('worker_tasks:hold')
    w = start('--processes', '0', '--grace', '0.01', '--cancel-grace', '0.01')
    runs(redis, 'holding')
    w.send(signal.SIGTERM)
    w.ends(3)
    assert 'worker_tasks:hold' in w.output()


def test_second_signal_exits_at_once(q, redis, both):
    q.delay('worker_tasks:hold')
    w = both()
    runs(redis, 'holding')
    w.send(signal.SIGTERM)
    w.sees('stopping')
    w.send(signal.SIGCONT)
    w.send(signal.SIGHUP)
    w.ends(130)
    assert ran(redis) == ['holding']


def test_pause_and_quiet(q, redis, both):
    w = both()
    w.sees('started')
    w.send(signal.SIGUSR2)
    w.sees('worker paused')
    q.delay('worker_tasks:say', 'hello')
    assert notes(redis).blpop('ran', 0.3) is None
    w.send(signal.SIGCONT)
    runs(redis, 'say hello')
    w.send(signal.SIGTSTP)
    w.sees('worker is quiet')
    q.delay('worker_tasks:say', 'again')
    w.send(signal.SIGCONT)
    w.stop()
    assert ran(redis) == ['say hello']
    assert left(redis) == {'q', 'q_noti'}


def test_wrong_arguments(server, start):
    wrong = (('--concurrency', '0'), ('--queue', 'a_retry'), ('--queue', 'a:b'))
    workers = [start(*args) for args in (*wrong, ('--redis-url', 'redis://localhost?decode=1'))]
    for w in workers:
        w.ends(2)
    assert "--redis-url: unknown parameter 'decode'" in w.output()
    assert 'Traceback' not in w.output()


def test_without_redis(own_server, tmp_path):
    own_server.stop()
    w = Command(own_server, tmp_path / 'log', '--queue', 'q', '--wait', '0.1')
    w.ends(1)
    assert 'Redis did not answer' in w.output()


def test_module_without_tasks(server, start):
    w = start(module='no_such_module_of_tasks')
    w.ends(1)
    assert 'no_such_module_of_tasks' in w.output()
