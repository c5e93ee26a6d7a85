"""What the worker accepts as a message and what it refuses: the golden vectors of testdata/wire, and the limits of
docs/PROTOCOL.md."""

import msgpack
import pytest
from test_wire import raw, says, unpack, untag, vectors

from godelayed.values import _times
from godelayed.worker.message import Message, MessageError
from godelayed.worker.skim import PROTOCOL, WORKER, check_message

GOOD = vectors('messages.json') + vectors('keakon.json')
TEXT = 'x' * 70_000  # more bytes than a message may have values, so the worker checks it in detail


@pytest.mark.parametrize('vector', vectors('hostile.json'))
def test_hostile(vector):
    data = raw(vector)
    if vector['name'].startswith('payload ') and data[:3] == b'\x92\xa1f' and data[3] in (0xC4, 0xC6):
        assert Message(data, PROTOCOL).payload  # Go workers look at payloads
        return
    with pytest.raises(MessageError, match='^expected .*found') as e:
        Message(data, PROTOCOL)
    assert len(str(e.value)) < 300


@pytest.mark.parametrize('vector', GOOD)
def test_message(vector):
    data = raw(vector)
    m = Message(data, PROTOCOL)
    kind = vector['kind']
    assert (m.path, m.python, m.retry) == (vector['path'], kind.startswith('py'), vector.get('retry', 0))
    assert m.extended == kind.endswith('-extended')
    if 'payload' in vector:
        says(vector, 'payload', unpack(m.payload))
    else:
        assert not m.payload
    if not vector.get('foreign'):
        assert m.args == (_times(untag(vector.get('args'))) or [])
        assert m.kwargs == (_times(untag(vector.get('kwargs'))) or {})
    assert m.meta == (_times(untag(vector['meta'])) if 'meta' in vector else {})
    check_message(data, PROTOCOL)  # also those that are too small for a detailed check
    for n in range(len(data)):
        with pytest.raises(MessageError):
            Message(data[:n], PROTOCOL)
        with pytest.raises(MessageError):
            check_message(data[:n], PROTOCOL)


@pytest.mark.parametrize('vector', vectors('values.json'))
def test_value(vector):
    data = raw(vector)
    check_message(data, PROTOCOL)
    for n in range(len(data)):
        with pytest.raises(MessageError):
            check_message(data[:n], PROTOCOL)


@pytest.mark.parametrize('char', ['x', 'é', '€', '😀'])
def test_a_path_is_measured_in_bytes(char):
    most = 512 // len(char.encode())
    assert Message(msgpack.packb([char * most])).path == char * most
    with pytest.raises(MessageError, match='expected a path of 1 to 512 bytes'):
        Message(msgpack.packb([char * (most + 1)]))


def nested(depth, inner=b'\xc0'):
    return b'\x91' * depth + inner


def numbers(n):
    """Returns an array of n small numbers in bytes."""
    return b'\xdd' + n.to_bytes(4, 'big') + b'\x00' * n


@pytest.mark.parametrize(
    ('fits', 'more'),
    [
        (b'\x92\xa3a:b' + nested(31), b'\x92\xa3a:b' + nested(32)),
        (b'\x93\xa3a:b\x90\x81\xa1k' + nested(30), b'\x93\xa3a:b\x90\x81\xa1k' + nested(31)),
        # Values that the map loses because its key appears again count as well.
        (
            b'\x93\xa3a:b\x90\x82\xa1k' + nested(30) + b'\xa1k\xc0',
            b'\x93\xa3a:b\x90\x82\xa1k' + nested(31) + b'\xa1k\xc0',
        ),
        (b'\x95\xa3a:b\x90\x80\x00\x81\xa3own' + nested(30), b'\x95\xa3a:b\x90\x80\x00\x81\xa3own' + nested(31)),
        (b'\x93\xa1f\xc0\x81\xa3own' + nested(30), b'\x93\xa1f\xc0\x81\xa3own' + nested(31)),
        (b'\x92\xa3a:b' + numbers(65_533), b'\x92\xa3a:b' + numbers(65_534)),
    ],
)
def test_limits(fits, more):
    Message(fits, PROTOCOL)
    with pytest.raises(MessageError, match='limit allows|inside one another'):
        Message(more, PROTOCOL)


def test_worker_has_room_for_what_meta_grows_by():
    assert (WORKER.size, WORKER.values, WORKER.depth) == (PROTOCOL.size + 4096, PROTOCOL.values + 64, PROTOCOL.depth)
    Message(b'\x92\xa3a:b\x92' + numbers(60_000) + numbers(5_595))
    with pytest.raises(MessageError, match='limit allows'):
        Message(b'\x92\xa3a:b\x92' + numbers(60_000) + numbers(5_596))
    long = msgpack.packb(['a:b', ['x' * (WORKER.size - 11)]])
    assert len(Message(long).raw) == WORKER.size
    with pytest.raises(MessageError, match='at most 1,052,672 bytes, found 1,052,673'):
        Message(long + b'\x00')


