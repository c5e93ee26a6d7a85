"""Messages as a worker reads and rewrites them. docs/PROTOCOL.md describes the bytes."""

from __future__ import annotations

from typing import Any, cast

import msgpack

from ..calls import MAX_PATH
from ..kinds import is_dict, is_list
from ..values import MAX_BYTES, unpack
from .skim import OPENERS, WORKER, Limits, MessageError, check_message

__all__ = ['Message', 'MessageError']

_HEADERS = 8192  # bytes
_SHORT = MAX_PATH // 4  # a path of this many characters cannot have too many bytes
_INT31 = (1 << 31) - 1
_INT63 = (1 << 63) - 1

# The known keys of meta in the order in which they are written, with their lowest and highest values; None if the value
# is not a number.
_KNOWN: dict[str, tuple[int, int] | None] = {
    'id': None,
    'n': (0, _INT31),
    'at': (0, _INT63),
    'mr': (-(1 << 31), _INT31),
    'rt': (0, _INT31),
    'd': (0, _INT31),
    'da': (0, _INT63),
    'to': (0, _INT63),
    'dl': (0, _INT63),
    'xp': (0, _INT63),
    'rn': (0, _INT63),
    'kr': (0, _INT63),
    'ru': (0, _INT63),
    'rc': (0, _INT63),
    'ff': (0, _INT63),
    'du': (0, _INT63),
    'ul': (0, _INT63),
    'al': (0, _INT31),
    'rd': None,
    'uk': None,
    'us': None,
    'g': None,
    'gp': None,
    'er': None,
    'h': None,
}
_PRESENT = ('n', 'mr')  # written even when they are zero


class _TwiceError(Exception):
    """A map holds a key twice."""


