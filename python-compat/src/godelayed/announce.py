"""Makes queues known to inspectors: producers and workers announce those that they use."""

from __future__ import annotations

import time
from typing import Any

from .errors import DelayedError, FullError, UnavailableError, UnknownError

_MOST = 100_000  # queues that Redis remembers
_EVERY = 3.0  # seconds after which a queue in use is announced again: Redis may have lost its data
_REFUSED = 3600.0  # the same after Redis has refused it


class Announced:
    """The queues that were announced over the connections of one client. Threads may share it."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str, bool], float] = {}

    def ask(self, prefix: str, name: str, legacy: bool) -> tuple[str, list[str], list[Any]] | None:
        """Returns the name of the script to run now, its keys and arguments; None if the queue was announced a moment
        ago."""
        queue, now = (prefix, name, legacy), time.monotonic()
        at = self._next.get(queue)
        if at is not None and now < at:
            return None
        self._next[queue] = now + _EVERY
        return announcement(prefix, name, legacy)

    def refused(self, prefix: str, name: str, legacy: bool, error: DelayedError) -> None:
        """Notes an error. Nobody needs to hear of it: the queue works without."""
        if not isinstance(error, (FullError, UnavailableError, UnknownError)):  # the user may not write there
            self._next[prefix, name, legacy] = time.monotonic() + _REFUSED


def announcement(prefix: str, name: str, legacy: bool) -> tuple[str, list[str], list[Any]]:
    """Returns the name of the script that announces a queue, its keys and arguments."""
    return 'announce', [prefix + 'delayed_queues'], [name, int(legacy), _MOST]
