"""Making due tasks pending, firing due groups, releasing parked tasks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Callable

from ..errors import DelayedError
from ..registry import Registry
from .groups import Firing
from .info import function_of
from .lane import Lane
from .link import Backoff, Complaints, jitter
from .store import check

logger = logging.getLogger('godelayed.worker')

_BATCH = 500  # tasks that one script makes pending
_INTERVAL = 5.0  # seconds between two looks at most
_PAGES, _PAGE = 10, 100  # of parked tasks, read at one look
_HASTE_INTERVAL, _HASTE_TIME = 0.2, 30.0  # looks after parked tasks were released: in a deploy, older workers go on parking


class Mover:
    """The thread that looks for what is due on queues of one slot. Every worker has one; no leader is needed."""

    def __init__(self, lanes: Sequence[Lane], registry: Registry, pending: Callable[[Lane, bool], None]) -> None:
        self.lanes = lanes
        self.registry = registry
        self.pending = pending  # called for queues that have pending tasks, or suspects
        self.link = lanes[0].store.link()
        self.complaints = Complaints()
        self._stores = [lane.store for lane in lanes]
        self._offset = [0] * len(lanes)
        self._firings = [Firing(lane.store) for lane in lanes]
        self._haste = 0.0
        self._poke = threading.Event()
        self._stop = False
        self.idle: bool | None = None  # nothing was pending or due at the last look
        self.looks = 0

    def now(self) -> None:
        """Makes the mover look at once. It never blocks."""
        self._poke.set()

    def stop(self) -> None:
        self._stop = True
        self._poke.set()
        self.link.cut()

    def run(self) -> None:
        wait = Backoff()
        while not self._stop:
            self._poke.clear()
            try:
                pause = self.look()
            except DelayedError as e:
                if self._stop:
                    break
                self.complaints.trouble(logger, 'cannot look for due tasks; trying again', e)
                time.sleep(min(wait.next(), 2.0))
                continue
            self.complaints.relief(logger, 'looking for due tasks again')
            wait.reset()
            self._poke.wait(pause)
        self.link.hang_up()

    def look(self) -> float:
        """Moves what is due and returns in how many seconds to look again."""
        pause = jitter(_INTERVAL * 7 / 8, 0.14)
        idle = True
        for i, todo in enumerate(check(self.link, self._stores)):
            lane = self.lanes[i]
            due = todo.due
            if todo.pending > 0:
                self.pending(lane, False)
            if todo.suspects > 0:
                self.pending(lane, True)
            idle = idle and todo.pending == 0 and todo.suspects == 0 and due != 0
            if due == 0:
                due = self._move(lane)
            if due >= 0:
                pause = min(pause, due / 1000)
            due = todo.group
            if due == 0 or self._firings[i].lent:
                idle = False
                due = self._firings[i].fire(self.link)
            if due >= 0:
                pause = min(pause, due / 1000)
            if todo.parked > 0:
                self._unpark(i, todo.parked)
        self.idle = idle
        self.looks += 1
        if time.monotonic() < self._haste:
            pause = min(pause, jitter(_HASTE_INTERVAL, 0.25))
        return pause

    def _move(self, lane: Lane) -> int:
        """Makes all due tasks of a queue pending and returns the ms until the next is due, negative for none."""
        next_ = -1
        for shelf in ('scheduled', 'retry'):
            due = 0
            while due == 0 and not self._stop:
                due = lane.store.move(self.link, shelf, _BATCH)
            if due >= 0 and (next_ < 0 or due < next_):
                next_ = due
        self.pending(lane, False)
        return next_

    def _unpark(self, i: int, parked: int) -> None:
        """Releases parked tasks that this worker can run, a few pages at each look."""
        store = self.lanes[i].store
        pages = 0
        while pages < _PAGES and not self._stop:
            if self._offset[i] >= parked:
                self._offset[i] = 0
                return
            page = store.parked_page(self.link, self._offset[i], _PAGE)
            ids = [id for id, info in page if self.registry.get(function_of(info)) is not None]
            self._offset[i] += len(page) - len(ids)
            if ids:
                n = store.unpark(self.link, ids)
                # A worker of another version may take them once more and park them again.
                self._haste = time.monotonic() + _HASTE_TIME
                logger.info('queue %s: %d parked tasks are pending again: this worker knows their functions', store.name, n)
                self.pending(self.lanes[i], False)
            else:
                pages += 1
            if len(page) < _PAGE:
                self._offset[i] = 0
                return
