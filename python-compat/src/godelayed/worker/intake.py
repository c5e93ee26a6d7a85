"""Receives claimed tasks: decides which of them are made ready, and what happens to the others."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from ..errors import DelayedError
from ..registry import Registry
from .executors import SET_APART, Executors
from .finish import DEFER, FORWARD, RELEASE, End
from .follow import Follower
from .info import function_of
from .judge import DEATHS_LIFE, Judge
from .lane import Claim, Lane
from .link import Link
from .message import Message, MessageError
from .store import Store

logger = logging.getLogger('godelayed.worker')


class Intake:
    """Receives what the fetcher has claimed, and gives back what does not start."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        executors: Executors,
        registry: Registry,
        judge: Judge,
        follower: Follower,
        go: Store | None,
        processes: bool,
        tell: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._lanes = lanes
        self._executors = executors
        self._registry = registry
        self._judge = judge
        self._follower = follower
        self._go = go  # the queue to which Go tasks are handed on, if any
        self._processes = processes
        self._tell = tell  # those who watch: the kinds of events, the claim, and more
        self.closed = False
        self._marked: Claim | None = None  # the claim of which Redis was told that nothing else is in hand

    def knows(self, path: str) -> bool:
        """Returns whether this worker runs a function, or hands on its tasks."""
        return self._registry.get(path) is not None or self._go is not None and bool(path) and ':' not in path

    def can_run(self, lane: Lane, info: bytes | None) -> bool:
        """Returns whether this worker can run a parked task, or hand it on, as far as its info shows."""
        path = function_of(info)
        if self._registry.get(path) is not None:
            return True
        return self.knows(path) and self._go is not None and self._go.keys.list != lane.store.keys.list

    def close(self) -> None:
        """After this, all claimed tasks are given back."""
        self.closed = True

    def receive(self, link: Link, claims: list[Claim]) -> int:
        """Sorts claimed tasks: those that can run here become ready; the others are parked, handed on or archived."""
        if not claims:
            return 0
        lane = claims[0].lane
        if lane.paused or self.closed or self._executors.lone is not None:
            self.give_back(claims)
            return 0
        ends: list[End] = []
        parsed: list[Claim] = []
        for c in claims:
            if c.size:
                ends.append(self._judge.too_large(c))
                continue
            try:
                c.message = Message(c.raw)
                parsed.append(c)
            except MessageError as e:
                ends.append(self._judge.undecodable(c, e))
        if parsed and claims[0].batch.version:
            try:
                revoked = self._follower.screen(link, lane, parsed)
            except DelayedError as e:
                logger.warning('queue %s: cannot ask which tasks were cancelled; giving them back: %s', lane.name, e)
                lane.rest = time.monotonic() + 0.02
                lane.finisher.add(*ends)
                self.give_back(parsed)
                return 0
            if revoked:
                for c in parsed:
                    if c.message.id in revoked:
                        ends.append(self._judge.cancellation(c))
                        self._tell(['task canceled'], c)
                parsed = [c for c in parsed if c.message.id not in revoked]
        runnable: list[Claim] = []
        suspects = False
        get = self._registry.get
        now = lane.now()
        for c in parsed:
            m = c.message
            if not m.python:
                ends.append(self._foreign(c))
                continue
            function = get(m.path)
            if function is None:
                ends.append(self._park(c, 'unknown function'))
                continue
            c.function = function
            if m.deaths and now - m.meta.get('da', 0) < DEATHS_LIFE * 1000:
                # In a process of its own, a task takes no others with it when it dies. So only deaths together with
                # others make it suspect there.
                c.suspicion = m.deaths - m.meta.get('al', 0) if self._processes else m.deaths
                if c.suspicion >= SET_APART and not (c.batch.suspects and self._executors.admit(c)):
                    ends.append(End(c, DEFER))
                    lane.suspects = True
                    continue
                suspects = suspects or c.suspicion > 0
            runnable.append(c)
        if ends:
            lane.finisher.add(*ends)
        if suspects:
            self._executors.calm()
            if self._executors.lone is not None:
                return 1  # it starts when nothing else is in hand any more
        if not runnable:
            return 0
        if not self._unmark(link):
            lane.rest = time.monotonic() + 0.02
            self.give_back(runnable)
            return 0
        if suspects and self.unfinished() == 1:
            self._mark(link, runnable[0])
        self._executors.add(runnable)
        if lane.paused:
            self.give_back(self._executors.take_back(lane))  # it was not paused when we looked
        return len(runnable)

    def _foreign(self, c: Claim) -> End:
        """Returns the end for a Go task: it is handed on, or parked until a Go worker claims it."""
        if self._go is not None and self._go.keys.list != c.lane.store.keys.list:
            self._tell(['task forwarded'], c)
            return End(c, FORWARD)
        return self._park(c, 'go')

    def _park(self, c: Claim, reason: str) -> End:
        self._tell(['task parked'], c, reason=reason)
        return self._judge.park(c, reason)

    def in_hand(self) -> int:
        """Returns the number of claims whose end Redis has not confirmed."""
        return sum(lane.known for lane in self._lanes)

    def unfinished(self) -> int:
        """Returns in_hand without claims that have ended where Redis refuses to be told: they may stay for ever."""
        refused = sum(lane.finisher.untold for lane in self._lanes if lane.finisher.refused)
        return max(self.in_hand() - refused, 0)

    def start_lone(self, link: Link, c: Claim) -> None:
        """Starts a suspect, which must be the only claim in hand."""
        self._mark(link, c)
        self._executors.add([c])

    def _mark(self, link: Link, c: Claim) -> None:
        """Tells Redis that nothing but c is in hand.

        If that fails, c starts all the same, and its death counts as one among others.
        """
        self._marked = c  # even if the call fails
        try:
            c.lane.store.mark(link, 'alone', c.token)
        except DelayedError as e:
            logger.debug('queue %s: cannot note that a suspect runs alone: %s', c.lane.name, e)

    def _unmark(self, link: Link) -> bool:
        """Takes back what _mark told Redis, before other tasks start, unless that claim is settled. Returns whether
        they may start."""
        c = self._marked
        if c is not None and not c.settled:
            try:
                c.lane.store.mark(link, 'alone', '')
            except DelayedError as e:
                logger.debug('queue %s: cannot note that a suspect runs beside others: %s', c.lane.name, e)
                return False
        self._marked = None
        return True

    def give_back(self, claims: list[Claim]) -> None:
        """Releases claims whose tasks have not started."""
        # One call for each lane, or some of them might go back before the others and then be in the queue behind them.
        for lane in self._lanes:
            ends = [End(c, RELEASE) for c in claims if c.lane is lane]
            if ends:
                lane.finisher.add(*ends)
