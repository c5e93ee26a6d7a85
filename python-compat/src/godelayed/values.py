"""Converts Python values to values that MessagePack and Go have a form for, and back. What it sends it never changes
silently."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgpack

from .errors import ArgumentsError, RangeError
from .kinds import is_dict, is_list
from .times import EPOCH, datetime_of

MAX_DEPTH = 32
MAX_ELEMENTS = 65_536
MAX_BYTES = 1 << 20


def _bytes_of(v: bytes) -> bytes:
    return b''.join((v,))


_SCALARS: frozenset[Any] = frozenset((str, float, bool, bytes, type(None)))
_BASES: tuple[Any, ...] = (  # how to get the plain value of a subclass, whatever its methods do
    (int, int.__index__),
    (str, str.__str__),
    (float, float.__float__),
    (bytes, _bytes_of),
    (list, list),
    (tuple, list),
    (dict, dict),
)
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 64) - 1


class Plain:
    """Turns the arguments of one call into plain values, counting elements and depth."""

    __slots__ = ('_keys', '_text_keys', 'elements', 'function')

    def __init__(self, function: str, *, keys: bool = True, text_keys: bool = False) -> None:
        """keys: whether errors name the keys of dicts; those of a worker do not, because they are logged.

        text_keys: whether only str keys are allowed.
        """
        self.function = function
        self._keys = keys
        self._text_keys = text_keys
        self.elements = 0

    def refuse(self, where: str, why: str, kind: type[ArgumentsError] = ArgumentsError) -> ArgumentsError:
        return kind(f'{self.function}: {where}: {why}')

    def value(self, v: Any, where: str, depth: int) -> Any:
        """Returns the value that is sent for v. depth is the number of containers around it."""
        self.elements += 1
        kind = _type_of(v)
        if kind in _SCALARS:
            if kind is str:
                self._text(v, where)
            return v
        if kind is int:
            return self._int(v, where)
        if kind is list or kind is tuple:
            return self._list(v, where, depth)
        if kind is dict:
            return self._dict(v, where, depth)
        return self._other(v, where, depth)

    def arguments(self, args: Sequence[Any], depth: int) -> list[Any]:
        """Returns positional arguments as plain values. depth is the number of containers around each."""
        out: list[Any] = []
        for i, a in enumerate(args):
            kind = _type_of(a)
            if a.isascii() if kind is str else _INT_MIN <= a <= _INT_MAX if kind is int else kind in _SCALARS:
                self.elements += 1
                out.append(a)
            else:
                out.append(self.value(a, f'argument {i + 1}', depth))
        self.elements += 1
        if self.elements > MAX_ELEMENTS:
            raise self.refuse(
                'arguments',
                f'expected at most {MAX_ELEMENTS:,} values in all; store large data elsewhere and pass its name',
            )
        return out

    def keywords(self, kwargs: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Returns keyword arguments as plain values."""
        out: dict[Any, Any] = {}
        for k, v in kwargs.items():
            self._text(k, f'the name of argument {k!r}')
            out[k] = self.value(v, f'argument {k}', depth)
        self.elements += 1 + len(kwargs)
        return out

    def _text(self, v: str, where: str) -> None:
        try:
            v.encode()
        except UnicodeEncodeError as e:
            raise self.refuse(where, f'expected text in Unicode, found a lone surrogate ({e.reason})') from None

    def _int(self, v: int, where: str) -> int:
        if not _INT_MIN <= v <= _INT_MAX:
            raise self.refuse(
                where, f'expected an integer of 64 bits, found one of {_bits(v)}; send it as a string', RangeError
            )
        return v

    def _enter(self, n: int, where: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise self.refuse(where, f'expected at most {MAX_DEPTH} containers inside one another')
        if self.elements + n > MAX_ELEMENTS:
            raise self.refuse(
                where,
                f'expected at most {MAX_ELEMENTS:,} values in all; store large data elsewhere and pass its name',
            )

    def _list(self, v: Any, where: str, depth: int) -> list[Any]:
        self._enter(len(v), where, depth)
        return [self.value(e, f'{where}[{i}]', depth + 1) for i, e in enumerate(v)]

    def _dict(self, v: Any, where: str, depth: int) -> dict[Any, Any]:
        self._enter(2 * len(v), where, depth)
        out: dict[Any, Any] = {}
        for key, e in v.items():
            kind = _type_of(key)
            if kind is str:
                self._text(key, where)
            elif kind is int:
                self._int(key, where)
            elif kind is not bool:
                if isinstance(key, enum.Enum):
                    key = self.value(key, f'a key of {where}', depth + 1)
                if not isinstance(key, (str, int)):
                    raise self.refuse(where, f'expected keys that are str, int or bool, found {type(key).__name__}')
            if self._text_keys and not isinstance(key, str):
                raise self.refuse(
                    where,
                    f"keakon's workers read keys that are str only, found {type(key).__name__}; send a list of pairs, "
                    'or str(key)',
                )
            self.elements += 1
            if key in out:
                raise self.refuse(where, f'two keys travel as {key!r}' if self._keys else 'two keys travel as one')
            out[key] = self.value(e, f'{where}[{key!r}]' if self._keys else f'{where}[…]', depth + 1)
        return out

    def _other(self, v: Any, where: str, depth: int) -> Any:
        self.elements -= 1  # only the value that is sent instead of v counts
        if isinstance(v, enum.Enum):
            return self.value(v.value, where, depth)
        if isinstance(v, datetime.datetime):
            if v.tzinfo is None or v.utcoffset() is None:
                raise self.refuse(where, 'expected a datetime with a time zone, found a naive one; give it a tzinfo')
            self.elements += 1
            since = v - EPOCH  # exact, even where UTC has no such year
            nanoseconds = since.microseconds * 1000 + getattr(v, 'nanosecond', 0)  # only pandas has them
            return msgpack.Timestamp(since.days * 86_400 + since.seconds, nanoseconds)
        if isinstance(v, uuid.UUID):
            return self.value(str(v), where, depth)
        if isinstance(v, msgpack.Timestamp):
            self.elements += 1
            return v
        if dataclasses.is_dataclass(v) and not isinstance(v, type):
            return self.value(
                {f.metadata.get('msgpack', f.name): getattr(v, f.name) for f in dataclasses.fields(v)}, where, depth
            )
        if isinstance(v, (bytearray, memoryview)):
            return self.value(bytes(cast('bytearray', v)), where, depth)
        if isinstance(v, msgpack.ExtType):
            raise self.refuse(where, 'Go knows no extensions of MessagePack but timestamps; send the bytes')
        for base, convert in _BASES:
            if isinstance(v, base):  # a subclass is sent as its base type
                return self.value(convert(v), where, depth)
        raise self.refuse(where, f'a {type(v).__name__} has no form on the wire; {_advice(v)}')


_type_of: Callable[[Any], type[Any]] = type


# By attribute, what to send in place of values of well-known libraries: pydantic, attrs, pandas, numpy and its likes.
_INSTEAD = {
    'model_dump': 'value.model_dump()',
    '__attrs_attrs__': 'attrs.asdict(value)',
    'to_dict': 'value.to_dict()',
    'tolist': 'value.tolist(), which makes plain numbers and lists of them',
}


def _bits(v: int) -> int:
    """Returns how many bits an integer takes, with its sign if it is negative."""
    return v.bit_length() if v >= 0 else (~v).bit_length() + 1


def _advice(v: Any) -> str:
    for name, advice in _INSTEAD.items():
        if hasattr(_type_of(v), name):
            return f'send {advice}'
    if isinstance(v, decimal.Decimal):
        return 'send str(value), or an int of the smallest unit'
    if isinstance(v, Mapping):
        return 'send dict(value)'
    if isinstance(v, Iterable) and not isinstance(v, type):
        return 'send a list'
    if isinstance(v, (datetime.date, datetime.time)):
        return 'send an aware datetime, or text'
    if isinstance(v, datetime.timedelta):
        return 'send a number, such as nanoseconds for a time.Duration'
    if callable(v):
        return 'send its result, or a name'
    return 'send numbers, text, bytes, lists, dicts, dataclasses or aware datetimes'


def ordered(v: Any) -> Any:
    """Returns a plain value with the pairs of all maps sorted by their encoded keys, as in Go, so that equal values
    have equal bytes."""
    if is_list(v):
        return [ordered(e) for e in v]
    if is_dict(v):
        return {k: ordered(v[k]) for k in sorted(v, key=pack)}
    return v


class _Packer(threading.local):
    """One packer for each thread: making one takes longer than using it."""

    def __init__(self) -> None:
        self.pack: Callable[[Any], bytes] = msgpack.Packer(use_bin_type=True).pack


_packer = _Packer()


def pack(v: Any) -> bytes:
    """Packs a plain value."""
    return _packer.pack(v)


def unpack(raw: bytes, pairs: Callable[[list[tuple[Any, Any]]], Any] | None = None) -> Any:
    """Unpacks one value from Go or Python. pairs makes a map from its pairs; None makes a dict.

    Times become aware datetimes in UTC, cut to microseconds, or msgpack.Timestamp in a year that datetimes do not have.
    """
    v = msgpack.unpackb(
        raw,
        raw=False,
        use_list=True,
        strict_map_key=False,
        max_array_len=MAX_ELEMENTS,
        max_map_len=MAX_ELEMENTS,
        object_pairs_hook=pairs,
    )
    if b'\xff' in raw and (
        b'\xd6\xff' in raw or b'\xd7\xff' in raw or b'\xc7\x0c\xff' in raw
    ):  # the three widths of a timestamp
        return _times(v)
    return v


def _times(v: Any) -> Any:
    if is_list(v):
        return [_times(e) for e in v]
    if is_dict(v):
        return {k: _times(e) for k, e in v.items()}
    return (datetime_of(v) or v) if isinstance(v, msgpack.Timestamp) else v
