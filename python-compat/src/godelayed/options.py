"""Options of a call."""

from __future__ import annotations

import dataclasses
import datetime
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from .errors import ArgumentsError
from .times import Seconds, later, milliseconds, moment, positive
from .values import pack

if TYPE_CHECKING:
    from typing import Literal

MAX_ID = 256
MAX_RETRY = 1 << 30
MAX_HEADERS = 64
MAX_HEADER_BYTES = 8192
MAX_BACKOFF = 64
MAX_LOCK_KEY = 510
MAX_GROUP_KEY = 256
MAX_GROUP_SIZE = 5000
UNLIMITED = ((1 << 63) - 1) // 1_000_000  # ms; stands for no timeout
LOCK_LIFE = 7 * 24 * 3600 * 1000  # ms that ids, and locks of debounce, last after the time when their task is due

_CONFLICTS = {None: 'fail', 'error': 'fail', 'skip': 'skip', 'replace': 'replace'}
_LOCKS = ('unique', 'unique_key', 'until_start', 'on_conflict', 'debounce')
_GATHERING = ('group_grace', 'group_max_delay', 'group_max_size')


class OptionValues(TypedDict, total=False):
    """The keywords of Queue.options; Options documents them."""

    retry: int | None
    countdown: Seconds | None
    eta: datetime.datetime | None
    task_id: str | None
    timeout: Seconds | None
    deadline: datetime.datetime | None
    ttl: Seconds | None
    retention: Seconds | None
    keep_result: Seconds | None
    backoff: Seconds | Sequence[Seconds] | None
    max_backoff: Seconds | None
    retry_until: datetime.datetime | None
    headers: Mapping[str, str] | None
    unique: Seconds | None
    unique_key: str | None
    until_start: bool
    on_conflict: Literal['error', 'skip', 'replace'] | None
    debounce: Seconds | None
    front: bool
    group: str | None
    group_grace: Seconds | None
    group_max_delay: Seconds | None
    group_max_size: int | None


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a call.

    Durations are in seconds or timedeltas, times are aware datetimes; None means that an option is not given.

    They mean the same as the Go options of the same name. README.md of this package lists them in a table.
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
    backoff: Seconds | Sequence[Seconds] | None = None
    max_backoff: Seconds | None = None
    retry_until: datetime.datetime | None = None
    headers: Mapping[str, str] | None = None
    unique: Seconds | None = None
    unique_key: str | None = None
    until_start: bool = False
    on_conflict: str | None = None
    debounce: Seconds | None = None
    front: bool = False
    group: str | None = None
    group_grace: Seconds | None = None
    group_max_delay: Seconds | None = None
    group_max_size: int | None = None

    def merged(self, **changes: Any) -> Options:
        """Returns a copy with other values. An unknown name or an invalid value raises ArgumentsError."""
        for name in changes:
            if name not in _NAMES:
                raise ArgumentsError(f'unknown option {name!r}: expected one of {", ".join(sorted(_NAMES))}')
        if isinstance(changes.get('headers'), Mapping):
            changes['headers'] = dict(changes['headers'])
        new = dataclasses.replace(self, **changes)
        new._check()
        return new

    def _check(self) -> None:
        if self.retry is not None and (isinstance(self.retry, bool) or not isinstance(self.retry, int)):
            raise ArgumentsError(f'option retry: expected an int, found {self.retry!r}')
        for name in ('until_start', 'front'):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentsError(f'option {name}: expected True or False, found {getattr(self, name)!r}')
        _text(self.task_id, 'task_id', MAX_ID)
        _text(self.unique_key, 'unique_key', MAX_LOCK_KEY)
        _text(self.group, 'group', MAX_GROUP_KEY)
        if sum(v is not None for v in (self.eta, self.countdown, self.debounce)) > 1:
            raise ArgumentsError('options eta, countdown and debounce: expected one of them')
        _ = self.place, self.conflict, self.extra, self.gather
        if self.front and self.place[0] in ('in', 'at'):
            raise ArgumentsError(
                'options front and eta, countdown or debounce: a scheduled task joins the end of its queue when it is '
                'due'
            )
        self._check_locks()
        if self.group is not None:
            for name in ('task_id', 'front', *_LOCKS):
                if getattr(self, name) not in (None, False):
                    raise ArgumentsError(
                        f'options group and {name}: a gathered call becomes part of another task, at the end of its '
                        'queue; leave one out'
                    )

    def _check_locks(self) -> None:
        if self.unique_key is not None and self.unique is None and self.debounce is None:
            raise ArgumentsError('option unique_key: expected unique as well, the seconds that the lock lasts at most')
        if self.task_id is not None and self.conflict == 'replace':
            raise ArgumentsError(
                'options task_id and on_conflict="replace" or debounce: a task cannot replace one of its id; give its '
                'text to unique_key'
            )
        if not self.locked:
            if self.until_start:
                raise ArgumentsError('option until_start: expected a lock as well: unique')
            if self.on_conflict is not None and self.task_id is None:
                raise ArgumentsError('option on_conflict: expected a lock or an id as well: unique or task_id')
        _ = self.life

    @functools.cached_property
    def place(self) -> tuple[str, int]:
        """Where to put the task: 'back', 'front', 'in' or 'at', and the ms for the last two."""
        if self.debounce is not None:
            return 'in', positive(self.debounce, 'debounce', up=False)
        if self.eta is not None:
            return 'at', moment(self.eta, 'eta')
        if self.countdown is not None:
            ms = milliseconds(self.countdown, 'countdown')
            if ms > 0:
                return 'in', ms
        return ('front' if self.front else 'back'), 0

    @property
    def kept(self) -> bool:
        """Whether Redis keeps something after the task has ended, so that callers can wait for it."""
        return 'kr' in self.extra or 'rn' in self.extra

    @property
    def locked(self) -> bool:
        """Whether the task has a lock."""
        return self.unique is not None or self.debounce is not None

    @property
    def life(self) -> int:
        """How long the lock lasts, in ms."""
        if self.unique is not None:
            return positive(self.unique, 'unique', up=False)
        return LOCK_LIFE

    @property
    def conflict(self) -> str:
        """What to do if the lock or the id is taken, as the script enlist names it."""
        if self.debounce is not None and self.on_conflict is None:
            return 'replace'
        try:
            return _CONFLICTS[self.on_conflict]
        except (KeyError, TypeError):
            raise ArgumentsError(
                f'option on_conflict: expected "error", "skip" or "replace", found {self.on_conflict!r}'
            ) from None

    @property
    def starts(self) -> bool:
        """Whether the lock ends when the task starts."""
        return self.until_start or self.debounce is not None

    @functools.cached_property
    def gather(self) -> tuple[int, int, int]:
        """How a group is gathered: grace and longest delay in ms, and the most calls."""
        grace = 60_000 if self.group_grace is None else positive(self.group_grace, 'group_grace')
        delay = 0 if self.group_max_delay is None else positive(self.group_max_delay, 'group_max_delay')
        size = 1000 if self.group_max_size is None else self.group_max_size
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_GROUP_SIZE:
            raise ArgumentsError(f'option group_max_size: expected 1 to {MAX_GROUP_SIZE}, found {size!r}')
        if self.group is None:
            for name in _GATHERING:
                if getattr(self, name) is not None:
                    raise ArgumentsError(f'option {name}: expected group as well')
        return grace, delay, size

    @functools.cached_property
    def extra(self) -> dict[str, Any]:
        """The pairs that the options add to meta, except those of locks and groups.

        The value of xp is relative to the time of the call.
        """
        m: dict[str, Any] = {}
        if self.timeout is not None:
            m['to'] = positive(self.timeout, 'timeout') if self.timeout else UNLIMITED
        if self.deadline is not None:
            m['dl'] = later(self.deadline, 'deadline')
        if self.ttl is not None:
            m['xp'] = positive(self.ttl, 'ttl')
        for key, name in (('rn', 'retention'), ('kr', 'keep_result')):
            if getattr(self, name) is not None:
                ms = milliseconds(getattr(self, name), name)
                if ms < 0:
                    raise ArgumentsError(f'option {name}: expected no negative duration, found {getattr(self, name)!r}')
                if ms:
                    m[key] = ms
        if self.retry_until is not None:
            m['ru'] = later(self.retry_until, 'retry_until')
        if self.max_backoff is not None:
            m['rc'] = positive(self.max_backoff, 'max_backoff')
        if self.backoff is not None:
            m['rd'] = _backoff(self.backoff)
        if self.headers:
            m['h'] = _headers(self.headers)
        return m

    def check_start(self, now: int) -> None:
        """Raises ArgumentsError if the task would become due only after the time when it may no longer start. now is in
        ms."""
        how, due = self.place
        if how not in ('in', 'at'):
            return
        if how == 'in':
            due += now
        if 'xp' in self.extra and due >= now + self.extra['xp']:
            raise ArgumentsError(
                f'options ttl and eta, countdown or debounce: expected a ttl that is longer than the delay, '
                f'found one that ends {(due - now - self.extra["xp"]) / 1000} s before the task is due'
            )
        if 'dl' in self.extra and due >= self.extra['dl']:
            raise ArgumentsError(
                f'options deadline and eta, countdown or debounce: expected a deadline after the task is due, '
                f'found one that lies {(due - self.extra["dl"]) / 1000} s before'
            )

    def pairs(self, now: int) -> tuple[int, bytes, bytes, bytes]:
        """Returns the number of pairs, and the encoded pairs that come before ul, between ul and uk, and after gp.

        now is in ms.
        """
        front = rd = tail = b''
        for key, value in self.extra.items():
            if key == 'rd':
                rd = pack(key) + pack(value)
            elif key == 'h':
                tail = pack(key) + pack(value)
            else:
                front += pack(key) + pack(now + value if key == 'xp' else value)
        return len(self.extra), front, rd, tail


