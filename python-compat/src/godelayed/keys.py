"""The names of a queue's keys. lua/README.md of the project says what each holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .errors import ArgumentsError

_NAMES = """noti wake workers scheduled retry archived completed parked tasks info deaths sweeper mode results locks
revoked control functions groups gathered suspects periodic ticks"""
_NAMES_OF_PREFIXES = 'processing claims rewait stats group history metrics'
# The attributes of Keys, each with what follows the name of the queue in the key.
_OF_QUEUES = {'legacy': '_processing', **{name: f'_{name}' for name in _NAMES.split()}}
_PREFIXES = {'heartbeat': '_worker:', **{name: f'_{name}:' for name in _NAMES_OF_PREFIXES.split()}}
_OTHERS = {'list': '', 'suspects_noti': '_suspects_noti', 'signals': '_signals', 'events': '_events', 'watch': '_watch'}
_ALL = {**_OF_QUEUES, **_PREFIXES, **_OTHERS}.items()
_MAX_NAME = 128


class Keys:
    """The keys and channels of one queue, by the names of the table above.

    processing, claims, heartbeat, stats, metrics, rewait, group and history are prefixes: the code that uses them
    appends an id. suspects and suspects_noti are like list and noti, for tasks that run alone or with few others.
    signals, events and watch are channels.
    """

    def __init__(self, name: str, prefix: str = '') -> None:
        check_name(name)
        self.__dict__.update((attribute, prefix + name + rest) for attribute, rest in _ALL)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> str: ...

    def pending(self, suspects: bool) -> tuple[str, str]:
        """Returns the keys of the pending tasks and of their notify list, or those of the suspects."""
        return (self.suspects, self.suspects_noti) if suspects else (self.list, self.noti)

    def ended(self, id: str) -> str:
        """Returns the channel on which workers announce the end of a task."""
        return f'{self.list}_ended:{id}'

    def stats_of(self, seconds: float) -> str:
        """Returns the key of the counters of a UTC day. seconds is any time of that day since 1970."""
        return self.stats + time.strftime('%Y%m%d', time.gmtime(seconds))


def check_name(name: str) -> None:
    """Raises ArgumentsError if name is not valid as the name of a queue."""
    if not isinstance(name, str):
        raise ArgumentsError(f'queue name {name!r}: expected a str')
    if not name.isprintable() or any(c.isspace() for c in name):
        raise ArgumentsError(f'queue name {name[:_MAX_NAME]!r}: expected printable characters without spaces')
    if not 1 <= len(name.encode()) <= _MAX_NAME:
        raise ArgumentsError(
            f'queue name {name[:_MAX_NAME]!r}: expected 1 to {_MAX_NAME} bytes, found {len(name.encode())}'
        )
    for suffix in _OF_QUEUES.values():
        if name.endswith(suffix):
            raise ArgumentsError(
                f'queue name {name!r} ends in {suffix!r}, which is a key of queue {name[: -len(suffix)]!r}: choose '
                'another name'
            )
    for infix in _PREFIXES.values():
        if infix in name:
            raise ArgumentsError(
                f'queue name {name!r} contains {infix!r}, which marks keys of another queue: choose another name'
            )
