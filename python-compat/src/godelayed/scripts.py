"""The Lua scripts of the project, the same files that Go runs, and the names of keys."""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import Any

import redis

from .errors import ArgumentsError, DelayedError, FullError, UnknownError

_SUFFIXES = (
    '_noti',
    '_wake',
    '_processing',
    '_workers',
    '_scheduled',
    '_retry',
    '_archived',
    '_completed',
    '_parked',
    '_tasks',
    '_info',
    '_deaths',
    '_sweeper',
    '_mode',
    '_locks',
    '_locked',
    '_revoked',
    '_control',
    '_groups',
    '_periodic',
    '_ticks',
)
_INFIXES = ('_processing:', '_claims:', '_worker:', '_stats:', '_group:')
_MAX_NAME = 128


class Script:
    """One file of lua/."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.source = resources.files(__package__).joinpath('lua', name + '.lua').read_bytes()
        self.sha = hashlib.sha1(self.source).hexdigest()

    def explain(self, error: BaseException) -> DelayedError:
        """Turns an error of redis-py into one that says whether anything was written."""
        text = str(error)
        if isinstance(error, redis.exceptions.ResponseError):
            if 'OOM' in text or 'MISCONF' in text:
                return FullError(f'{self.name}: Redis refuses writes: {text}')
            return DelayedError(f'{self.name}: {text}')
        return UnknownError(f'{self.name}: the task may or may not have been enqueued: {text or type(error).__name__}')


ENQUEUE = Script('enqueue')
SCHEDULE = Script('schedule')
MODE = Script('mode')


class Keys:
    """The keys of one queue; lua/README.md of the project says what each holds."""

    def __init__(self, name: str, prefix: str = '') -> None:
        check_name(name)
        n = prefix + name
        self.list = n
        for suffix in _SUFFIXES:
            setattr(self, suffix[1:] if suffix != '_processing' else 'legacy', n + suffix)
        self.processing, self.claims, self.heartbeat, self.stats, self.group = (n + i for i in _INFIXES)

    def __getattr__(self, name: str) -> Any:  # for the checker: all are set above
        raise AttributeError(name)


def check_name(name: str) -> None:
    """Refuses what cannot be the name of a queue."""
    if not isinstance(name, str) or not 1 <= len(name.encode()) <= _MAX_NAME:
        raise ArgumentsError(f'queue name {name!r}: expected 1 to {_MAX_NAME} bytes')
    if not name.isprintable() or any(c.isspace() for c in name):
        raise ArgumentsError(f'queue name {name!r}: expected printable characters without spaces')
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            raise ArgumentsError(
                f'queue name {name!r} ends in {suffix!r}, which is a key of queue {name[: -len(suffix)]!r}: choose another name'
            )
    for infix in _INFIXES:
        if infix in name:
            raise ArgumentsError(f'queue name {name!r} contains {infix!r}, which marks keys of another queue: choose another name')
