"""Tasks: what to call, with which options, and the message for it.

docs/PROTOCOL.md describes the bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from .errors import ArgumentsError
from .locks import LOCK_ID, LOCK_KEY, group_name, lock_of_arguments
from .options import LOCK_LIFE, MAX_RETRY, Options
from .text import has_control
from .values import MAX_BYTES, MAX_ELEMENTS, Plain, ordered, pack

MAX_PATH = 512

_DIGITS = b'0123456789abcdefghjkmnpqrstvwxyz' * 8  # maps each byte to a digit for its low five bits


def new_id() -> str:
    """Returns a random task id: 120 bits as 24 characters, as Go makes them."""
    return os.urandom(24).translate(_DIGITS).decode()


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a function: its path and its arguments. godelayed.call makes one."""

    path: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def python(self) -> bool:
        """Whether the function is Python's: its path has a colon."""
        return ':' in self.path


def checked_path(path: str) -> str:
    """Returns the path of a function after checking it."""
    if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may have no types
        raise ArgumentsError(
            f'{path!r} is not registered: expected a function with @godelayed.task, or the path of a function'
        )
    return _checked(path)


@functools.lru_cache(maxsize=1024)
def _checked(path: str) -> str:
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        size = 0
    if not 1 <= size <= MAX_PATH:
        raise ArgumentsError(f'path {path!r}: expected 1 to {MAX_PATH} bytes in UTF-8')
    if has_control(path):
        raise ArgumentsError(f'path {path!r}: expected no control characters')
    if ':' in path and (path.count(':') != 1 or path[0] == ':' or path[-1] == ':'):
        raise ArgumentsError(
            f'path {path!r}: expected "module:function" or the path of a Go function, which has no colon'
        )
    return str(path)


class Packed(NamedTuple):
    """A message, with what the scripts need to know about it."""

    id: str
    message: bytes
    lock: str = ''
    group: str = ''
    size: int = 0  # bytes of the list to which each call of a group adds
    values: int = 0  # number of values in that list


