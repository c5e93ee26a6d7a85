"""Notes with heartbeats how many tasks of a queue are pending."""

from __future__ import annotations

import time
from collections.abc import Sequence

from .lane import Lane
from .link import Link, RefusedError
from .slot import note_depths

_STEP = 10.0  # seconds for which one depth stands
_PATIENCE = 3 * _STEP  # how long a queue's depth is left to another worker that has noted it
_REST = 28 * _STEP  # how often it is noted that nothing is pending; readers count on five minutes
_QUEUES = 50  # of one call


class Pace:
    """Says when a worker next notes the depth of a queue. Times are monotonic."""

    def __init__(self) -> None:
        self.next = 0.0  # not before
        self.rest = 0.0  # even if nothing seems to be pending
        self.some = False  # whether something was pending when it last did so

    def due(self, at: float, waiting: bool) -> bool:
        return at >= self.next and (waiting or at >= self.rest)

    def done(self, pending: int, at: float, now: float) -> None:
        """Takes the answer of Redis, whose clock shows now: how many are pending, or -1 if another worker has noted it.

        A queue that becomes empty is noted in the next minute too, because of this minute only the peak is kept.
        """
        self.next = at + _STEP - now % _STEP
        if pending < 0:
            self.next += _PATIENCE - _STEP
            self.rest = self.next
        elif pending > 0:
            self.rest = self.next
        elif self.some:
            self.rest = at + 60 - now % 60
        else:
            self.rest = self.next + _REST - _STEP
        self.some = pending > 0


class Depths:
    """Nothing depends on depths, and a full Redis refuses them. It belongs to the thread of the teller."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._paces = {lane: Pace() for lane in lanes}

    def tell(self, link: Link) -> None:
        """Notes the depths that are due."""
        at = time.monotonic()
        due = [lane for lane, pace in self._paces.items() if pace.due(at, lane.waiting)]
        for i in range(0, len(due), _QUEUES):
            some = due[i : i + _QUEUES]
            now = some[0].now() / 1000
            try:
                noted = note_depths(link, [lane.store for lane in some], now)
            except RefusedError:
                noted = [-1] * len(some)
            for lane, pending in zip(some, noted):
                self._paces[lane].done(pending, at, now)
                if pending == 0:
                    lane.waiting = False
