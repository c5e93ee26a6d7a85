"""Tasks: what is to be called, with which options, and the message that says so. docs/PROTOCOL.md describes the bytes."""

from __future__ import annotations

import dataclasses
import datetime
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from .errors import ArgumentsError
from .values import MAX_BYTES, pack, pack_arguments, pack_keywords

Seconds = Union[float, datetime.timedelta]

MAX_PATH = 512
MAX_ID = 256
MAX_RETRY = 1 << 30
MAX_HEADERS = 64
MAX_HEADER_BYTES = 8192
MAX_BACKOFF = 64

_ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
_DIGITS = [a + b for a in _ALPHABET for b in _ALPHABET]
_random = random.SystemRandom()


def new_id() -> str:
    """Returns a random task id: 120 bits as 24 characters, as Go makes them."""
    n = _random.getrandbits(120)
    return ''.join([_DIGITS[n >> shift & 1023] for shift in range(0, 120, 10)])


def milliseconds(value: Seconds, name: str) -> int:
    """Converts a duration in seconds, or a timedelta, to whole milliseconds."""
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or abs(value) > 1e12:
        raise ArgumentsError(f'option {name}: expected seconds or a timedelta, found {value!r}')
    return round(value * 1000)


def moment(value: datetime.datetime, name: str) -> int:
    """Converts an aware datetime to ms since 1970."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise ArgumentsError(f'option {name}: expected a datetime with a time zone, found {value!r}')
    return max(0, int(value.timestamp() * 1000))


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a call. Durations are in seconds or timedeltas, times are aware datetimes; None means that it is not given.

    They have the meanings of the Go options of the same name; docs/OPTIONS of the project lists them.
    """

    retry: int | None = None
    countdown: Seconds | None = None
    eta: datetime.datetime | None = None
    task_id: str | None = None
    timeout: Seconds | None = None
    deadline: datetime.datetime | None = None
    ttl: Seconds | None = None
    retention: Seconds | None = None
    keep_result: Seconds | None = None
    backoff: Sequence[Seconds] | None = None
    max_backoff: Seconds | None = None
    retry_until: datetime.datetime | None = None
    headers: Mapping[str, str] | None = None

    def merged(self, **changes: Any) -> Options:
        """Returns a copy with other values. An unknown name or a value that cannot be is an ArgumentsError."""
        names = {f.name for f in dataclasses.fields(self)}
        for name in changes:
            if name not in names:
                raise ArgumentsError(f'unknown option {name!r}: expected one of {", ".join(sorted(names))}')
        new = dataclasses.replace(self, **changes)
        new.check()
        return new

    def check(self) -> None:
        if self.retry is not None and (isinstance(self.retry, bool) or not isinstance(self.retry, int)):
            raise ArgumentsError(f'option retry: expected an int, found {self.retry!r}')
        if self.eta is not None and self.countdown is not None:
            raise ArgumentsError('options eta and countdown: expected one of them')
        if self.task_id is not None and not 1 <= len(self.task_id.encode()) <= MAX_ID:
            raise ArgumentsError(f'option task_id: expected 1 to {MAX_ID} bytes, found {len(self.task_id.encode())}')
        self.meta(0)
        if self.eta is not None:
            moment(self.eta, 'eta')
        if self.countdown is not None:
            milliseconds(self.countdown, 'countdown')

    def meta(self, now: int) -> dict[str, Any]:
        """Returns what the options write into meta, in the order in which Go writes it."""
        m: dict[str, Any] = {}

        def span(key: str, name: str, value: Seconds | None) -> None:
            if value is None:
                return
            ms = milliseconds(value, name)
            if ms < 0:
                raise ArgumentsError(f'option {name}: expected no negative duration, found {value!r}')
            if ms:
                m[key] = ms

        span('to', 'timeout', self.timeout)
        if self.deadline is not None:
            m['dl'] = moment(self.deadline, 'deadline')
        if self.ttl is not None:
            m['xp'] = now + milliseconds(self.ttl, 'ttl')
        span('rn', 'retention', self.retention)
        span('kr', 'keep_result', self.keep_result)
        if self.retry_until is not None:
            m['ru'] = moment(self.retry_until, 'retry_until')
        span('rc', 'max_backoff', self.max_backoff)
        if self.backoff is not None:
            waits = [milliseconds(w, 'backoff') for w in self.backoff]
            if not 1 <= len(waits) <= MAX_BACKOFF or min(waits) < 0:
                raise ArgumentsError(f'option backoff: expected 1 to {MAX_BACKOFF} durations, none negative, found {self.backoff!r}')
            m['rd'] = waits
        if self.headers:
            m['h'] = _headers(self.headers)
        return m


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    size = 0
    for k, v in headers.items():
        if type(k) is not str or type(v) is not str:
            raise ArgumentsError(f'option headers: expected strings by string, found {k!r}: {v!r}')
        size += len(k.encode()) + len(v.encode())
    if len(headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise ArgumentsError(
            f'option headers: expected at most {MAX_HEADERS} and {MAX_HEADER_BYTES} bytes, found {len(headers)} and {size}'
        )
    return {k: headers[k] for k in sorted(headers)}


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a function: its path and its arguments. call() makes one."""

    path: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def python(self) -> bool:
        """Whether the function is Python's: its path has a colon."""
        return ':' in self.path


def call(function: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Call:
    """Describes a call for Queue.delay_many. function is a path, or a Python function that was registered with @task."""
    return Call(path_of(function), args, kwargs)


def path_of(function: str | Callable[..., Any]) -> str:
    """Returns the path of a function, checked."""
    path = function if isinstance(function, str) else getattr(function, 'delayed_path', None)
    if path is None:
        raise ArgumentsError(f'{function!r} is not registered: decorate it with @godelayed.task, or give its path')
    if not path or len(path.encode()) > MAX_PATH:
        raise ArgumentsError(f'path {path!r}: expected 1 to {MAX_PATH} bytes')
    if ':' in path and (path.count(':') != 1 or path[0] == ':' or path[-1] == ':'):
        raise ArgumentsError(f'path {path!r}: expected "module:function" or the path of a Go function, which has no colon')
    return str(path)


def message(c: Call, options: Options, id: str, now: int, *, extended: bool, legacy: bool) -> bytes:
    """Returns the message of a call. now is in ms since 1970."""
    meta = options.meta(now)
    if not c.python:
        if c.kwargs:
            raise ArgumentsError(f'{c.path}: a Go function has no keyword arguments; found {", ".join(map(repr, c.kwargs))}')
        head: dict[str, Any] = {'n': len(c.args)} if legacy else {'id': id, 'n': len(c.args), 'at': now}
        if options.retry is not None:
            head['mr'] = min(max(options.retry, 0), MAX_RETRY)
        if legacy and (options.task_id is not None or meta):
            head = {'id': id, **head}
        payload = pack_arguments(c.path, c.args) if c.args else None
        return _bounded(c, pack([c.path, payload, {**head, **meta}]))
    retry = 0 if options.retry is None else options.retry
    parts = [pack(c.path), pack_arguments(c.path, c.args), pack_keywords(c.path, dict(c.kwargs)), pack(retry)]
    if extended:
        head = {'id': id, 'n': len(c.args) + len(c.kwargs), 'at': now}
        return _bounded(c, b'\x95' + b''.join(parts) + pack({**head, **meta}))
    if meta or options.task_id is not None:
        raise ArgumentsError(
            f'{c.path}: a Python task of this queue has no options but retry, eta and countdown; open the queue with '
            'extended=True if its workers read extended messages'
        )
    if not retry:
        parts.pop()
        if parts[2] == b'\x80':
            parts.pop()
            if parts[1] == b'\x90':
                parts.pop()
    return _bounded(c, bytes([0x90 | len(parts)]) + b''.join(parts))


def _bounded(c: Call, raw: bytes) -> bytes:
    if len(raw) > MAX_BYTES:
        raise ArgumentsError(
            f'{c.path}: message of {len(raw):,} bytes, expected at most {MAX_BYTES:,}: store large data elsewhere and pass its name'
        )
    return raw
