"""Log lines about tasks that a flood of others may follow."""

from __future__ import annotations

import threading
import time
from typing import Callable

_INTERVAL = 1.0  # seconds between two lines about the same
_MOST_KEYS = 100  # functions beyond that share a line

Key = tuple[str, str, str]  # queue, reason and function; '' for any


class _Line:
    def __init__(self, at: float) -> None:
        self.at = at  # when the last one was written
        self.n = 0  # what has come since
        self.write: Callable[[int], None] | None = None  # logs the latest, for n


class Lines:
    """Lets one log line a second through for each key: the first at once, and then one for all that have come since,
    with their number."""

    def __init__(self) -> None:
        self._mu = threading.Lock()
        self._lines: dict[Key, _Line] = {}

    def log(self, key: Key, write: Callable[[int], None], n: int = 1) -> None:
        """Calls write for n things at once: with n, or later, for the latest of all that have come, with their
        number."""
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

    def flush(self, *, all: bool = True) -> None:
        """Logs what has come since the last line of each key; with all=False, only if that is longer ago than a line
        must be."""
        now = time.monotonic()
        late = []
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
    """What a line says that is about n tasks."""
    return '' if n == 1 else f' ({n} since the last line)'