def _once(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Makes a dict of pairs; raises _TwiceError if two have the same key."""
    v = dict(pairs)
    if len(v) != len(pairs):
        raise _TwiceError(next(repr(key)[:40] for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i])))
    return v


class Message:
    """A task as Redis holds it in a queue. Each message has its own copy of meta, and args and kwargs are decoded anew.

    limits are the limits to check; None if the bytes were checked before. A MessageError says what is wrong with them.
    """

    __slots__ = ('args', 'kwargs', 'meta', 'parts', 'path', 'payload', 'python', 'raw', 'retry')

    def __init__(self, raw: bytes, limits: Limits | None = WORKER) -> None:
        self.raw = raw
        n = len(raw)
        # The bytes are surely within the limits if there are no more of them than values are allowed, and no more of
        # those that can begin an array or map than the depth allows.
        if limits is not None and (n > limits.values or n - len(raw.translate(None, OPENERS)) > limits.depth):
            check_message(raw, limits)
        twice = False  # whether a map has a key twice: in arguments, that is for the program to decide
        try:
            try:
                v = unpack(raw) if limits is None else unpack(raw, _once)
            except _TwiceError:
                v, twice = unpack(raw), True
        except Exception as e:  # msgpack raises errors of many kinds
            text = f'expected one MessagePack value, found bytes that are none ({type(e).__name__})'
            raise MessageError(text) from None
        parts: list[Any] = v if is_list(v) else [v]
        path: Any = parts[0] if parts else None
        if type(path) is not str or not path or len(path) > _SHORT and len(path.encode()) > MAX_PATH:
            raise MessageError(f'expected a path of 1 to {MAX_PATH} bytes, found {_kind(path)}')
        self.path = path
        self.parts = len(parts) if parts is v else 0
        self.python = ':' in path
        self.args: list[Any] = []
        self.kwargs: dict[str, Any] = {}
        self.retry = 0
        self.payload: bytes | None = None
        self.meta: dict[str, Any] = {}
        if self.python:
            self._read_python(parts)
        else:
            self._read_go(parts)
        _check(self.meta)
        if twice and self.meta:
            try:
                unpack(raw[self._end_of(self.parts - 1) :], _once)
            except _TwiceError as e:
                raise MessageError(f'expected each key of meta once, found {e} again') from None

    def _read_python(self, parts: list[Any]) -> None:
        n = self.parts
        if not 1 <= n <= 5:
            raise MessageError(f'expected an array of 1 to 5 for a Python function, found {n or "the path alone"}')
        if n > 1:
            args = parts[1]
            if type(args) is list:
                self.args = args
            elif args is not None:
                raise MessageError(f'expected arguments, an array or nil, found {_kind(args)}')
        if n > 2:
            kwargs = parts[2]
            if type(kwargs) is dict:
                self.kwargs = kwargs
            elif kwargs is not None:
                raise MessageError(f'expected keyword arguments, a map or nil, found {_kind(kwargs)}')
        if n > 3:
            if type(parts[3]) is not int or not -(1 << 63) <= parts[3] <= _INT63:
                raise MessageError(f'expected a number of retries, found {_kind(parts[3])}')
            self.retry = parts[3]
        if n > 4:
            self._read_meta(parts[4])

    def _read_go(self, parts: list[Any]) -> None:
        if len(parts) > 3:
            raise MessageError(f'expected an array of 1 to 3 for a Go function, found {len(parts)}')
        if len(parts) > 1 and parts[1] is not None:
            if type(parts[1]) is not bytes:
                raise MessageError(f'expected a payload, binary or nil, found {_kind(parts[1])}')
            self.payload = parts[1]
        if len(parts) > 2:
            self._read_meta(parts[2])

    def _read_meta(self, meta: Any) -> None:
        if type(meta) is not dict:
            raise MessageError(f'expected meta, a map, found {_kind(meta)}')
        self.meta = meta

    @property
    def extended(self) -> bool:
        """Whether the message has a place for meta."""
        return self.parts == (5 if self.python else 3)

    @property
    def id(self) -> str:
        """The task's id, '' if it has none."""
        return str(self.meta.get('id', ''))

    @property
    def retried(self) -> int:
        return int(self.meta.get('rt', 0))

    @property
    def deaths(self) -> int:
        return int(self.meta.get('d', 0))

    @property
    def keep(self) -> int:
        """How long something is kept of the task after it has succeeded, in ms."""
        meta = self.meta
        return max(meta.get('kr', 0), meta.get('rn', 0)) if 'kr' in meta or 'rn' in meta else 0

    def with_meta(self, **changes: Any) -> bytes:
        """Returns the message with other values in meta. Go messages without a place for meta become extended ones.

        Python messages without such a place cannot hold it, and must not be given.
        """
        meta = {**self.meta, **changes}
        ordered = {}
        for name in _KNOWN:
            if name in meta and (meta[name] or name in _PRESENT):
                ordered[name] = meta[name]
        for name, value in meta.items():
            if name not in _KNOWN:
                ordered[name] = value
        packed: bytes = msgpack.packb(ordered, use_bin_type=True)
        if self.python:
            if not self.extended:
                raise ValueError('a plain Python message has no place for meta')
            return self.raw[: self._end_of(4)] + packed
        head: bytes = msgpack.packb([self.path, self.payload, None], use_bin_type=True)
        return head[:-1] + packed

    def with_retry(self, retry: int) -> bytes:
        """Returns a plain Python message of four parts with another number of retries."""
        packed: bytes = msgpack.packb(retry)
        return self.raw[: self._end_of(3)] + packed

    def _end_of(self, n: int) -> int:
        """Returns where the first n parts of the array end."""
        u = msgpack.Unpacker(max_buffer_size=2 * MAX_BYTES, strict_map_key=False)
        u.feed(self.raw)
        u.read_array_header()
        for _ in range(n):
            u.skip()
        return int(u.tell())


def _kind(v: Any) -> str:
    """Names a value by its type and size for errors, because its content may be secret."""
    if v is None:
        return 'nothing'
    name = type(v).__name__
    return f'{name} of {len(cast("str", v)):,}' if isinstance(v, (str, bytes, list, dict)) else name


def _check(meta: dict[str, Any]) -> None:
    """Checks the values of known keys as docs/PROTOCOL.md describes them."""
    for key, v in meta.items():
        if type(key) is not str:
            raise MessageError(f'expected strings as keys of meta, found {_kind(key)}')
        bounds = _KNOWN.get(key)
        if bounds is not None:
            if type(v) is not int or not bounds[0] <= v <= bounds[1]:
                raise MessageError(
                    f'expected {key!r} to be an integer from {bounds[0]} to {bounds[1]}, found {_kind(v)}'
                )
        elif key in ('id', 'uk', 'g'):
            if type(v) is not str or not 1 <= len(v.encode()) <= MAX_PATH:
                raise MessageError(f'expected {key!r} to be a string of 1 to {MAX_PATH} bytes, found {_kind(v)}')
        elif key == 'us':
            if type(v) is not bool:
                raise MessageError(f"expected 'us' to be a boolean, found {_kind(v)}")
        elif key == 'rd':
            if not _numbers(v, 1, 64):
                raise MessageError(f"expected 'rd' to be an array of 1 to 64 waits, found {_kind(v)}")
        elif key == 'gp':
            if not _numbers(v, 4, 4) or v[0] > _INT31 or v[3] > _INT31:
                raise MessageError(f"expected 'gp' to be an array of 4 integers, found {_kind(v)}")
        elif key == 'h':
            if not (is_dict(v) and 1 <= len(v) <= 64 and all(type(k) is str and type(e) is str for k, e in v.items())):
                raise MessageError(f"expected 'h' to be a map of 1 to 64 strings, found {_kind(v)}")
            if sum(len(k.encode()) + len(e.encode()) for k, e in v.items()) > _HEADERS:
                raise MessageError(f"expected 'h' to hold at most {_HEADERS:,} bytes, found more")


def _numbers(v: Any, fewest: int, most: int) -> bool:
    return is_list(v) and fewest <= len(v) <= most and all(type(e) is int and 0 <= e <= _INT63 for e in v)
