"""The policy of the worker, without a Redis: what happens to a task after each way in which a run can end, and when it
is too late to start."""

import dataclasses
import datetime
import time
import types

import msgpack
import pytest

from godelayed.registry import Function
from godelayed.worker import failures, finish
from godelayed.worker.judge import DEATHS_LIFE, MAX_DEATHS, Ended, Judge, Rules, default_backoff, verdict
from godelayed.worker.lane import Claim
from godelayed.worker.message import Message
from godelayed.worker.store import Death

NOW = 1_700_000_000_000  # ms: Redis's clock
HOUR = 3600 * 1000
FAILED = Ended(ok=False, error='ValueError: no')


def message(meta=None, retry=0):
    return msgpack.packb(['a:b', [], {}, retry] if meta is None else ['a:b', [], {}, retry, {'id': 'x', **meta}])


def claim(meta=None, left=0, /, **function):
    c = Claim(types.SimpleNamespace(name='q', now=lambda: NOW), None, '1-1', message(meta, left))
    c.message, c.function = Message(c.raw), Function('a:b', lambda: None, **function)
    return c


def failed(c, ended=FAILED, stopping=False, /, **rules):
    return Judge('w', Rules(**rules)).failed(c, ended, stopping)


def meta_of(end):
    return msgpack.unpackb(end.message)[4]


def info_of(end):
    return msgpack.unpackb(end.info)


# Timeouts.


@pytest.mark.parametrize(
    ('meta', 'function', 'worker', 'limit'),
    [
        ({}, {}, 0, 0),
        ({}, {}, 5000, 5000),
        ({}, {'timeout': 4000}, 5000, 4000),
        ({'to': 3000}, {'timeout': 4000}, 5000, 3000),
        ({'to': 3000}, {}, 0, 3000),
        ({'dl': NOW + 700}, {}, 0, 700),
        ({'dl': NOW + 700, 'to': 3000}, {}, 0, 700),
        ({'dl': NOW + 7000, 'to': 3000}, {}, 0, 3000),
        ({'dl': NOW}, {}, 0, 1),
    ],
)
def test_how_long_a_task_may_run(meta, function, worker, limit):
    assert Judge('w', Rules(timeout=worker)).limit(claim(meta, **function), NOW) == limit


def test_for_how_long_a_task_is_parked():
    end = Judge('w', Rules()).park(claim({}), 'unknown function')
    assert (end.kind, end.wait, end.id, end.message) == (finish.PARK, 7 * 24 * HOUR, 'x', message({}))


# Too late.


@pytest.mark.parametrize(
    ('meta', 'why'),
    [
        ({}, None),
        ({'xp': NOW + 1}, None),
        ({'xp': NOW}, 'TTL'),
        ({'xp': NOW - HOUR}, 'TTL'),
        ({'dl': NOW + 1}, None),
        ({'dl': NOW}, 'deadline'),
        ({'ru': NOW - HOUR}, None),  # it limits retries: a first run may be as late as it likes
        ({'ru': NOW - HOUR, 'ff': NOW - 2 * HOUR}, 'retry_until'),
        ({'ru': NOW, 'ff': 1}, 'retry_until'),
        ({'ru': NOW + 1, 'ff': 1}, None),
        ({'xp': 0, 'dl': 0, 'ru': 0, 'ff': 1}, None),
    ],
)
def test_what_is_too_late_to_start(meta, why):
    end = Judge('w', Rules()).stale(claim(meta), NOW)
    if why is None:
        assert end is None
        return
    assert (end.kind, end.counted, end.id) == (finish.ARCHIVE, ('expired',), 'x')
    info = info_of(end)
    assert info['reason'] == 'expired'
    assert why in info['error']


# Retries.