class Stamp:
    """Makes messages for calls with the same options that are enqueued at the same time. now is in ms since 1970."""

    def __init__(self, options: Options, now: int, *, legacy: bool) -> None:
        self._options = options
        self._legacy = legacy
        self._now = now
        options.check_start(now)
        self._count, self._front, self._rd, self._tail = options.pairs(now)
        self._at = self._python_at = b'\xa2at' + pack(now)
        how, when = options.place
        self._due = b'\xa2du' + pack(when if how == 'at' else now + when) if how in ('in', 'at') else b''
        self._ordered = options.group is not None or (options.locked and options.unique_key is None)
        if options.retry is not None:
            self._at += b'\xa2mr' + pack(min(max(options.retry, 0), MAX_RETRY))
            self._retry = min(max(options.retry, -MAX_RETRY), MAX_RETRY)
        else:
            self._retry = 0
        self._python_retry, self._python_count = pack(self._retry), self._count + 3
        if options.retry == 0:  # in the fourth element, 0 would be the same as no number
            self._python_at += b'\xa2mr\x00'
            self._python_count += 1
        self._go_count = self._count + (2 if options.retry is None else 3)

    def packed(self, c: Call) -> Packed:
        """Returns the message of a call."""
        id = self._options.task_id or new_id()
        packed = self._python(c, id) if ':' in c.path else self._go(c, id)
        if len(packed.message) > MAX_BYTES:
            raise ArgumentsError(
                f'{c.path}: message of {len(packed.message):,} bytes, expected at most {MAX_BYTES:,}: store large data '
                'elsewhere and '
                'pass its name'
            )
        return packed

    def _go(self, c: Call, id: str) -> Packed:
        if c.kwargs:
            raise ArgumentsError(
                f'{c.path}: a Go function has no keyword arguments; found {", ".join(map(repr, c.kwargs))}'
            )
        if self._options.group is not None:
            return self._gathered(c, id)
        plain = Plain(c.path)
        n = len(c.args)
        values = plain.arguments(c.args, 1)
        payload = pack(ordered(values) if self._ordered else values) if n else b''
        lock = self._lock(c.path, payload[1:] if n == 1 else payload)
        head = b'\xa1n' + pack(n) + self._at
        return Packed(id, self._whole(c.path, payload, id, self._go_count + 1, head, lock), lock)

    def _whole(
        self, path: str, payload: bytes, id: str, count: int, head: bytes, lock: str, group: bytes = b''
    ) -> bytes:
        meta = self._meta(id, count, head, lock, group)
        return b'\x93' + pack(path) + (pack(payload) if payload else b'\xc0') + meta

    def _meta(self, id: str, count: int, head: bytes, lock: str, group: bytes = b'') -> bytes:
        """Returns the encoded meta. head are the pairs after id; count is the number of pairs except those of locks and
        groups, with the pair of id included."""
        name, life, starts = lock, self._options.life, self._options.starts
        if not lock and self._options.task_id is not None:
            name, life, starts = LOCK_ID + id, LOCK_LIFE, False
        ul = uk = b''
        if name:
            count += 2
            ul, uk = b'\xa2ul' + pack(life), b'\xa2uk' + pack(name)
            if starts:
                count += 1
                uk += b'\xa2us\xc3'
        if group:
            count += 2
        if self._due:
            count += 1
        return b''.join(
            (_map_header(count), b'\xa2id', pack(id), head, self._front, self._due, ul, self._rd, uk, group, self._tail)
        )

    def _lock(self, path: str, arguments: bytes) -> str:
        if not self._options.locked:
            return ''
        if self._options.unique_key is not None:
            return LOCK_KEY + self._options.unique_key
        return lock_of_arguments(path, arguments)

    def _gathered(self, c: Call, id: str) -> Packed:
        key = self._options.group
        assert key is not None
        if not c.args:
            raise ArgumentsError(
                f'{c.path}: option group: expected a list as the last argument, which grows; found no argument'
            )
        plain = Plain(c.path)
        fixed = [plain.value(a, f'argument {i}', 1) for i, a in enumerate(c.args[:-1], 1)]
        before = plain.elements
        last = plain.value(c.args[-1], f'argument {len(c.args)}', 1)
        values = plain.elements - before - 1
        if not isinstance(last, list):
            raise ArgumentsError(
                f'{c.path}: option group: expected a list as the last argument, which grows; found a '
                f'{type(c.args[-1]).__name__}'
            )
        fixed, last = ordered(fixed), ordered(last)
        payload = pack([*fixed, last]) if fixed else pack(last)
        size = len(pack(last)) - _header_size(len(last))
        grace, delay, most = self._options.gather
        group = b'\xa1g' + pack(key) + b'\xa2gp' + pack([len(fixed), grace, delay, most])
        message = self._whole(c.path, payload, id, self._go_count, self._at, '', group)
        name = group_name(c.path, key, len(fixed), b''.join(map(pack, fixed)))
        return Packed(id, message, '', name, size, values)

    def _python(self, c: Call, id: str) -> Packed:
        options = self._options
        if options.group is not None:
            raise ArgumentsError(f'{c.path}: option group: expected a Go function; gather in Python')
        plain = Plain(c.path, text_keys=self._legacy)
        args: Any = plain.arguments(c.args, 2)
        kwargs: Any = plain.keywords(c.kwargs, 2)
        if plain.elements + 70 > MAX_ELEMENTS:
            raise plain.refuse(
                'arguments', f'expected at most {MAX_ELEMENTS:,} values in all; store large data elsewhere'
            )
        if self._ordered:
            args, kwargs = ordered(args), ordered(kwargs)
        if not self._legacy:
            args, kwargs = pack(args), pack(kwargs)
            lock = self._lock(c.path, (args if c.args else b'') + (kwargs if c.kwargs else b''))
            head = b'\xa1n' + pack(len(c.args) + len(c.kwargs)) + self._python_at
            meta = self._meta(id, self._python_count, head, lock)
            return Packed(id, b''.join((b'\x95', pack(c.path), args, kwargs, self._python_retry, meta)), lock)
        if self._count or options.task_id is not None or options.locked:
            raise ArgumentsError(
                f'{c.path}: a Python task of a legacy queue has no options but retry, eta, countdown and front; open '
                'the queue without '
                "legacy=True if no worker of keakon's package serves it"
            )
        parts = [c.path, args, kwargs, self._retry]
        while len(parts) > 1 and not parts[-1]:  # keakon's package leaves out empty trailing parts
            parts.pop()
        # Only the sets of scheduled tasks give such a task an id, until it is due.
        return Packed(id if options.place[0] in ('in', 'at') else '', pack(parts))


def _map_header(n: int) -> bytes:
    return bytes([0x80 | n]) if n < 16 else b'\xde' + n.to_bytes(2, 'big')


def _header_size(n: int) -> int:
    return 1 if n < 16 else 3 if n < 1 << 16 else 5
