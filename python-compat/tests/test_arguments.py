"""What annotations make of the arguments of a task before the function gets them."""

import dataclasses
import datetime
import decimal
import enum
import pathlib
import uuid
from typing import Any, Optional, TypedDict, Union

import pytest

from godelayed.registry import Function
from godelayed.worker import calling

NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)


class Color(enum.Enum):
    RED = 'red'


@dataclasses.dataclass
class Line:
    name: str
    price: decimal.Decimal


@dataclasses.dataclass
class Order:
    id: int
    lines: list[Line]
    notes: dict[str, str]


class Row(TypedDict):
    a: int


def called(hint, value, default=...):
    """Calls a function with a parameter of that annotation, by position and by name, and returns what it gets."""
    got = []

    def f(value):
        got.append(value)

    f.__annotations__ = {'value': hint}
    if default is not ...:
        f.__defaults__ = (default,)
    for args, kwargs in ([value], {}), ([], {'value': value}):
        ended = calling.call(Function('m:f', f), args, kwargs, False, None)
        assert ended.ok, ended.error
    assert got[0] == got[1]
    assert type(got[0]) is type(got[1])
    return got[0]


@pytest.mark.parametrize(
    ('hint', 'sent', 'arrives'),
    [
        (list[int], None, []),  # nil of Go
        (list, None, []),
        (dict[str, int], None, {}),
        (bytes, None, b''),
        (Row, None, {}),
        (Row, {'a': 1}, {'a': 1}),
        (Optional[list[int]], None, None),
        (list[int] | None, None, None),
        (Optional[list[int]], [1], [1]),
        (list[list[str]], [None, ['a']], [[], ['a']]),
        (Order, {'id': 1, 'lines': [['a', '1.10']], 'notes': None}, Order(1, [Line('a', decimal.Decimal('1.10'))], {})),
        (tuple[int, str], [1, 'a'], (1, 'a')),
        (Color, 'red', Color.RED),
        (uuid.UUID, '00000000-0000-0000-0000-000000000005', uuid.UUID(int=5)),
        (decimal.Decimal, '1.10', decimal.Decimal('1.10')),
        (datetime.datetime, NOW, NOW),
        (Union[datetime.datetime, str], 'now', 'now'),
        (int, 'a', 'a'),  # Python's own rule: annotations of numbers and texts convert nothing
        (Any, None, None),
        (None, 1, 1),
        (pathlib.Path, 'a', 'a'),
        (list[pathlib.Path], None, None),
        (set[int], [1], [1]),
        ('NotThere', None, None),
    ],
    ids=str,
)
def test_arguments_arrive_as_annotations_say(hint, sent, arrives):
    got = called(hint, sent)
    assert got == arrives
    assert type(got) is type(arrives)


def test_none_stays_none_where_it_is_the_default():
    assert called(list[int], None, default=None) is None


def test_further_arguments():
    def f(first: list[int], /, *rest: list[int], named: dict[str, int], **others: list[int]):
        assert (first, rest, named, others) == ([], ([], [1]), {}, {'a': [], 'first': []})

    ended = calling.call(Function('m:f', f), [None, None, [1]], {'named': None, 'a': None, 'first': None}, False, None)
    assert ended.ok, ended.error


@pytest.mark.parametrize(
    ('hint', 'sent', 'error'),
    [
        (list[int], ['secret'], r'argument 1[0]: expected int, found str'),
        (dict[str, int], {'secret': 'a'}, 'argument 1[…]: expected int, found str'),
        (Order, {'id': 1}, 'argument 1: expected all fields of Order, found dict'),
        (Order, None, 'argument 1: expected Order, found NoneType'),
        (datetime.datetime, 'secret', 'argument 1: expected datetime, found str'),
        (Color, 'secret', 'argument 1: expected Color, found str'),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_never_tried_again(hint, sent, error):
    """The error is logged, so it names no value."""

    def f(value):
        raise AssertionError('not here')

    f.__annotations__ = {'value': hint}
    ended = calling.call(Function('m:f', f), [sent], {}, False, None)
    assert (ended.ok, ended.arguments) == (False, True)
    assert error in ended.error
    assert 'secret' not in ended.error + ended.stack