@pytest.mark.parametrize(
    ('meta', 'retry', 'function', 'worker', 'again'),
    [
        ({}, 0, {}, 0, False),
        ({}, 0, {}, 1, True),
        ({'rt': 1}, 0, {}, 1, False),
        ({'rt': 24}, 0, {}, 25, True),
        ({'rt': 25}, 0, {}, 25, False),
        ({}, 0, {'retry': 0}, 25, False),
        ({'rt': 1}, 0, {'retry': 2}, 0, True),
        ({'rt': 2}, 0, {'retry': 2}, 25, False),
        ({'rt': 99}, 0, {'retry': -1}, 0, True),
        ({'rt': 2}, 3, {'retry': 0}, 0, True),
        ({'rt': 3}, 3, {'retry': 9}, 9, False),
        ({'mr': 0}, 3, {'retry': 9}, 9, False),
        ({'mr': 1}, 0, {'retry': 0}, 0, True),
        ({'mr': -1, 'rt': 50}, 0, {}, 0, True),
        # A time limit instead of a number: retry until then, however often the task has failed and whatever the rest
        # says.
        ({'ru': NOW + HOUR, 'rt': 99, 'mr': 0, 'rd': [0]}, 0, {'retry': 0}, 0, True),
        ({'ru': NOW + 999, 'rd': [1000]}, 0, {}, 25, False),
        ({'ru': NOW + 1000, 'rd': [1000]}, 0, {}, 25, False),
        ({'ru': NOW + 1001, 'rd': [1000]}, 0, {}, 25, True),
        ({'xp': NOW + 1000, 'rd': [1000]}, 0, {}, 25, False),
        ({'dl': NOW + 1000, 'rd': [1000]}, 0, {}, 25, False),
        ({'dl': NOW + 1001, 'rd': [1000]}, 0, {}, 25, True),
    ],
)
def test_who_is_tried_again(meta, retry, function, worker, again):
    end = failed(claim(meta, retry, **function), max_retry=worker)
    assert (end.kind, end.counted) == (finish.RETRY if again else finish.ARCHIVE, ('processed', 'failed'))
    info = info_of(end)
    assert (info['reason'], info['attempts'], info['first']) == ('failed', meta.get('rt', 0) + 1, NOW)
    if again:
        assert (meta_of(end)['rt'], meta_of(end)['ff'], meta_of(end)['id']) == (meta.get('rt', 0) + 1, NOW, 'x')
        assert meta_of(end)['du'] == NOW + end.wait
    else:
        assert (meta_of(end).get('rt', 0), meta_of(end)['ff']) == (meta.get('rt', 0), NOW)


@pytest.mark.parametrize(
    ('retry', 'kind', 'left'),
    [(0, finish.ARCHIVE, 0), (1, finish.RETRY, 0), (3, finish.RETRY, 2), (-1, finish.RETRY, -1)],
)
def test_plain_messages_say_how_often(retry, kind, left):
    end = failed(claim(None, retry, retry=9), max_retry=9)
    assert end.kind == kind
    assert msgpack.unpackb(end.message)[3] == left


def test_first_failure_is_kept():
    end = failed(claim({'ff': 77, 'rt': 1}), max_retry=5)
    assert (meta_of(end)['ff'], info_of(end)['first']) == (77, 77)


def test_failures_are_remembered():
    old = [[1, 5, 'w', 'old', '']]
    end = failed(claim({'er': [*old, 'rubbish', [1, 2]], 'rt': 1}), Ended(ok=False, error='a\nb', stack='x' * 9 + '\n'))
    remembered = meta_of(end)['er']
    assert remembered[:1] == old
    assert len(remembered) == 2
    attempt, _, _, error, stack = remembered[1]
    assert (attempt, error, stack) == (2, 'a\\nb', 'x' * 9 + '\n')


def test_failures_are_bounded():
    er = None
    for n in range(1, 10):
        er = failures.add(er, n, n, 'w', f'e{n}', '')
    assert [f[0] for f in er] == [4, 5, 6, 7, 8, 9]
    er = failures.add(er, 10, 10, 'w' * 999, 'e' * 999, 'first\n' + 'é' * 600 + '\nlast')
    assert [len(v) for v in er[-1][2:4]] == [128, 512]
    assert er[-1][4] == 'last'
    assert failures.add(None, 1, 1, '', '', 'é' * 999)[0][4] == 'é' * 512
    for n in (11, 12):
        er = failures.add(er, n, n, 'w' * 999, 'e' * 999, 's' * 999)
    assert [f[0] for f in er] == [12]


