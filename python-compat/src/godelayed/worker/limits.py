"""The limits of time and memory after which a worker stops by itself."""

from __future__ import annotations

import logging
import threading
import time

from .config import WorkerConfig
from .memory import resident, resident_of
from .pool import Pool

logger = logging.getLogger('godelayed.worker')

_LOOK = 1.0  # seconds between two looks at the memory


class Limits:
    """Begins when it is made. pool is that of the worker's processes, None without them."""

    def __init__(self, cfg: WorkerConfig, pool: Pool | None) -> None:
        self._pool = pool
        self._most = cfg.max_memory
        self._until = None if cfg.max_time is None else time.monotonic() + cfg.seconds('max_time')
        # A worker that ends after so many tasks, or when there are none, looks often.
        self._every = 0.05 if cfg.max_tasks is not None or cfg.stop_when_empty else _LOOK if self._most else None

    def patience(self) -> float | None:
        """Returns for how many seconds there is nothing to look at, None: for good."""
        if self._until is None:
            return self._every
        left = min(max(0.0, self._until - time.monotonic()), threading.TIMEOUT_MAX)
        return left if self._every is None else min(left, self._every)

    def over(self) -> str:
        """Returns which limit was passed, '' if none was."""
        if self._until is not None and time.monotonic() >= self._until:
            return 'max time'
        if self._most is None:
            return ''
        pids = self._pool.pids() if self._pool is not None else []
        used = resident() + sum(map(resident_of, pids))
        if used <= self._most:
            return ''
        logger.warning('the worker takes %d bytes, more than max_memory, %d', used, self._most)
        return 'max memory'
