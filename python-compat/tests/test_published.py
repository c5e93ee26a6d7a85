"""Queues with check=True: calls are compared with what workers publish."""

import contextlib
import datetime
import json
import types

import pytest

import godelayed.published
from godelayed import ArgumentsError, call
from godelayed.published import _listing

INT, TEXT = {'kind': 'int32'}, {'kind': 'string'}
WELCOME, VISIT, SEND = 'app/mail.Welcome', 'app/shop.Visit', 'post.tasks:send'
ADDRESS = {
    'kind': 'struct',
    'fields': [
        {'name': 'Street', 'type': TEXT},
        {'name': 'Numbers', 'type': {'kind': 'list', 'elem': {'kind': 'int8'}}},
        {'name': 'Next', 'type': {'kind': 'optional', 'elem': {'kind': 'ref', 'name': 'app/shop.Address'}}},
    ],
}
MAP = {'kind': 'map', 'key': TEXT, 'elem': {'kind': 'float64'}}
FUNCTIONS = [
    {
        'path': WELCOME,
        'aliases': ['app/letters.Welcome'],
        'parameters': [{'go': 'int32', 'type': INT}, {'go': 'string', 'type': TEXT}],
    },
    {
        'path': VISIT,
        'variadic': True,
        'optional': 2,
        'parameters': [
            {'go': 'shop.Address', 'type': {'kind': 'ref', 'name': 'app/shop.Address'}},
            {'go': '[]uint8', 'type': {'kind': 'list', 'elem': {'kind': 'uint8'}}},
            {'go': '[]bool', 'type': {'kind': 'list', 'elem': {'kind': 'bool'}}},
        ],
    },
    {
        'path': 'app/kinds.All',
        'parameters': [
            {'go': '[4]byte', 'type': {'kind': 'bytes', 'length': 4}},
            {'go': 'time.Time', 'type': {'kind': 'time'}},
            {'go': 'map[string]float64', 'type': MAP},
            {'go': 'float32', 'type': {'kind': 'float32'}},
        ],
    },
    {
        'path': SEND,
        'optional': 1,
        'parameters': [
            {'name': 'to', 'go': 'str', 'type': TEXT},
            {'name': 'times', 'go': 'int', 'type': {'kind': 'int64'}},
        ],
    },
]
NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)