@pytest.mark.parametrize(
    ('meta', 'function', 'waits'),
    [
        ({'rd': [10, 20, 30]}, {}, [10, 20, 30, 30]),
        ({'rd': [10, 20, 30]}, {'delays': (7,)}, [10, 20, 30, 30]),
        ({}, {'delays': (7, 8)}, [7, 8, 8, 8]),
        ({'rd': [10, 20, 30], 'rc': 15}, {}, [10, 15, 15, 15]),
        ({'rd': [10, 20, 30], 'rc': 15}, {'max_backoff': 5}, [10, 15, 15, 15]),
        ({'rd': [10, 20, 30]}, {'max_backoff': 25}, [10, 20, 25, 25]),
        ({}, {'backoff': lambda n: n + 0.5}, [500, 1500, 2500, 3500]),
        ({}, {'backoff': lambda n: datetime.timedelta(seconds=n)}, [0, 1000, 2000, 3000]),
        ({}, {'backoff': lambda n: n + 0.5, 'max_backoff': 2000}, [500, 1500, 2000, 2000]),
        ({'rc': 100}, {}, [100] * 4),
        ({}, {'backoff': lambda n: -1}, [0] * 4),
    ],
)
def test_waits_before_retries(meta, function, waits):
    found = [failed(claim({**meta, 'rt': n}, **function), max_retry=25).wait for n in range(4)]
    assert found == waits


def test_backoff_of_the_worker():
    own = {'backoff': lambda n: 60 + n, 'max_retry': 25}
    assert failed(claim({'rt': 2}), **own).wait == 62_000
    assert failed(claim({'rt': 2}, backoff=lambda n: 1), **own).wait == 1000

    def faulty(_):
        raise RuntimeError('no')

    assert 3750 <= failed(claim({}), backoff=faulty, max_retry=1).wait <= 6250


@pytest.mark.parametrize(
    ('retried', 'mean'),
    [(-1, 5000), (0, 5000), (1, 10_000), (5, 160_000), (12, 20_480_000), (13, 6 * HOUR), (10_000, 6 * HOUR)],
)
def test_default_backoff(retried, mean):
    """Doubled each time, at most six hours, spread over ± 25 %, so that tasks which failed together are not tried again
    at the same time."""
    waits = [default_backoff(retried) for _ in range(2000)]
    assert 0.75 * mean <= min(waits) < 0.8 * mean
    assert 1.2 * mean < max(waits) <= 1.25 * mean
    assert abs(sum(waits) / len(waits) / mean - 1) < 0.03


@pytest.mark.parametrize(
    ('ended', 'most', 'line'),
    [
        (FAILED, 1, 'failed and is tried again in 1.5 s: ValueError: no'),
        (FAILED, 0, 'archived: it failed and no retries are left: ValueError: no'),
        (Ended(ok=False, says='discard', error='x'), 1, 'archived: it discarded itself: x'),
        (Ended(ok=False, says='drop', error='x'), 1, 'dropped, as it said: x'),
        (Ended(ok=False, arguments=True, error='x'), 1, 'archived: its arguments do not fit the function: x'),
    ],
)
def test_the_log_says_what_becomes_of_each_failure(caplog, ended, most, line):
    caplog.set_level('INFO')
    failed(claim({'rd': [1500]}), dataclasses.replace(ended, stack='there\n'), max_retry=most)
    (record,) = caplog.records
    assert record.getMessage() == f'queue q: a:b (x), attempt 1: {line}'
    dropped = ended.says == 'drop'
    assert (record.exc_text, hasattr(record, 'attempt')) == ((None, False) if dropped else ('  there', True))


# What tasks raise, and what they are told.