@pytest.mark.parametrize('args', [b'\x90', msgpack.packb([TEXT])])
@pytest.mark.parametrize(
    'meta',
    [
        b'\x82\xa2id\xa1a\xa2id\xa1a',
        b'\x82\xa1n\xcc\x81\xa1n\x01',  # it ends like a map of one pair
        b'\x82\xa2id\xa1a\xd9\x02id\xa1b',
        b'\x82\xa2us\xc2\xa2us\xc3',
        b'\x81\xa1h\x82\xa1a\xa1b\xa1a\xa1c',
        b'\xde\x00\x02\xa1n\x01\xa1n\x01',
    ],
)
def test_key_of_meta_twice(args, meta):
    for head in (
        b'\x95\xa3a:b' + args + b'\x80\x00',
        b'\xdc\x00\x05\xa3a:b' + args + b'\x80\x00',
        b'\x93\xa1f\xc0',
        b'\xdc\x00\x03\xa1f\xc0',
    ):
        with pytest.raises(MessageError, match='once, found .* again'):
            Message(head + meta)


def test_keys_that_may_stand_twice():
    """Arguments of Python may have duplicate keys: Go accepts them too."""
    for tail, meta in ((b'', {}), (b'\x00\x81\xa3own\x01', {'own': 1})):
        m = Message(bytes([0x93 + 2 * bool(tail)]) + b'\xa3a:b\x91\x82\xa1k\x01\xa1k\x02\x82\xa1k\x01\xa1k\x02' + tail)
        assert (m.args, m.kwargs, m.meta) == ([{'k': 2}], {'k': 2}, meta)


@pytest.mark.parametrize(
    'meta',
    [
        {'gp': [1 << 31, 0, 0, 0]},
        {'gp': [0, 0, 0, 1 << 31]},
        {'gp': [0, 1 << 63, 0, 0]},
        {'rd': [1 << 63]},
        {'h': {'k': 'v' * 8192}},
        {'h': {}},
        {'h': {'k': 1}},
        {'h': {f'{i}': '' for i in range(65)}},
        {'rd': []},
        {'rd': [1] * 65},
        {'rd': [-1]},
        {'gp': [1, 2, 3]},
        {'us': 1},
        {'id': ''},
        {'id': 'é' * 257},
        {'uk': b'k:a'},
        {'d': True},
        {'d': 1 << 31},
        {'xp': 1 << 63},
        {'at': -1},
        {'mr': -(1 << 31) - 1},
    ],
)
def test_meta_that_go_refuses(meta):
    for message in (['a:b', [], {}, 0, meta], ['f', None, meta]):
        with pytest.raises(MessageError):
            Message(msgpack.packb(message))


@pytest.mark.parametrize(
    'meta',
    [
        {'own': {1: [True, 'x']}},
        {'gp': [(1 << 31) - 1, 1 << 40, 0, 0]},
        {'rd': [(1 << 63) - 1]},
        {'h': {'k': 'v' * 8191}},
        {'h': {f'{i}': '' for i in range(64)}},
        {'rd': [1] * 64},
        {'us': False},
        {'id': 'é' * 256},
        {'d': (1 << 31) - 1, 'xp': (1 << 63) - 1, 'mr': -(1 << 31)},
    ],
)
def test_meta_that_go_reads(meta):
    for message in (['a:b', [], {}, 0, meta], ['f', None, meta]):
        assert Message(msgpack.packb(message)).meta == meta


def test_what_is_looked_at_closely_is_read_alike():
    parts = [
        'a:b',
        [TEXT, [[1, 2.5, None, b'x', True, -5, 1 << 40]] * 40],
        {'k': msgpack.ExtType(5, b'x')},
        3,
        {'id': 'x', 'own': [1]},
    ]
    m = Message(msgpack.packb(parts))
    assert [m.path, m.args, m.kwargs, m.retry, m.meta] == parts


@pytest.mark.parametrize(
    ('meta', 'keep'),
    [({}, 0), ({'kr': 5}, 5), ({'rn': 7}, 7), ({'kr': 5, 'rn': 7}, 7), ({'kr': 9, 'rn': 7}, 9), ({'kr': 0}, 0)],
)
def test_for_how_long_something_is_kept(meta, keep):
    """As long as the result or the task is kept, whichever is longer."""
    assert Message(msgpack.packb(['a:b', [], {}, 0, meta])).keep == keep


@pytest.mark.parametrize(
    ('message', 'written'),
    [
        (
            ['a:b', [1], {'x': 2}, 3, {'zzz': 1, 'rt': 1, 'id': 'x', 'n': 0, 'd': 1}],
            ['a:b', [1], {'x': 2}, 3, {'id': 'x', 'n': 0, 'rt': 2, 'zzz': 1}],
        ),
        (['f', b'p', {'zzz': 1, 'mr': 0, 'at': 0}], ['f', b'p', {'mr': 0, 'rt': 2, 'zzz': 1}]),
        (['f', b'p'], ['f', b'p', {'rt': 2}]),
        (['f'], ['f', None, {'rt': 2}]),
    ],
)
def test_meta_that_is_written_anew(message, written):
    """The keys have the order of the protocol; zero values are left out, and keys that newer versions have added are
    kept."""
    raw = Message(msgpack.packb(message)).with_meta(rt=2, d=0)
    assert raw == msgpack.packb(written)


def test_a_plain_message_takes_no_meta():
    for parts in (['a:b'], ['a:b', [1], {}, 3]):
        with pytest.raises(ValueError, match='no place for meta'):
            Message(msgpack.packb(parts)).with_meta(rt=1)


def test_a_plain_message_with_another_number_of_retries_keeps_its_other_bytes():
    raw = b'\x94\xd9\x03a:b\xdc\x00\x01\x01\x80\x03'  # longer headers than necessary
    assert Message(raw).with_retry(2) == raw[:-1] + b'\x02'
