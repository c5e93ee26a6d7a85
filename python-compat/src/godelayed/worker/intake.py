"""Claimed tasks on their way in: which of them are made ready, and what becomes of the others."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from ..errors import DelayedError
from ..registry import Registry
from .executors import Executors
from .finish import DEFER, FORWARD, GATHER, RELEASE, End, Receipt
from .follow import Follower
from .groups import Member
from .info import function_of
from .judge import DEATHS_LIFE, Judge
from .lane import Claim, Lane
from .link import Link
from .message import Message, MessageError
from .store import Store

logger = logging.getLogger('godelayed.worker')

_SUSPECT_ALONE = 1.0


class Intake:
    """Takes what the fetcher has claimed, and gives back what does not start."""

    def __init__(
        self, lanes: Sequence[Lane], executors: Executors, registry: Registry, judge: Judge, follower: Follower, go: Store | None
    ) -> None:
        self._lanes = lanes
        self._executors = executors
        self._registry = registry
        self._judge = judge
        self._follower = follower
        self._go = go  # the queue that Go tasks are handed on to, if any
        self.closed = False

    def knows(self, path: str) -> bool:
        """Says whether this worker runs a function, or hands its tasks on."""
        return self._registry.get(path) is not None or self._go is not None and bool(path) and ':' not in path

    def can_run(self, lane: Lane, info: bytes | None) -> bool:
        """Says whether this worker can run a parked task, or hand it on, as far as what is known of it tells."""
        path = function_of(info)
        if self._registry.get(path) is not None:
            return True
        return self.knows(path) and self._go is not None and self._go.keys.list != lane.store.keys.list

    def close(self) -> None:
        """From now on whatever comes is given back, and nobody waits for Redis's answer."""
        self.closed = True

    def receive(self, link: Link, claims: list[Claim]) -> int:
        """Sorts claimed tasks: those that can run here become ready, the others are parked, handed on or archived."""
        if not claims:
            return 0
        lane = claims[0].lane
        if self._executors.barred():
            # Their call was under way when a suspect came.
            self._executors.leave_off()
            self._await(self.give_back(claims))
            return 0
        if lane.paused or self.closed:
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
                ends += [self._judge.cancellation(c) for c in parsed if c.message.id in revoked]
                parsed = [c for c in parsed if c.message.id not in revoked]
        runnable: list[Claim] = []
        suspects: list[Claim] = []
        get = self._registry.get
        now = lane.now()
        for c in parsed:
            m = c.message
            if not m.python:
                ends.append(self._foreign(c))
                continue
            function = get(m.path)
            if function is None:
                ends.append(self._judge.park(c, 'unknown function'))
                continue
            c.function = function
            if m.deaths and now - m.meta.get('da', 0) < DEATHS_LIFE * 1000:
                c.suspect = True
                suspects.append(c)
            else:
                runnable.append(c)
        if ends:
            lane.finisher.add(*ends)
        if suspects:
            return self._receive_suspects(suspects, runnable)
        lane.refused = 0
        self._executors.add(runnable)
        if lane.paused:
            self.give_back(self._executors.take_back(lane))  # it was not when we looked
        return len(runnable)

    def _foreign(self, c: Claim) -> End:
        """What becomes of a Go task: it joins its group, is handed on, or parked."""
        if 'g' in c.message.meta:
            try:
                return End(c, GATHER, id=Member(c.raw).group)
            except MessageError:
                pass  # it is run alone
        if self._go is not None and self._go.keys.list != c.lane.store.keys.list:
            return End(c, FORWARD)
        return self._judge.park(c, 'go')

    def _receive_suspects(self, suspects: list[Claim], runnable: list[Claim]) -> int:
        """Makes at most one suspect ready.

        Before, it gives back all others and everything that has not started: if the suspect takes the worker down, it takes
        nothing else with it. Suspects that find another one in hand go to the end of their queue.
        """
        chosen = suspects[0]
        lane = chosen.lane
        if not self._executors.admit(chosen):
            lane.refused += len(suspects)
            if runnable:
                lane.refused = 0
            elif lane.refused >= lane.left:
                lane.refused, lane.rest = 0, time.monotonic() + _SUSPECT_ALONE
            lane.finisher.add(*(End(c, DEFER) for c in suspects))
            self._executors.add(runnable)
            return len(runnable)
        told = self.give_back(self._executors.take_back() + suspects[1:] + runnable)
        self._executors.leave_off()  # this may take a while
        if self._await(told):
            self._executors.add([chosen])
            return 1
        self._executors.dismiss(chosen)
        self.give_back([chosen])
        return 0

    def _await(self, told: Receipt) -> bool:
        """Waits for Redis's answer, and says whether it came before the worker stops."""
        while not told.done.wait(0.05):
            if self.closed:
                return False
        return True

    def give_back(self, claims: list[Claim]) -> Receipt:
        """Releases claims whose tasks have not started."""
        told = Receipt(len(claims))
        # One call for each lane, or a part of them might go back before the rest and come to stand behind it.
        for lane in self._lanes:
            ends = [End(c, RELEASE, told=told) for c in claims if c.lane is lane]
            if ends:
                lane.finisher.add(*ends)
        return told
