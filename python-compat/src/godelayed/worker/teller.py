"""Tells Redis after heartbeats what others may see of a worker."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence

from ..errors import DelayedError
from .link import Link, Source


class Teller:
    """The thread that tells it, for the queues of one slot.

    It has a connection of its own: on a distant Redis, all that there is to tell can take longer than a heartbeat
    lives.
    """

    def __init__(self, source: Source, tells: Sequence[Callable[[Link], None]]) -> None:
        self.link = Link(source)
        self.tells = tells
        self._poke = threading.Event()
        self._stop = threading.Event()

    def now(self) -> None:
        """Asks for a telling: at once, or when the one under way is over. It never blocks."""
        self._poke.set()

    def stop(self) -> None:
        """Ends the thread once it has told what it is telling: a call cut off may have counted or not."""
        self._stop.set()
        self._poke.set()

    def run(self) -> None:
        while True:
            self._poke.wait()
            self._poke.clear()
            for tell in self.tells:
                if self._stop.is_set():
                    self.link.hang_up()
                    return
                with contextlib.suppress(DelayedError):  # the next heartbeat tells it
                    tell(self.link)
