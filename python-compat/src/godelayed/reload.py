"""Restarts a worker when its source files change, for development."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator

_LOOK = 0.5  # seconds between two looks


class Watch:
    """The source files of the modules that the program has imported, and of those below the current folder."""

    def __init__(self) -> None:
        self._began = time.time_ns()
        self._seen = dict(_files())

    def changed(self) -> str:
        """Returns a file that was changed, added or removed since the watch began, '' if none was."""
        now = dict(_files())
        for file in {**self._seen, **now}:
            # A module that is imported only now, and has been there before, is no change.
            at = now.get(file, self._began + 1)
            if at != self._seen.get(file) and at > self._began:
                return file
        return ''

    def wait(self, then: Callable[[str], None]) -> None:
        """Waits for a change, and calls then with the file."""
        while True:
            time.sleep(_LOOK)
            file = self.changed()
            if file:
                then(file)
                return


def _files() -> Iterator[tuple[str, int]]:
    """Yields the files with the times of their last changes."""
    names = {getattr(m, '__file__', None) or '' for m in list(sys.modules.values())}
    found = {os.path.abspath(n) for n in names if n.endswith('.py')}
    for folder, folders, files in os.walk('.'):
        # Environments and hidden folders have nothing of the program.
        folders[:] = [f for f in folders if f[0] != '.' and not os.path.exists(os.path.join(folder, f, 'pyvenv.cfg'))]
        found |= {os.path.abspath(os.path.join(folder, f)) for f in files if f.endswith('.py')}
    for name in found:
        try:
            yield name, os.stat(name).st_mtime_ns
        except OSError:  # it was removed just now
            continue
