"""Makes due tasks pending, enqueues ticks, and finds parked tasks that this worker can run."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence

from ..errors import DelayedError
from .info import encode
from .judge import say_archived, too_large
from .lane import Lane
from .lines import Lines
from .link import Backoff, Complaints, WrongTypeError, jitter
from .scheduler import Scheduler
from .slot import Todo, check
from .store import Store

logger = logging.getLogger('godelayed.worker')

_BATCH = 200  # tasks that one script makes pending
_INTERVAL = 5.0  # longest time between two looks, in seconds
_GROUPS_LATE, _GROUPS_EVERY = 15.0, 600.0  # seconds for which groups may be due, and between two complaints
_PAGES, _PAGE = 10, 100  # pages of parked tasks at one look, and tasks of a page


class Mover:
    """The thread that looks for due tasks on queues of one slot. Every worker has one; no leader is needed."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        pending: Callable[[Lane, bool], None],
        can_run: Callable[[Lane, bytes | None], bool],
        found: Callable[[], None],
        archive_for: int,
        lines: Lines,
    ) -> None:
        self.lanes = lanes
        self.pending = pending  # called for queues that have pending tasks or suspects
        self._archive_for = archive_for  # ms
        self._lines = lines
        self.can_run = can_run
        self.found = found  # called when there are parked tasks that this worker can run
        self.schedulers: list[Scheduler] = []
        self.link = lanes[0].store.link()
        self.complaints = Complaints()
        self._stores = [lane.store for lane in lanes]
        self._offset = [0] * len(lanes)
        self._groups_late = [time.monotonic() + _GROUPS_LATE] * len(lanes)  # when to complain of groups, monotonic
        self._poke = threading.Event()
        self._stop = threading.Event()
        self.idle: bool | None = None  # whether nothing was pending or due at the last look
        self.looks = 0

    def now(self) -> None:
        """Makes the mover look at once. It never blocks."""
        self._poke.set()

    def stop(self) -> None:
        self._stop.set()
        self._poke.set()
        self.link.cut()

    def run(self) -> None:
        wait = Backoff()
        while True:
            self._poke.clear()
            if self._stop.is_set():  # after clear(), because stop() may have set _poke just before
                break
            try:
                pause, fault = self.look()
            except DelayedError as e:
                if self._stop.is_set():
                    break
                self._complain(e)
                self._stop.wait(wait.next())  # not _poke, which would make it a busy loop
                continue
            if fault is None:
                self.complaints.relief(logger, 'looking for due tasks again')
                wait.reset()
            else:
                self._complain(fault)
                pause = min(pause, wait.next())
            self._poke.wait(pause)
        self.link.hang_up()

    def _complain(self, error: DelayedError) -> None:
        self.complaints.trouble(logger, 'cannot look for due tasks; trying again', error)

    def look(self) -> tuple[float, WrongTypeError | None]:
        """Moves due tasks, and returns in how many seconds to look again.

        A queue whose keys have the wrong type does not keep it from the others; the error of one is returned.
        """
        pause, idle = jitter(_INTERVAL * 7 / 8, 0.14), True
        for scheduler in self.schedulers:  # first: a tick is pending after it
            pause = min(pause, scheduler.look())
        todos, fault = check(self.link, self._stores)
        for i, todo in enumerate(todos):
            try:
                due, quiet = self._look_after(i, todo)
            except WrongTypeError as e:
                fault = e
                continue
            pause, idle = min(pause, due), idle and quiet
        self._lines.flush(all=False)
        self.idle = idle if fault is None else None  # it does not know
        self.looks += 1
        return pause, fault

    def _look_after(self, i: int, todo: Todo) -> tuple[float, bool]:
        """Does what there is to do on a queue.

        Returns in how many seconds a task is due there, and whether nothing was pending or due.
        """
        lane, due = self.lanes[i], todo.due
        if todo.pending > 0:
            self.pending(lane, False)
        if todo.suspects > 0:
            self.pending(lane, True)
        quiet = todo.pending == 0 and todo.suspects == 0 and due != 0
        if due == 0:
            due = self._move(lane)
        self._look_at_groups(i, due=todo.group == 0)
        if todo.parked > 0:
            self._find(i, todo.parked)
        else:
            with lane.mu:
                lane.parked = []
        return due / 1000 if due >= 0 else math.inf, quiet and not lane.parked

    def _move(self, lane: Lane) -> int:
        """Makes all due tasks of a queue pending and returns the ms until the next one is due, negative for none."""
        next_ = -1
        for shelf in ('scheduled', 'retry'):
            due = 0
            while due == 0 and not self._stop.is_set():
                due, large = lane.store.move(self.link, shelf, _BATCH)
                self._archive(lane.store, shelf, large)
            if due >= 0 and (next_ < 0 or due < next_):
                next_ = due
        self.pending(lane, False)
        return next_

    def _archive(self, store: Store, shelf: str, large: list[tuple[str, int]]) -> None:
        """Archives due tasks whose messages are too large for any worker, without changing them."""
        for i in range(0, len(large), _PAGE):
            part = large[i : i + _PAGE]
            now = store.now()
            store.condemn(
                self.link,
                shelf,
                self._archive_for,
                [(id, encode(reason='too large', at=now, error=too_large(n)), '') for id, n in part],
            )
            for id, n in part:
                say_archived(self._lines, store.name, id, 'too large', too_large(n))

    def _look_at_groups(self, i: int, due: bool) -> None:
        """Says so if a queue has gathered calls that are due, but no Go worker, which would put them together."""
        now = time.monotonic()
        if not due:
            self._groups_late[i] = now + _GROUPS_LATE
        elif now >= self._groups_late[i]:
            text = 'queue %s: gathered calls are due: start a Go worker on it, which puts them together'
            logger.warning(text, self.lanes[i].name)
            self._groups_late[i] = now + _GROUPS_EVERY

    def _find(self, i: int, parked: int) -> None:
        """Looks for parked tasks that this worker can run, and hands them to the fetcher.

        It looks among those that were parked last, and if it finds none, among a few pages of the others, after those
        of the last look.
        """
        lane = self.lanes[i]
        ids, n = self._find_on(lane, 0)
        self._offset[i] = max(self._offset[i], n)
        for _ in range(_PAGES - 1):
            if ids or self._offset[i] >= parked or self._stop.is_set():
                break
            ids, n = self._find_on(lane, self._offset[i])
            self._offset[i] += n - len(ids)
        if self._offset[i] >= parked:
            self._offset[i] = 0
        with lane.mu:
            lane.parked = ids
        if ids:
            self.found()

    def _find_on(self, lane: Lane, offset: int) -> tuple[list[str], int]:
        page = lane.store.parked_page(self.link, offset, _PAGE)
        return [id for id, info in page if self.can_run(lane, info)], len(page)
