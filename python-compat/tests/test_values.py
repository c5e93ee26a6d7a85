"""As what Python values are sent, and which of them are refused."""

import dataclasses
import datetime
import decimal
import enum
import types
import uuid

import msgpack
import pytest

from godelayed.errors import ArgumentsError, RangeError
from godelayed.values import MAX_ELEMENTS, Plain, pack, unpack

UTC = datetime.timezone.utc


class Color(enum.Enum):
    RED = 'red'


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Name(str):
    pass


class Model:
    """Like a model of pydantic."""

    def __iter__(self):
        return iter(())

    def model_dump(self):
        return {}


class Array:
    """Like an array or a number of numpy."""

    def tolist(self):
        return [1]


def packed(args):
    return pack(Plain('f').arguments(args, 1))


@pytest.mark.parametrize(
    ('value', 'wire'),
    [
        (None, None),
        (True, True),
        (0, 0),
        (-(1 << 63), -(1 << 63)),
        ((1 << 64) - 1, (1 << 64) - 1),
        (1.5, 1.5),
        (float('inf'), float('inf')),
        ('', ''),
        ('grüße 😀', 'grüße 😀'),
        (b'\x00\xff', b'\x00\xff'),
        (bytearray(b'x'), b'x'),
        (memoryview(b'x'), b'x'),
        ((1, (2,)), [1, [2]]),
        ([], []),
        ({}, {}),
        ({'a': {1: [True]}}, {'a': {1: [True]}}),
        (Color.RED, 'red'),
        (Level.HIGH, 3),
        (Name('n'), 'n'),
        ({Color.RED: 1}, {'red': 1}),
        (uuid.UUID(int=5), '00000000-0000-0000-0000-000000000005'),
        (Point(1, 2.5), {'x': 1, 'y': 2.5}),
        ([Point(1, 2.5)], [{'x': 1, 'y': 2.5}]),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, 678, UTC), datetime.datetime(2026, 1, 2, 3, 4, 5, 678, UTC)),
        (
            datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            datetime.datetime(2026, 1, 2, 1, tzinfo=UTC),
        ),
    ],
)
def test_travels(value, wire):
    got = unpack(packed((value,)))
    assert got == [wire]
    assert type(got[0]) is type(wire)
    assert unpack(pack(Plain('f').keywords({'k': value}, 1))) == {'k': wire}


@pytest.mark.parametrize(
    ('value', 'error', 'why'),
    [
        (1 << 64, RangeError, 'argument 1: expected an integer of 64 bits, found one of 65'),
        (-(1 << 63) - 1, OverflowError, '64 bits'),
        ([{'k': 1 << 70}], OverflowError, r"argument 1\[0\]\['k'\]"),
        (datetime.datetime(2026, 1, 2), TypeError, 'naive'),
        (datetime.date(2026, 1, 2), TypeError, 'send an aware datetime'),
        (datetime.timedelta(1), TypeError, 'send a number'),
        (decimal.Decimal('1.10'), TypeError, r'a Decimal has no form on the wire; send str\(value\), or an int'),
        (types.MappingProxyType({'a': 1}), TypeError, r'send dict\(value\)'),
        (Model(), TypeError, r'a Model has no form on the wire; send value\.model_dump\(\)'),
        (Array(), TypeError, r'send value\.tolist\(\), which makes plain numbers'),
        ({1, 2}, TypeError, 'send a list'),
        (1j, TypeError, 'a complex has no form on the wire'),
        (object(), ArgumentsError, 'a object has no form'),
        (len, TypeError, 'send its result'),
        ('\ud800', TypeError, 'surrogate'),
        ({None: 1}, TypeError, 'keys that are str, int or bool, found NoneType'),
        ({(1,): 1}, TypeError, 'found tuple'),
        ({Color.RED: 1, 'red': 2}, TypeError, "two keys travel as 'red'"),
    ],
)
def test_is_refused(value, error, why):
    with pytest.raises(error, match=why):
        packed((value,))


def test_limits():
    packed(([0] * (MAX_ELEMENTS - 3),))
    with pytest.raises(ArgumentsError, match='65,536 values'):
        packed(([0] * MAX_ELEMENTS,))
    most = dict.fromkeys(range(MAX_ELEMENTS // 2 - 2), 0)
    packed((most,))
    with pytest.raises(ArgumentsError, match='65,536 values'):
        packed(({**most, -1: 0, -2: 0},))


@pytest.mark.parametrize('around', [lambda v: [v], lambda v: (v,), lambda v: {'k': v}])
def test_how_deep_values_may_be(around):
    deep = 1
    for _ in range(31):
        deep = around(deep)
    packed((deep,))
    with pytest.raises(ArgumentsError, match='32 containers'):
        packed((around(deep),))


@pytest.mark.parametrize('loop', [[], {}])
def test_what_contains_itself_is_refused(loop):
    loop.append(loop) if isinstance(loop, list) else loop.update(k=loop)
    with pytest.raises(ArgumentsError, match='32 containers'):
        packed((loop,))


@pytest.mark.parametrize(
    'value',
    [
        0,
        'é',
        b'x',
        None,
        1.5,
        msgpack.Timestamp(1, 1),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
        uuid.UUID(int=5),
        bytearray(b'x'),
    ],
    ids=lambda v: type(v).__name__,
)
def test_whatever_its_type_a_value_counts_as_one(value):
    """A worker counts values as they are sent, and refuses too many."""
    packed(([value] * (MAX_ELEMENTS - 3),))
    with pytest.raises(ArgumentsError, match='65,536 values'):
        packed(([value] * (MAX_ELEMENTS - 2), 1))


@pytest.mark.parametrize('seconds', [0, -1, 1_700_000_000, 1 << 34])
@pytest.mark.parametrize('nanoseconds', [0, 1, 999, 1_000, 123_456_789, 999_999_999])
def test_times_are_datetimes_whatever_their_nanoseconds(seconds, nanoseconds):
    """Those of Go have some. They are cut, as everywhere in Python."""
    got = unpack(msgpack.packb([msgpack.Timestamp(seconds, nanoseconds)]))
    since = datetime.timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    assert got == [datetime.datetime(1970, 1, 1, tzinfo=UTC) + since]


def test_a_time_that_no_datetime_can_hold():
    assert unpack(msgpack.packb({'a': [msgpack.Timestamp(1 << 40, 0)]})) == {'a': [msgpack.Timestamp(1 << 40, 0)]}