_NAMES = frozenset(f.name for f in dataclasses.fields(Options))


def _text(value: Any, name: str, most: int) -> None:
    if value is None:
        return
    if type(value) is not str:
        raise ArgumentsError(f'option {name}: expected a str, found {value!r}')
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ArgumentsError(f'option {name}: expected text in Unicode, found {value!r}') from None
    if not 1 <= size <= most:
        raise ArgumentsError(f'option {name}: expected 1 to {most} bytes, found {size}')


def _backoff(value: Seconds | Sequence[Seconds]) -> list[int]:
    waits = [value] if isinstance(value, (int, float, datetime.timedelta)) else value
    if isinstance(waits, (str, bytes)) or not isinstance(waits, Sequence):
        raise ArgumentsError(f'option backoff: expected durations, found {value!r}')
    ms = [milliseconds(w, 'backoff') for w in waits]
    if not 1 <= len(ms) <= MAX_BACKOFF or min(ms) < 0:
        raise ArgumentsError(f'option backoff: expected 1 to {MAX_BACKOFF} durations, none negative, found {value!r}')
    return ms


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise ArgumentsError(f'option headers: expected strings by string, found {headers!r}')
    size = 0
    for k, v in headers.items():
        if type(k) is not str or type(v) is not str or not k:
            raise ArgumentsError(f'option headers: expected strings by string, no key empty, found {k!r}: {v!r}')
        try:
            size += len(k.encode()) + len(v.encode())
        except UnicodeEncodeError:
            raise ArgumentsError(f'option headers: expected text in Unicode, found {k!r}: {v!r}') from None
    if len(headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise ArgumentsError(
            f'option headers: expected at most {MAX_HEADERS} and {MAX_HEADER_BYTES} bytes, found {len(headers)} and '
            f'{size}'
        )
    return {k: headers[k] for k in sorted(headers, key=str.encode)}