@pytest.mark.parametrize(
    ('ended', 'stopping', 'kind', 'wait', 'counted'),
    [
        (Ended(ok=False, says='discard'), False, finish.ARCHIVE, 0, ('processed', 'failed')),
        (Ended(ok=False, says='snooze', wait=7000), False, finish.SNOOZE, 7000, ()),
        (Ended(ok=False, says='retry', wait=9000), False, finish.RETRY, 9000, ('processed', 'failed')),
        (Ended(ok=False, arguments=True), False, finish.ARCHIVE, 0, ('processed', 'failed')),
        (Ended(ok=False, interrupted='stopping'), True, finish.RELEASE, 0, ()),
        (Ended(ok=False, says='retry', wait=7), True, finish.RELEASE, 0, ()),
        (Ended(ok=False, error='x'), True, finish.RELEASE, 0, ()),
        (Ended(ok=False, says='discard'), True, finish.ARCHIVE, 0, ('processed', 'failed')),
        (Ended(ok=False, says='snooze', wait=7000), True, finish.SNOOZE, 7000, ()),
    ],
)
def test_what_becomes_of_a_run(ended, stopping, kind, wait, counted):
    end = failed(claim({'rd': [5]}), ended, stopping, max_retry=5)
    assert (end.kind, end.wait, end.counted) == (kind, wait, counted)
    if ended.arguments:
        assert info_of(end)['reason'] == 'arguments'


def test_drop_leaves_nothing_behind_unless_somebody_waits():
    dropped = Ended(ok=False, says='drop', error='Drop: no')
    assert failed(claim({}), dropped) is None
    end = failed(claim({'kr': 5000}), dropped)
    assert (end.kind, end.wait, info_of(end)['reason']) == (finish.COMPLETE, 5000, 'dropped')


def test_snooze_spends_no_retry():
    end = failed(claim({'rt': 3}), Ended(ok=False, says='snooze', wait=5, error='Snooze: 5', stack='line 1'))
    assert (meta_of(end), info_of(end)['reason']) == ({'id': 'x', 'rt': 3, 'du': NOW + 5}, 'snoozed')
    assert not {'error', 'stack'} & info_of(end).keys()  # it has not failed


def test_timeout_of_a_function_that_is_archived_then():
    timed_out = Ended(ok=False, error='x', interrupted='timeout')
    assert failed(claim({}, archive_on_timeout=True), timed_out, max_retry=9).kind == finish.ARCHIVE
    assert failed(claim({}), timed_out, max_retry=9).kind == finish.RETRY
    assert failed(claim({}, archive_on_timeout=True), max_retry=9).kind == finish.RETRY


def test_what_is_kept_of_a_success():
    judge = Judge('w', Rules())
    end = judge.complete(claim({'kr': 5000, 'rn': 3000, 'rt': 2, 'at': 3}), Ended(result=b'\x07'), 11)
    assert (end.kind, end.wait, end.id) == (finish.COMPLETE, 5000, 'x')
    info = info_of(end)
    assert (info['reason'], info['result'], info['attempts'], info['began'], info['enqueued'], info['at']) == (
        'completed',
        b'\x07',
        3,
        11,
        3,
        NOW,
    )
    assert info['message'] == message({'kr': 5000, 'rn': 3000, 'rt': 2, 'at': 3})
    assert 'message' not in info_of(judge.complete(claim({'kr': 5000}), Ended(), 0))


# Deaths.


def ago(ms):
    return time.time_ns() // 1_000_000 - ms


ALONE, SHARED, CERTAIN = Death(alone='1-1'), Death(), Death(certain=True)


@pytest.mark.parametrize(
    ('meta', 'death', 'action', 'deaths', 'alone'),
    [
        ({}, SHARED, 'requeue', 1, None),
        ({}, Death(sole=True), 'requeue', 1, None),
        ({}, ALONE, 'requeue', 1, 1),
        ({}, CERTAIN, 'requeue', 1, 1),
        ({'d': 1, 'da': ago(1000)}, SHARED, 'requeue', 2, None),
        ({'d': 99, 'da': ago(1000)}, SHARED, 'requeue', 100, None),
        ({'d': 9, 'da': ago(1000)}, ALONE, 'requeue', 10, 1),
        ({'d': 9, 'da': ago(1000), 'al': 1}, ALONE, 'requeue', 10, 2),
        ({'d': 9, 'da': ago(1000), 'al': 2}, SHARED, 'requeue', 10, 2),
        ({'d': 2, 'da': ago(1000), 'al': 2}, ALONE, 'archive', 3, 3),
        ({'d': 2, 'da': ago(1000), 'al': 2}, CERTAIN, 'archive', 3, 3),
        # They count for 72 hours.
        ({'d': 2, 'da': ago(71 * HOUR), 'al': 2}, ALONE, 'archive', 3, 3),
        ({'d': 2, 'da': ago(73 * HOUR), 'al': 2}, ALONE, 'requeue', 1, 1),
        ({'d': 2, 'al': 2}, ALONE, 'requeue', 1, 1),
    ],
)
def test_deaths_are_counted_for_72_hours(meta, death, action, deaths, alone):
    before = time.time_ns() // 1_000_000
    v = verdict('1-1', message(meta), death, before)
    found = msgpack.unpackb(v.renewed)[4]
    assert (v.action, found['d'], found.get('al'), v.message) == (action, deaths, alone, message(meta))
    assert found['da'] == before
    assert msgpack.unpackb(v.info)['deaths'] == deaths


