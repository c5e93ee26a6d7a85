"""Messages, locks and groups of calls with options, compared with the golden vectors that Go's tests use as well."""

import datetime
import json
import sys
from pathlib import Path

import msgpack
import pytest

from godelayed import ArgumentsError, Options, Queue
from godelayed.calls import Call, Stamp

DOC = json.loads((Path(__file__).resolve().parents[2] / 'testdata' / 'wire' / 'calls.json').read_text(encoding='utf-8'))
UTC = datetime.timezone.utc


def untag(value):
    """Converts the notation of testdata/wire/README.md to the values that a caller gives."""
    if isinstance(value, list):
        return [untag(v) for v in value]
    if isinstance(value, dict):
        if '$bin' in value:
            return bytes.fromhex(value['$bin'])
        if '$time' in value:
            seconds, nanoseconds = value['$time']
            return datetime.datetime.fromtimestamp(seconds, UTC) + datetime.timedelta(microseconds=nanoseconds // 1000)
        if '$map' in value:
            return {untag(k): untag(v) for k, v in value['$map']}
        return {k: untag(v) for k, v in value.items()}
    return value


@pytest.mark.parametrize('vector', [pytest.param(v, id=v['name']) for v in DOC['vectors']])
def test_golden_call(vector, monkeypatch):
    monkeypatch.setattr(sys.modules[Stamp.__module__], 'new_id', lambda: vector['id'])
    options = {k: untag(v) if k != 'headers' else v for k, v in vector['options'].items()}
    plain = ':' in vector['path'] and not vector.get('extended', False)
    stamp = Stamp(Options().merged(**options), DOC['now'], legacy=plain)
    packed = stamp.packed(Call(vector['path'], tuple(untag(vector['args'])), untag(vector.get('kwargs', {}))))
    assert packed.message.hex() == vector['hex']
    id = '' if plain and not options.keys() & {'countdown', 'eta'} else vector['id']
    assert (packed.id, packed.lock, packed.group) == (id, vector.get('lock', ''), vector.get('group', ''))
    if packed.group:
        assert [packed.size, packed.values] == vector['list']


NAIVE = datetime.datetime(2030, 1, 1)
AWARE = datetime.datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ('options', 'why'),
    [
        ({'retries': 3}, "unknown option 'retries'"),
        ({'retry': '3'}, 'retry: expected an int'),
        ({'retry': True}, 'retry: expected an int'),
        ({'eta': NAIVE}, 'eta: expected a datetime with a time zone'),
        ({'deadline': NAIVE}, 'deadline: expected a datetime with a time zone'),
        ({'retry_until': NAIVE}, 'retry_until: expected a datetime with a time zone'),
        ({'eta': 5}, 'eta: expected a datetime'),
        ({'eta': AWARE, 'countdown': 5}, 'expected one of them'),
        ({'debounce': 5, 'countdown': 5}, 'expected one of them'),
        ({'countdown': '5'}, 'countdown: expected seconds'),
        ({'countdown': float('nan')}, 'countdown: expected seconds'),
        ({'countdown': 1e13}, 'countdown: expected seconds'),
        ({'task_id': ''}, 'task_id: expected 1 to 256 bytes'),
        ({'task_id': 'x' * 257}, 'task_id: expected 1 to 256 bytes'),
        ({'task_id': 7}, 'task_id: expected a str'),
        ({'task_id': '\ud800'}, 'task_id: expected text in Unicode'),
        ({'timeout': -1}, 'timeout: expected a positive'),
        ({'ttl': 0}, 'ttl: expected a positive'),
        ({'max_backoff': 0}, 'max_backoff: expected a positive'),
        ({'retention': -1}, 'retention: expected no negative'),
        ({'deadline': datetime.datetime(1960, 1, 1, tzinfo=UTC)}, 'deadline: expected a time after 1970'),
        ({'backoff': []}, 'backoff: expected 1 to 64'),
        ({'backoff': [1] * 65}, 'backoff: expected 1 to 64'),
        ({'backoff': [-1]}, 'none negative'),
        ({'backoff': 'x'}, 'backoff: expected durations'),
        ({'headers': {'a': 1}}, 'headers: expected strings'),
        ({'headers': {'': 'a'}}, 'headers: expected strings'),
        ({'headers': {str(i): '' for i in range(65)}}, 'headers: expected at most 64'),
        ({'headers': {'a': 'x' * 8192}}, 'headers: expected at most 64 and 8192 bytes, found 1 and 8193'),
        ({'unique': 0}, 'unique: expected a positive'),
        ({'unique_key': 'x'}, 'unique_key: expected unique as well'),
        ({'unique': 5, 'unique_key': 'x' * 511}, 'unique_key: expected 1 to 510'),
        ({'until_start': True}, 'until_start: expected a lock'),
        ({'until_start': 1, 'unique': 5}, 'until_start: expected True or False'),
        ({'on_conflict': 'skip'}, 'on_conflict: expected a lock or an id'),
        ({'on_conflict': 'drop', 'unique': 5}, 'on_conflict: expected "error"'),
        ({'on_conflict': 'replace', 'unique': 5, 'task_id': 'x'}, 'cannot replace one of its id'),
        ({'debounce': 5, 'task_id': 'x'}, 'cannot replace one of its id'),
        ({'debounce': 0}, 'debounce: expected a positive'),
        ({'front': True, 'countdown': 5}, 'options front and'),
        ({'front': True, 'debounce': 5}, 'options front and'),
        ({'group': ''}, 'group: expected 1 to 256'),
        ({'group': 'x', 'unique': 5}, 'options group and unique'),
        ({'group': 'x', 'task_id': 'y'}, 'options group and task_id'),
        ({'group': 'x', 'front': True}, 'options group and front'),
        ({'group': 'x', 'group_max_size': 5001}, 'group_max_size: expected 1 to 5000'),
        ({'group': 'x', 'group_grace': 0}, 'group_grace: expected a positive'),
        ({'group_grace': 5}, 'group_grace: expected group as well'),
    ],
)
def test_options_that_cannot_be(options, why):
    with pytest.raises(ArgumentsError, match=why):
        Options().merged(**options)


