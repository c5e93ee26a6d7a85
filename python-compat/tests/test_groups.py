"""Gathered calls: how they are decoded, combined and fired, with a fake Redis."""

import types

import msgpack
import pytest

from godelayed import Options, call
from godelayed.calls import Stamp
from godelayed.keys import Keys
from godelayed.values import MAX_BYTES
from godelayed.worker.groups import Firing, Member, _sooner, compose
from godelayed.worker.lines import Lines
from godelayed.worker.link import RefusedError, UnansweredError, UnreachableError
from godelayed.worker.message import MessageError
from godelayed.worker.store import Store

F = 'example.com/app.F'


def packed(*args, key='daily', path=F):
    """Returns a call that the producer of this package gathers."""
    return Stamp(Options(group=key), 1, legacy=False).packed(call(path, *args))


def raw(payload, fixed=0, **meta):
    """Returns a call that another producer gathers. payload is a value, or bytes."""
    payload = payload if isinstance(payload, bytes) else msgpack.packb(payload)
    meta = {'id': 'x', 'at': 1, 'g': 'daily', 'gp': [fixed, 60_000, 0, 1_000], **meta}
    return msgpack.packb([F, payload, {k: v for k, v in meta.items() if v is not None}])


def arguments(message):
    return msgpack.unpackb(msgpack.unpackb(message)[1])


# Decoding.


@pytest.mark.parametrize(
    'c',
    [
        packed([1, 2]),
        packed('de', 7, [1, 2]),
        packed('de', []),
        packed(list(range(16))),
        packed([0] * 65_000),
        packed([1, [2, 3], {'a': [4], 'b': {}}]),
        packed([1], key='k' * 200),
        packed([1], path='example.com/' + 'p' * 200),
    ],
    ids=lambda c: f'{c.size} bytes',
)
def test_worker_and_producer_agree_on_a_gathered_call(c):
    """Whoever fires or joins a group must count as the producers of the calls did."""
    m = Member(c.message)
    assert (m.group, m.bytes, m.values) == (c.group, c.size, c.values)


@pytest.mark.parametrize(
    ('message', 'fixed', 'count'),
    [
        (raw([1, 2]), [], 2),
        (raw(b''), [], 0),
        (raw(None), [], 0),
        (raw(['de', [1, 2]], 1), ['de'], 2),
        (raw(['de', None], 1), ['de'], 0),
        (raw(['de', 1, 2], 1, n=3), ['de'], 2),  # a variadic function
        (raw(['de'], 1, n=1), ['de'], 0),
        (raw(b'\xdd\x00\x00\x00\x02\x01\x02'), [], 2),  # a longer header than necessary
        (raw(b'\xdc\x00\x02\x01\x02'), [], 2),
    ],
)
def test_members(message, fixed, count):
    m = Member(message)
    assert m.fixed == b''.join(map(msgpack.packb, fixed))
    assert (m.count, m.values) == (count, count)


@pytest.mark.parametrize(
    ('how', 'size'), [(None, 1_000), ([0, 5, 6, 7], 7), ([0, 5, 6, 0], 5_000), ([0, 5, 6, 5_001], 5_000)]
)
def test_how_many_calls_a_group_takes(how, size):
    assert Member(raw([1], gp=how)).size == size


@pytest.mark.parametrize(
    ('message', 'why'),
    [
        (msgpack.packb(['a:b', [], {}, 0, {'g': 'daily'}]), 'names no group'),
        (raw([1], g=None), 'names no group'),
        (raw('text'), 'arguments in an array'),
        (raw(['de', 1, [2]], 1), 'expected 1 arguments and a list, found 3'),
        (raw([], 1, n=0), 'expected 1 arguments and a list, found 0'),
        (raw(['de', 'fr'], 1), 'a list as the last argument'),
        (raw(b'\xdc\x00'), 'the end of the bytes'),
        (raw(b'\xdd\x00\x00\x00'), 'the end of the bytes'),
    ],
)
def test_what_is_no_member(message, why):
    with pytest.raises(MessageError, match=why):
        Member(message)


# Combining.


def test_one_call_has_the_lists_of_all_behind_the_fixed_arguments():
    raws = [packed('de', [i, i]).message for i in range(10)]
    (composed,), members = compose(raws, 100, 9, set())
    assert arguments(composed) == ['de', [i for i in range(10) for _ in range(2)]]
    assert len(members) == 10


def test_what_is_no_call_of_the_group_keeps_its_place():
    """It becomes pending unchanged, and the worker that claims it deals with it."""
    raws = [packed([1]).message, b'garbage', packed([2]).message, packed([3]).message, packed([4], key='x').message]
    calls, members = compose(raws, 100, 9, set())
    assert calls[1] == b'garbage'
    assert [arguments(c) for c in (calls[0], *calls[2:])] == [[1], [2, 3], [4]]
    assert [m is None for m in members] == [False, True, False, False, False]


def test_one_call_is_no_larger_than_a_message():
    raws = [packed([b'x' * 300_000]).message for _ in range(4)]
    (composed,), members = compose(raws, 100, 9, set())
    assert len(members) == 3
    assert 900_000 < len(composed) <= MAX_BYTES


