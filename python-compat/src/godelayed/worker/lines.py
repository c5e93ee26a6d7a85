"""Limits log lines about tasks, of which there may be a flood."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

logger = logging.getLogger('godelayed.worker')

_INTERVAL = 1.0  # seconds between two lines with the same key
_MOST_KEYS = 100  # further functions share a line

Key = tuple[str, str, str]  # queue, reason and function; '' stands for any


class _Line:
    def __init__(self, at: float) -> None:
        self.at = at  # when the last line was written
        self.n = 0  # events since then
        self.write: Callable[[int], None] | None = None  # logs the latest event, for n events


class Lines:
    """Writes at most one log line a second for each key: the first at once, and then one for all later events, with
    their number."""

    def __init__(self) -> None:
        self._mu = threading.Lock()
        self._lines: dict[Key, _Line] = {}

    def log(self, key: Key, write: Callable[[int], None], n: int = 1) -> None:
        """Calls write(n) at once, or later for the latest event, with the number of all events since then."""
        now = time.monotonic()
        with self._mu:
            if key not in self._lines and len(self._lines) >= _MOST_KEYS:
                key = (key[0], key[1], '')
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = _Line(now)
            elif now - line.at < _INTERVAL:
                line.n += n
                line.write = write
                return
            else:
                n, line.at, line.n, line.write = line.n + n, now, 0, None
        write(n)

    def say(self, key: Key, level: int, text: str, *args: object) -> None:
        """Logs a text about one event in this way."""
        self.log(key, lambda n: logger.log(level, text + '%s', *args, counted(n)))

    def flush(self, *, all: bool = True) -> None:
        """Logs the events since the last line of each key; with all=False only where that line is old enough."""
        now = time.monotonic()
        late: list[Any] = []
        with self._mu:
            for key, line in list(self._lines.items()):
                if not all and now - line.at < _INTERVAL:
                    continue
                if line.write is None:
                    del self._lines[key]
                    continue
                late.append((line.write, line.n))
                line.at, line.n, line.write = now, 0, None
        for write, n in late:
            write(n)


def counted(n: int) -> str:
    """Returns the end of a line that is about n tasks."""
    return '' if n == 1 else f' ({n} since the last line)'
