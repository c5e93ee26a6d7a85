"""Makes queues known to inspectors: producers and workers announce those that they use."""

from __future__ import annotations

import time
from typing import Any

from .errors import DelayedError, FullError, UnavailableError, UnknownError

_MOST = 100_000  # queues that Redis remembers
_EVERY = 3600.0  # seconds after which a queue is announced again, because somebody may have deleted it
PAUSE = 60.0  # seconds after which a producer tries again


class Announced:
    """The queues that were announced over the connections of one client. Threads may share it."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str, bool], float] = {}

    def ask(
        self, prefix: str, name: str, legacy: bool, pause: float = PAUSE
    ) -> tuple[str, list[str], list[Any]] | None:
        """Returns the name of the script to run now, its keys and arguments; None if the queue is known. It is asked
        again after pause, in seconds, unless done is called."""
        queue, now = (prefix, name, legacy), time.monotonic()
        at = self._next.get(queue)
        if at is not None and now < at:
            return None
        self._next[queue] = now + pause
        return 'announce', [prefix + 'delayed_queues'], [name, int(legacy), _MOST]

    def done(self, prefix: str, name: str, legacy: bool, error: DelayedError | None = None) -> None:
        """Notes that Redis has answered, or refuses the queue for good. Nobody needs to hear of an error: the queue
        works without."""
        if not isinstance(error, (FullError, UnavailableError, UnknownError)):
            self._next[prefix, name, legacy] = time.monotonic() + _EVERY
