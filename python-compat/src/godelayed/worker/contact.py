"""Records since when a process has been in touch with one Redis server without a break."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator


class Contact:
    """A sweeper needs it: when Redis was unreachable, or this process was suspended, a missing heartbeat says nothing
    about its worker."""

    def __init__(self, life: float) -> None:
        self._slow = max(life / 4, 0.1)  # seconds; a call that takes longer is a break
        self._lock = threading.Lock()
        self._since: float | None = None
        self._pending: dict[int, float] = {}
        self._next = 0

    @contextlib.contextmanager
    def call(self) -> Generator[None]:
        """A context for one call to Redis."""
        with self._lock:
            self._next += 1
            id = self._next
            start = self._pending[id] = time.monotonic()
        good = False
        try:
            yield
            good = True
        finally:
            now = time.monotonic()
            with self._lock:
                del self._pending[id]
                if not good or now - start > self._slow:
                    self._since = None
                elif self._since is None:
                    self._since = now

    def broken(self) -> None:
        """Notes a break of contact that call() has not noticed."""
        with self._lock:
            self._since = None

    def unbroken(self) -> float | None:
        """Returns since when there has been contact, on the monotonic clock; None if there is none now."""
        now = time.monotonic()
        with self._lock:
            if any(now - start > self._slow for start in self._pending.values()):
                return None
            return self._since
