"""Keeps a worker alive in Redis, notices lost claims, and gives back unknown ones."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DelayedError
from .contact import Contact
from .lane import Claim, Lane
from .link import CALL_TIMEOUT, Backoff, Complaints, Link, WrongTypeError, jitter
from .slot import beat
from .store import MAX_TOKENS

logger = logging.getLogger('godelayed.worker')

_SHORTEST = 0.5  # the shortest timeout of an answer, in seconds
_LOOK_AT_LEAST = 4  # an idle worker looks at the control hash once in this many heartbeats


class Heartbeat:
    """The thread that keeps a worker alive on the queues of one slot."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        life: float,
        value: str,
        contact: Contact,
        on_beat: Callable[[], None],
    ) -> None:
        self.lanes = lanes
        self.life = life
        self.value = value
        self.contact = contact
        self.on_beat = on_beat
        self.answered = True  # whether the last heartbeat has got its answer
        self.on_registered: Callable[[], None] = lambda: None
        self.on_refused: Callable[[Lane], None] = lambda _: None  # after Redis has refused to register the worker
        first = lanes[0].store
        # The timeout is short, so that what was sent over a broken connection is soon sent again over another one.
        self.link = Link(first.source, min(max(life / 8, _SHORTEST), CALL_TIMEOUT))
        self.complaints = Complaints()
        self._stores = [lane.store for lane in lanes]
        self._beats = 0
        self._registrations = 0
        self._unsure: set[Lane] = set()  # lanes whose last registration got no answer
        self._poke = threading.Event()
        self._stop = threading.Event()

    def now(self) -> None:
        """Asks for a heartbeat at once. It never blocks."""
        self._poke.set()

    def stop(self) -> None:
        self._stop.set()
        self._poke.set()

    def run(self) -> None:
        wait = Backoff()
        while True:
            self._poke.clear()
            if self._stop.is_set():  # after clear(), because stop() may have set _poke just before
                break
            pause = jitter(self.life * 9 / 40, 0.1)  # a quarter of the life at most: sweepers count on that
            fault: DelayedError | None
            try:
                fault = self.beat()
                self.answered = True
            except DelayedError as e:
                self.answered = False
                self.link.hang_up()
                fault = e
            if fault is not None:
                self.complaints.trouble(logger, 'cannot renew the heartbeat; trying again', fault)
                pause = min(wait.next(), self.life / 8)
                # Do not wait for _poke here: a claim that waits for this heartbeat would make it a busy loop.
                self._stop.wait(pause)
                continue
            self.complaints.relief(logger, 'heartbeat renewed')
            wait.reset()
            self._poke.wait(pause)
        self.link.hang_up()

    def beat(self) -> WrongTypeError | None:
        """Renews the heartbeats once. A key of the wrong type keeps no other queue from its heartbeat."""
        fault: WrongTypeError | None = None
        count, look = False, self._beats % _LOOK_AT_LEAST == 0
        until: list[Any] = []
        for lane in self.lanes:
            known, _, unclear = lane.count()
            count = count or known > 0 or unclear
            look = look or count or lane.intent
            until.append(lane.newest())
        sent = time.monotonic(), time.time()
        with self.contact.call():
            pulses, now = beat(self.link, self._stores, int(self.life * 1000), count, look)
        self._beats += 1
        skew = now - time.time()
        for lane, pulse, newest in zip(self.lanes, pulses, until):
            lane.store.skew = skew
            lane.since = lane.since or int(now * 1000)  # the first heartbeat registers
            if pulse.version >= 0 and pulse.version != lane.version:
                lane.look()
            try:
                if pulse.alive and lane.confirmed is not None and lane not in self._unsure:
                    lane.confirmed = sent
                    self._reconcile(lane, pulse.claims, newest)
                else:
                    self._register(lane)
            except WrongTypeError as e:
                fault = e
        self.on_beat()
        return fault

    def _register(self, lane: Lane) -> None:
        """Registers the worker on a queue. Claims made before that Redis does not know any more are lost.

        The answer says nothing about claims made after the script was sent.
        """
        before = lane.open()
        again = lane.confirmed is not None
        if again and not lane.refused:  # only once, however often Redis refuses
            # Redis was away for longer than the heartbeat lives, or this process was suspended: that may be true of all
            # other workers too.
            self.contact.broken()
        until = lane.newest()
        lane.register()
        self._registrations += 1
        pulse = f'{self.value}:{self._registrations}'
        sent = time.monotonic(), time.time()
        try:
            tokens = lane.store.register(self.link, int(self.life * 1000), pulse)
        except DelayedError as e:
            lane.refused = isinstance(e, WrongTypeError)
            if lane.refused:
                self.on_refused(lane)
            self._unsure.add(lane)
            lane.register()
            raise
        lane.refused = False
        self._unsure.discard(lane)
        stands = set(tokens)
        lost: list[Claim] = [c for c in before if c.token not in stands and lane.lose(c)]
        lane.pulse = pulse
        # Before lane.confirmed, which lets the fetcher claim: claims whose call begins during a registration are given
        # back.
        lane.register()
        lane.confirmed = sent
        if again:
            logger.warning(
                'queue %s: the heartbeat had expired; registered again, %d claims lost, %d kept',
                lane.name,
                len(lost),
                len(before) - len(lost),
            )
        self.on_registered()
        self._release(lane, lane.strangers(tokens, until))

    def _reconcile(self, lane: Lane, claims: int, until: int) -> None:
        """Gives back claims that Redis holds for this worker and the worker does not know of."""
        known, calling, unclear = lane.count()
        if claims <= 0 or not unclear and (calling or claims <= known):
            return
        self._release(lane, lane.strangers(lane.store.tokens(self.link), until))

    def _release(self, lane: Lane, tokens: list[str]) -> None:
        for i in range(0, len(tokens), MAX_TOKENS):
            some = tokens[i : i + MAX_TOKENS]
            lane.store.release(self.link, [], some)
            logger.warning('queue %s: gave back %d tasks whose claim got no reply', lane.name, len(some))
