"""How much memory the worker takes, as it tells others."""

from __future__ import annotations

import os
import sys

_REST = 30.0  # seconds after which a change may be told
_CHANGE = 4 << 20  # bytes of a change that is worth telling, if it is also such a part of the memory:
_PART = 8


def resident(path: str = '/proc/self/statm') -> int:
    """Returns how many bytes of this process are in main memory; where only the most is known, that, and 0 for
    unknown."""
    found = _resident(path)
    if found:
        return found
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == 'darwin' else 1024)


def resident_of(pid: object) -> int:
    """Returns how many bytes of another process are in main memory, 0 for unknown."""
    return _resident(f'/proc/{pid}/statm')


def _resident(path: str) -> int:
    try:
        with open(path, 'rb') as statm:
            return int(statm.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    except (OSError, ValueError, IndexError):
        return 0


class ToldMemory:
    """The memory that was told last, so that small changes are no news."""

    def __init__(self) -> None:
        self._bytes = 0
        self._at: float | None = None

    def tell(self, used: int, now: float) -> int:
        """Returns the memory to tell of: used if that is news, else what was told before. now is monotonic."""
        large = abs(used - self._bytes) >= max(_CHANGE, self._bytes // _PART)
        if self._at is None or large and now - self._at >= _REST:
            self._bytes, self._at = used, now
        return self._bytes