@pytest.mark.parametrize(
    ('retry', 'go', 'python', 'fourth'),
    [(None, None, None, 0), (3, 3, None, 3), (0, 0, 0, 0), (-1, 0, None, -1), (1 << 40, 1 << 30, None, 1 << 30)],
)
def test_a_negative_number_of_retries_is_for_ever_in_python_and_none_in_go(retry, go, python, fourth):
    stamp = Stamp(Options(retry=retry), 0, legacy=False)
    assert msgpack.unpackb(stamp.packed(Call('a.B', (), {})).message)[2].get('mr') == go
    _, _, _, found, meta = msgpack.unpackb(stamp.packed(Call('a:b', (), {})).message)
    assert (found, meta.get('mr')) == (fourth, python)


def test_which_way_parts_of_a_millisecond_are_rounded():
    """As in Go, a lock and a countdown last no longer than asked, and limits of a run are no shorter."""
    assert Options(unique=0.0015).life == 1
    assert Options(debounce=0.0015).place == ('in', 1)
    assert Options(countdown=0.0015).place == ('in', 1)
    assert Options(timeout=0.0015, ttl=0.0015, max_backoff=0.0015).extra == {'to': 2, 'xp': 2, 'rc': 2}
    assert Options(keep_result=0.0015, backoff=0.0015).extra == {'kr': 1, 'rd': [1]}
    for name in ('unique', 'debounce'):
        with pytest.raises(ArgumentsError, match=f'{name}: expected a positive'):
            Options().merged(**{name: 0.0005})


@pytest.mark.parametrize(
    ('options', 'call', 'why'),
    [
        ({}, Call('a.B', (), {'x': 1}), 'no keyword arguments'),
        ({'group': 'x'}, Call('a.B', (), {}), 'expected a list as the last argument'),
        ({'group': 'x'}, Call('a.B', (1,), {}), 'found a int'),
        ({'group': 'x'}, Call('a:b', ([1],), {}), 'expected a Go function'),
        ({'group': 'x'}, Call('a.B', (1, 1j, [1]), {}), 'argument 2: a complex'),
        ({'group': 'x'}, Call('a.B', (1, 2, [1, 1j]), {}), r'argument 3\[1\]: a complex'),
        ({}, Call('a.B', (1, 1j), {}), 'argument 2: a complex'),
        ({}, Call('a:b', (1, 1j), {}), 'argument 2: a complex'),
        ({}, Call('a:b', (), {'x': [1j]}), r'argument x\[0\]: a complex'),
        ({}, Call('a:b', (), {'\ud800': 1}), 'a lone surrogate'),
        ({'timeout': 5}, Call('a:b', (), {}), 'has no options but retry, eta, countdown and front'),
        ({'unique': 5}, Call('a:b', (), {}), 'has no options but'),
        ({'task_id': 'x'}, Call('a:b', (), {}), 'has no options but'),
        ({}, Call('a.B', ('x' * (1 << 20),), {}), 'expected at most 1,048,576'),
        ({}, Call('a:b', ([0] * 65_000,), {'x': [0] * 600}), '65,536 values'),
    ],
)
def test_calls_that_cannot_be(options, call, why):
    with pytest.raises(ArgumentsError, match=why):
        Stamp(Options().merged(**options), 0, legacy=True).packed(call)


def test_options_add_up():
    o = Options().merged(retry=3, unique=5).merged(retry=None, keep_result=1)
    assert (o.retry, o.unique, o.keep_result, o.kept) == (None, 5, 1, True)
    headers = {'a': 'b'}
    o = Options().merged(headers=headers)
    headers['a'] = 'c'
    assert o.headers == {'a': 'b'}


@pytest.mark.parametrize(
    'name', ['', 'x' * 129, 'a b', 'a\n', 'mail_noti', 'mail_results', 'mail_gathered', 'a_group:b', 'a_history:b', 7]
)
def test_queue_names_that_cannot_be(name):
    import redis

    with pytest.raises(ArgumentsError):
        Queue(name, redis.Redis())