def publish(redis, worker, functions=FUNCTIONS, **more):
    listed = {'version': 1, 'functions': functions, 'types': {'app/shop.Address': ADDRESS}, **more}
    redis.sadd('mail_workers', worker)
    redis.hset('mail_functions', worker, json.dumps(listed))


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the test moves."""
    now = [100.0]
    monkeypatch.setattr(godelayed.published, 'time', types.SimpleNamespace(monotonic=lambda: now[0]))
    return now


FITS = [
    call(WELCOME, 7, 'en'),
    call('app/letters.Welcome', 7, 'en'),
    call(VISIT, {'Street': 'Elm', 'Numbers': [7], 'Next': None}, [255], True, False),
    call(VISIT, {'Next': {'Next': {}}}, None),
    call(VISIT, {}, [], [True]),
    call(VISIT, ['Elm', [7]]),
    call('app/kinds.All', b'abcd', NOW, {'x': 1, 'y': 2.5}, 2**24),
    call('app/kinds.All', b'abcd', NOW, None, 0.5),
    call(SEND, 'ann'),
    call(SEND, 'ann', times=1 << 63, quiet=True),
    call(SEND, to='ann', times=True),
]
MISFITS = [
    (call(WELCOME, 7), 'expected the arguments of mail.Welcome(int32, string), found 1'),
    (call(WELCOME, 7, 'en', 1), 'found 3'),
    (call(WELCOME, 'secret', 'en'), 'argument 1: expected int32, as in mail.Welcome(int32, string), found a str'),
    (call(WELCOME, 1 << 31, 'en'), 'found the number 2147483648'),
    (call(WELCOME, True, 'en'), 'found a bool'),
    (call(WELCOME, 7, None), 'argument 2: expected string, as in mail.Welcome(int32, string), found None'),
    (call(VISIT, {'Strasse': 'secret'}), 'expected fields of shop.Address: Street, Numbers, Next, as in'),
    (call(VISIT, {'Next': {'Numbers': [1, 128]}}), 'expected int8 at .Next.Numbers[1], as in'),
    (call(VISIT, [1, 2, 3, 4]), 'expected at most 3 fields of shop.Address'),
    (call(VISIT, 7), 'expected shop.Address, as in'),
    (call(VISIT, {}, [256]), 'expected uint8 at [0], as in'),
    (call(VISIT, {}, [], True, 'secret'), 'argument 4: expected bool, as in'),
    (call('app/kinds.All', b'abc', NOW, {}, 1.5), 'argument 1: expected [4]byte'),
    (call('app/kinds.All', b'abcd', 'secret', {}, 1.5), 'argument 2: expected time.Time'),
    (call('app/kinds.All', b'abcd', NOW, {1: 1.0}, 1.5), 'expected string at a key'),
    (call('app/kinds.All', b'abcd', NOW, {'x': 'secret'}, 1.5), 'expected float64 at a value'),
    (call('app/kinds.All', 'text', NOW, {}, 1.5), 'argument 1: expected [4]byte'),
    (call('app/kinds.All', b'abcd', NOW, {'x': (1 << 53) + 1}, 1.5), 'expected float64 at a value'),
    (call('app/kinds.All', b'abcd', NOW, {}, 0.1), 'argument 4: expected float32'),
    (call('app/kinds.All', b'abcd', NOW, {}, 1e300), 'argument 4: expected float32'),
    (call(SEND), 'expected the arguments of post.tasks:send(to str, times int), found 0'),
    (call(SEND, 1), 'argument 1: expected str, as in'),
    (call(SEND, 'ann', times='secret'), 'argument times: expected int, as in'),
    (call(SEND, 'ann', to='secret'), 'argument to of post.tasks:send(to str, times int): expected it once'),
    (call('app/mail.Welcom', 7, 'en'), 'did you mean app/mail.Welcome?'),
    (call('mail.Welcome', 7, 'en'), 'did you mean app/mail.Welcome?'),
    (call('post.tasks:sent', 'ann'), 'did you mean post.tasks:send?'),
    (call('app/search.Index'), 'has registered: app/kinds.All, app/letters.Welcome, app/mail.Welcome'),
]


def test_calls(queue, redis):
    publish(redis, 'w')
    q = queue(check=True)
    q.delay_many(FITS)
    assert len(q) == len(FITS)
    for wrong, text in MISFITS:
        with pytest.raises(ArgumentsError) as e:
            q.delay(wrong.path, *wrong.args, **wrong.kwargs)
        assert text in str(e.value)
        assert 'secret' not in str(e.value)
        with pytest.raises(ArgumentsError, match='^call 2: '):
            q.delay_many([FITS[0], wrong])
    assert len(q) == len(FITS)
    queue().delay(WELCOME)  # without check
    q.options(group='g').delay(VISIT, {}, [], [True])


def test_what_cannot_be_compared(queue, redis, clock):
    q = queue(check=True)
    q.delay(WELCOME)  # nobody runs
    clock[0] += 1
    publish(redis, 'py', [FUNCTIONS[-1]])
    q.delay(WELCOME)  # only Python runs
    with pytest.raises(ArgumentsError):
        q.delay(SEND)
    publish(redis, 'part', [FUNCTIONS[-1]], more=3)
    clock[0] += 10
    q.delay('post.tasks:other')  # which may be among the three others
    with pytest.raises(ArgumentsError):
        q.delay(SEND)
    redis.sadd('mail_workers', 'silent')
    q.delay(SEND)  # what it runs is unknown


def test_deploys(queue, redis, clock):
    publish(redis, 'old')
    q = queue(check=True)
    q.delay(WELCOME, 7, 'en')
    newer = {**FUNCTIONS[0], 'parameters': [{'go': 'bool', 'type': {'kind': 'bool'}}]}
    with pytest.raises(ArgumentsError):
        q.delay(WELCOME, True)
    publish(redis, 'new', [newer])
    q.delay(WELCOME, True)  # although it has just looked
    q.delay(WELCOME, 7, 'en')
    with pytest.raises(ArgumentsError):
        q.delay(WELCOME, 1.5)
    redis.srem('mail_workers', 'old')
    q.delay(WELCOME, 7, 'en')  # as it was ten seconds ago at most
    clock[0] += 10
    with pytest.raises(ArgumentsError):
        q.delay(WELCOME, 7, 'en')
    publish(redis, 'new', [newer, {'path': 'app/late.Late', 'parameters': []}])
    clock[0] += 1
    q.delay('app/late.Late')


def test_reads_are_few(queue, redis, clock):
    publish(redis, 'w')
    q = queue(check=True)

    def reads():
        stats = redis.info('commandstats')
        return stats.get('cmdstat_smembers', {}).get('calls', 0)

    before = reads()
    for _ in range(5):
        q.delay(WELCOME, 7, 'en')
        q.options(retry=1).delay(WELCOME, 7, 'en')
    assert reads() == before + 1
    clock[0] += 10
    q.delay(WELCOME, 7, 'en')
    assert reads() == before + 2


@pytest.mark.parametrize('text', [None, 7, b'', b'{', b'[]', b'[' * 100_000, b'{"version": 2, "functions": []}'])
def test_strange_lists(text):
    assert _listing(text) is None


def test_strange_functions():
    endless = {'kind': 'optional', 'elem': {'kind': 'ref', 'name': 'T'}}
    strange = [
        {'path': 'f', 'variadic': True, 'optional': -3},
        {'path': 'g', 'optional': 9, 'parameters': [{}]},
        {
            'path': 'h',
            'parameters': [{'type': {'kind': 'ref', 'name': 'T'}}, {'type': {'kind': 'struct', 'fields': [7, {}]}}],
        },
        {'path': 'i', 'parameters': [{'type': {'kind': 'new'}}, 7, {'type': 'x'}, {'type': {'kind': 'list'}}]},
        7,
        {},
    ]
    listing = _listing(json.dumps({'version': 1, 'functions': strange, 'types': {'T': endless}}).encode())
    for f in listing.functions.values():
        for n in range(5):
            for v in (None, 1, 'x', [1.5], {'a': None}):
                with contextlib.suppress(godelayed.published.MisfitError):
                    f.check([v] * n, {'': v})