def test_deaths_tell_the_worker():
    for raw in (message({}), b'rubbish', 2_000_000):
        v = verdict('1-1', raw, Death(alone='1-1', worker='w1'), ago(0))
        assert msgpack.unpackb(v.info)['worker'] == 'w1'


@pytest.mark.parametrize('raw', [message(None, 3), b'rubbish', b''])
@pytest.mark.parametrize(
    ('death', 'action'),
    [(SHARED, 'count'), (ALONE, 'alone'), (CERTAIN, 'alone'), (Death(sole=True), 'alone'), (Death(True), 'requeue')],
)
def test_deaths_of_what_cannot_carry_them(raw, death, action):
    v = verdict('1-1', raw, death, ago(0))
    assert (v.action, v.message, v.renewed, len(v.digest)) == (action, raw, raw, 40 * (action != 'requeue'))


@pytest.mark.parametrize('death', [Death(stopped=True), Death(stopped=True, alone='1-1'), Death(alone='1-2')])
def test_what_has_not_died_with_its_worker(death):
    v = verdict('1-1', message({'d': 2, 'da': ago(1000), 'al': 2}), death, ago(0))
    assert (v.action, v.renewed) == ('requeue', v.message)


def test_units_of_deaths():
    """The script sweep takes seconds, meta has ms."""
    assert (DEATHS_LIFE, MAX_DEATHS) == (72 * 3600, 3)


@pytest.mark.parametrize(('meta', 'awaited'), [({}, False), ({'kr': 5}, True), ({'rn': 5}, True)])
def test_the_end_of_a_task_that_died_is_told_if_something_is_kept(meta, awaited):
    """Nobody waits for the end of other tasks."""
    for stopped in (True, False):
        assert verdict('1-1', message(meta), Death(stopped=stopped), NOW).awaited == awaited
    assert not verdict('1-1', message(), Death(), NOW).awaited


@pytest.mark.parametrize(
    'filed',
    [
        lambda c: failed(c, Ended(ok=False), max_retry=1),
        lambda c: failed(c, Ended(ok=False, says='snooze')),
        lambda c: failed(c, Ended(ok=False, arguments=True)),
        lambda c: Judge('w', Rules()).park(c, 'unknown function'),
        lambda c: Judge('w', Rules()).undecodable(c, ValueError('x')),
        lambda c: verdict('1-1', c.raw, Death(certain=True), NOW),
        lambda c: verdict('1-1', b'garbage', Death(certain=True), NOW),
        lambda c: verdict('1-1', 5_000_000, Death(certain=True), NOW),
    ],
)
def test_what_has_no_id_is_filed_under_one_of_its_own(filed):
    """Equal messages must not replace each other."""
    ids = {filed(claim(None, 3)).id for _ in range(10)}
    assert len(ids) == 10
    assert {len(id) for id in ids} == {24}


# Texts.


def test_no_control_character_is_kept():
    c = claim({})
    end = failed(c, Ended(ok=False, error='a\nb\x1b[2J\u2028c', stack='one\n\ttwo\r\x00'))
    info = info_of(end)
    assert info['error'] == 'a\\nb\\x1b[2J\\u2028c'
    assert info['stack'] == 'one\n\ttwo\\r\\x00'
