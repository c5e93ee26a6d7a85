"""The names of a queue's keys. lua/README.md of the project says what each holds."""

from __future__ import annotations

import time

from .errors import ArgumentsError

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
    '_results',
    '_locks',
    '_locked',
    '_revoked',
    '_control',
    '_functions',
    '_groups',
    '_gathered',
    '_suspects',
    '_periodic',
    '_ticks',
    '_depths',
)
_INFIXES = ('_processing:', '_claims:', '_worker:', '_rewait:', '_stats:', '_group:', '_history:', '_metrics:')
_MAX_NAME = 128


class Keys:
    """The keys and channels of one queue.

    processing, claims, heartbeat, stats, metrics, rewait, group and history are prefixes: the code that uses them
    appends an id.
    """

    __slots__ = (
        'archived',
        'claims',
        'completed',
        'control',
        'deaths',
        'depths',
        'events',
        'functions',
        'gathered',
        'group',
        'groups',
        'heartbeat',
        'history',
        'info',
        'legacy',
        'list',
        'locked',
        'locks',
        'metrics',
        'mode',
        'noti',
        'parked',
        'periodic',
        'processing',
        'results',
        'retry',
        'revoked',
        'rewait',
        'scheduled',
        'signals',
        'stats',
        'suspects',
        'suspects_noti',
        'sweeper',
        'tasks',
        'ticks',
        'wake',
        'watch',
        'workers',
    )

    def __init__(self, name: str, prefix: str = '') -> None:
        check_name(name)
        n = prefix + name
        self.list = n
        self.noti = n + '_noti'
        self.wake = n + '_wake'
        self.legacy = n + '_processing'
        self.workers = n + '_workers'
        self.scheduled = n + '_scheduled'
        self.retry = n + '_retry'
        self.archived = n + '_archived'
        self.completed = n + '_completed'
        self.parked = n + '_parked'
        self.tasks = n + '_tasks'
        self.info = n + '_info'
        self.deaths = n + '_deaths'
        self.sweeper = n + '_sweeper'
        self.mode = n + '_mode'
        self.results = n + '_results'
        self.locks = n + '_locks'
        self.locked = n + '_locked'
        self.revoked = n + '_revoked'
        self.control = n + '_control'
        self.functions = n + '_functions'
        self.groups = n + '_groups'
        self.gathered = n + '_gathered'
        self.suspects = n + '_suspects'  # like list and noti, for tasks that run alone or with few others
        self.suspects_noti = n + '_suspects_noti'
        self.periodic = n + '_periodic'
        self.ticks = n + '_ticks'
        self.depths = n + '_depths'
        self.processing = n + '_processing:'
        self.claims = n + '_claims:'
        self.heartbeat = n + '_worker:'
        self.rewait = n + '_rewait:'
        self.stats = n + '_stats:'
        self.metrics = n + '_metrics:'
        self.group = n + '_group:'
        self.history = n + '_history:'
        self.signals = n + '_signals'
        self.events = n + '_events'  # a channel, as watch is
        self.watch = n + '_watch'

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
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            raise ArgumentsError(
                f'queue name {name!r} ends in {suffix!r}, which is a key of queue {name[: -len(suffix)]!r}: choose '
                'another name'
            )
    for infix in _INFIXES:
        if infix in name:
            raise ArgumentsError(
                f'queue name {name!r} contains {infix!r}, which marks keys of another queue: choose another name'
            )
