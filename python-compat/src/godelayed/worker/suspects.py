"""Suspects, which are tasks that were in hand when workers died: they wait in a list of their own, and run with few
others or alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..errors import DelayedError
from .finish import DEFER, End
from .lane import Claim, Lane
from .slot import check

if TYPE_CHECKING:
    from .fetch import Fetcher
    from .intake import Intake

# Seconds for which a worker claims nothing and waits for its other tasks to end. The time doubles if they did not end.
PATIENCE, MOST_PATIENCE = 2.0, 60.0
_SETTLE = 0.005  # seconds between two checks whether Redis knows how the tasks before a lone one ended


class Suspects:
    """What the fetcher knows about suspects. Only the fetcher's thread uses it."""

    def __init__(self, fetcher: Fetcher, intake: Intake) -> None:
        self._fetcher = fetcher
        self._executors = fetcher.executors
        self._intake = intake
        self.lone: Claim | None = None  # the claim that runs alone, or waits until it can
        self._runs = False  # whether lone has started
        self._since = 0.0  # when the worker stopped claiming because of lone, monotonic
        self.patience = PATIENCE  # how long to wait this time for other tasks to end
        self.rest = 0.0  # claim no suspects before this time unless there is nothing else to do

    def open(self) -> None:
        """Looks for suspects of all queues, because a worker that has nothing in hand takes them first."""
        for w in self._fetcher.waiters:
            try:
                todos, _ = check(w.claims, [lane.store for lane in w.lanes])
            except DelayedError:
                w.claims.hang_up()
                continue  # the mover will report them
            for lane, todo in zip(w.lanes, todos):
                lane.suspects = todo.suspects > 0

    def takes(self) -> bool:
        """Returns whether the worker may hold another suspect. Those that run alone take at most half of its time."""
        if self.lone is not None or self._executors.crowded:
            return False
        return time.monotonic() >= self.rest or not self._fetcher.any_hot()[0] and not self._intake.unfinished()

    def claim_any(self) -> bool:
        """Claims one suspect if there may be one and the worker may hold it."""
        for lane in self._fetcher.lanes:
            if lane.suspects and self._fetcher.may_claim(lane):
                if not self.takes():
                    return False
                self.claim(lane, 1, 0)
                return True
        return False

    def claim(self, lane: Lane, most: int, held: int) -> None:
        """Claims at most one suspect of a queue."""
        lane.suspects = True  # unless the reply shows otherwise
        self._fetcher.claim(lane, most, held, suspects=True)
        if self._executors.lone is not self.lone:
            self.lone, self._runs, self._since = self._executors.lone, False, time.monotonic()

    def handle_lone(self) -> None:
        """Handles the lone task. Nothing is claimed meanwhile."""
        c, f = self.lone, self._fetcher
        assert c is not None
        f.leave_off()
        if self._executors.lone is not c:
            self.patience = PATIENCE
            self._over()
        elif self._runs:
            f.block(None)
        elif c.lost or c.lane.paused or not f.claims_at_all():
            self.dismiss(DEFER)
            self._over()
        elif self._intake.unfinished() == 1:
            self._runs = True
            self._intake.start_lone(f.link_of(c.lane), c)
        elif time.monotonic() - self._since > self.patience:
            self.dismiss(DEFER)
            self.patience = min(2 * self.patience, MOST_PATIENCE)
            self._over()
        else:
            f.block(_SETTLE)

    def dismiss(self, how: int) -> None:
        """Puts back the lone task if there is one and it has not started."""
        c = self.lone
        if c is not None and not self._runs:
            self._executors.dismiss(c)
            c.lane.suspects = True
            c.lane.finisher.add(End(c, how))

    def _over(self) -> None:
        """Lets the worker claim again. It takes no suspect for as long as other tasks had to wait."""
        now = time.monotonic()
        self.lone, self.rest = None, now + (now - self._since)
        for lane in self._fetcher.lanes:
            lane.hot = True