def test_one_call_has_no_more_values_than_a_message():
    raws = [packed([0] * 30_000).message for _ in range(3)]
    (composed,), members = compose(raws, 100, 9, set())
    assert (len(members), len(arguments(composed))) == (2, 60_000)


def test_the_fixed_arguments_of_a_call_count_too():
    raws = [packed([0] * 30_000, [0] * 20_000).message for _ in range(2)]
    calls, members = compose(raws, 100, 9, set())
    assert (len(calls), len(members)) == (1, 1)


def test_no_more_calls_are_made_than_one_script_takes():
    calls, members = compose([b'garbage'] * 1_200, 5_000, 9, set())
    assert len(calls) == len(members) == 998


# Firing.


@pytest.mark.parametrize(('a', 'b', 'sooner'), [(-1, -1, -1), (-1, 5, 5), (5, -1, 5), (5, 3, 3), (0, 3, 0), (3, 0, 0)])
def test_the_next_look_is_when_the_next_group_is_due(a, b, sooner):
    assert _sooner(a, b) == sooner


class Redis:
    """Answers scripts with the given answers, one after the other; it raises those that are errors."""

    def __init__(self, **answers):
        self.answers = answers
        self.fired = []

    def run(self, script, keys, *args):
        answer = self.answers[script.name].pop(0)
        if script.name == 'fire':
            self.fired.append(args)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def firing():
    return Firing(
        types.SimpleNamespace(name='q', keys=Keys('q'), are_revoked=lambda link, ids: [False] * len(ids)), Lines()
    )


def test_calls_that_were_cancelled_meanwhile_are_looked_for_again(firing):
    message = packed([1]).message
    redis = Redis(peek=[[10, 0, message], [10, 4, message]], fire=[[2, 0], [1, -1]])
    assert firing._fire_group(redis, 'g') == -1
    assert [args[9] for args in redis.fired] == [0, 4]  # the version that peek returned


def test_the_next_call_says_when_the_group_is_due(firing):
    """The grace of the remaining calls begins with the first of them, not with the fire that left it behind."""
    raws = [raw([1], at=5), raw([2], at=6), raw([3], at=7)]
    redis = Redis(peek=[[2, 0, *raws], [2, 0, *raws[:2]]], fire=[[1, 40], [1, -1]])
    assert firing._fire_group(redis, 'g') == 40
    assert firing._fire_group(redis, 'g') == -1
    assert [args[1] for args in redis.fired] == [2, 2]
    assert [args[6] for args in redis.fired] == [7, 0]


@pytest.mark.parametrize('error', [UnreachableError('away'), UnansweredError('lost')])
def test_groups_that_redis_could_not_be_asked_about_are_tried_again(firing, error):
    """No other mover gets them for a while."""
    redis = Redis(ripe=[[0, b'a', b'b'], [-1]], peek=[error, [10, 0], [10, 0]], fire=[[0, -1], [0, -1]])
    with pytest.raises(type(error)):
        firing.fire(redis)
    assert firing.lent == ['a', 'b']
    assert firing.fire(redis) == -1
    assert [args[0] for args in redis.fired] == ['a', 'b']
    assert firing.lent == []


def test_a_group_whose_key_is_not_what_it_should_be_keeps_no_other_waiting(firing, caplog):
    redis = Redis(
        ripe=[[0, b'a', b'b'], [70]],
        peek=[RefusedError('peek: WRONGTYPE'), [10, 0, packed([1]).message]],
        fire=[[1, 30]],
    )
    assert firing.fire(redis) == 30
    assert [args[0] for args in redis.fired] == ['b']
    assert 'the calls of group a cannot be put together' in caplog.text


def test_cancelled_calls_of_a_group_are_found_on_each_page():
    """Redis is asked about 1,000 at a time."""
    packed_calls = [packed([i]) for i in range(2_001)]
    gone = {packed_calls[i].id for i in (0, 999, 1_000, 2_000)}
    forgiven = []
    store = types.SimpleNamespace(
        name='q',
        keys=Keys('q'),
        are_revoked=lambda link, ids: [id in gone for id in ids],
        forgive=lambda link, ids: forgiven.extend(ids),
    )
    redis = Redis(peek=[[5_000, 7, *[p.message for p in packed_calls]]], fire=[[1, -1]])
    assert Firing(store, Lines())._fire_group(redis, 'g') == -1
    (args,) = redis.fired
    assert arguments(args[-1]) == [i for i in range(2_001) if i not in (0, 999, 1_000, 2_000)]
    assert set(forgiven) == gone


def test_who_waits_for_a_cancelled_call_of_a_group_is_told():
    sent = []
    link = types.SimpleNamespace(do=lambda *command: sent.append(command))
    Store.forgive(types.SimpleNamespace(keys=Keys('q')), link, ['a', 'b'])
    assert sent == [
        ('ZREM', Keys('q').revoked, 'a', 'b'),
        ('PUBLISH', 'q_ended:a', 'canceled'),
        ('PUBLISH', 'q_ended:b', 'canceled'),
    ]
