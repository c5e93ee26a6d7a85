"""Does what the control hash says, and ends tasks that were cancelled.

The worker learns of changes by signals, or else by heartbeats and claims.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from ..errors import DelayedError
from ..kinds import is_list
from .executors import Executors
from .lane import Claim, Lane
from .link import Backoff, Link, jitter
from .store import REVOKED_MOST, Control

logger = logging.getLogger('godelayed.worker')

_PING = 10.0  # seconds of silence before a PING
_LOOK = 1.0  # seconds between two looks whether the connection is given up
_LIFE = 300.0  # seconds after which a connection is replaced


class Listener:
    """The thread that receives what is published for the worker.

    The worker works without it as well, because messages may be lost with a connection.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        canceled: Callable[[Lane, str], None],
        parked: Callable[[str], None],
        watch: Callable[[Lane, int], None] = lambda _, __: None,
    ) -> None:
        self._lanes = {lane.store.keys.signals.encode(): lane for lane in lanes}
        self._watched = {lane.store.keys.watch.encode(): lane for lane in lanes}
        self._watch = watch
        self._canceled = canceled
        self._parked = parked  # called with the path of a function, or '' if it is unknown which was parked
        self.link = lanes[0].store.link()
        self._stop = threading.Event()

    def stop(self) -> None:
        self._stop.set()
        self.link.cut()

    def run(self) -> None:
        wait = Backoff()
        while not self._stop.is_set():
            try:
                self._session()
                wait.reset()
            except Exception as e:
                if self._stop.is_set():
                    break
                logger.debug('signals are lost: %s', e)
                self._stop.wait(wait.next())
            self.link.hang_up()
        self.link.hang_up()

    def _session(self) -> None:
        self.link.send('SUBSCRIBE', *self._lanes, *self._watched)
        end, pinged, heard = time.monotonic() + jitter(_LIFE, 0.2), False, time.monotonic()
        dials = self.link.dials  # a send may dial anew, and the new connection is not subscribed
        while time.monotonic() < end and not self._stop.is_set() and self.link.current and self.link.dials == dials:
            if not self.link.readable(_LOOK):
                if time.monotonic() - heard < _PING:
                    continue
                if pinged:
                    return  # Redis does not answer
                self.link.send('PING')
                pinged, heard = True, time.monotonic()
                continue
            pinged, heard = False, time.monotonic()
            reply = self.link.receive()
            if not is_list(reply) or len(reply) < 3:
                continue  # the answer to a PING
            watched = self._watched.get(reply[1])
            if watched is not None and reply[0] == b'message' and reply[2].isdigit() and len(reply[2]) < 10:
                self._watch(watched, int(reply[2]))
            lane = self._lanes.get(reply[1])
            if lane is None:
                continue
            word, _, id = (reply[2].decode('utf-8', 'replace') if reply[0] == b'message' else '').partition(' ')
            if word == 'cancel':
                self._canceled(lane, id)
            elif word == 'parked':
                self._parked(id)
            elif word == 'periodic':
                self._parked('')  # entries have changed: look at once
            elif word in ('', 'control'):
                lane.look()  # just subscribed: earlier messages may have been lost
                if not word:
                    self._parked('')


class Follower:
    """The thread that reads the control hashes when it is asked to."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        executors: Executors,
        pause: Callable[[Lane, bool], None],
        obey: Callable[[str, str], None],
        restart: Callable[[], None],
    ) -> None:
        self._lanes = lanes
        self._executors = executors
        self._pause = pause
        self._obey = obey
        self._restart = restart
        self._links = {lane.store.source.slot: lane.store.link() for lane in lanes}
        self._looking = threading.Lock()  # only one look at a time, so that no older one overwrites a newer one
        self._asked: set[Lane] = set()
        self._poke = threading.Event()
        self._stop = False
        for lane in lanes:
            lane.look = lambda lane=lane: self.ask(lane)  # type: ignore[misc]

    def ask(self, lane: Lane) -> None:
        """Asks for a look at the control hash. It never blocks."""
        self._asked.add(lane)
        self._poke.set()

    def stop(self) -> None:
        self._stop = True
        for link in self._links.values():
            link.cut()
        self._poke.set()

    def run(self) -> None:
        while not self._stop:
            self._poke.wait()
            self._poke.clear()
            while self._asked:
                lane = self._asked.pop()
                try:
                    self.look(self._links[lane.store.source.slot], lane)
                except DelayedError as e:
                    if not self._stop:
                        # The next heartbeat will find again that the version has changed.
                        logger.debug('queue %s: cannot look at the control hash: %s', lane.name, e)
        for link in self._links.values():
            link.hang_up()

    def look(self, link: Link, lane: Lane) -> None:
        """Reads the control hash of a queue and does what it says."""
        with self._looking:
            now = lane.store.control(link)
            # After the control hash: so what was cancelled before this version is in the list.
            if now.version:
                self._look_revoked(link, lane)
            else:
                lane.revoked, lane.revoked_partly = set(), False
            last, lane.control = lane.control, now
            if lane.version < 0 and not now.restarted_after(lane.since):
                last = Control(restart=now.restart)  # it was meant for workers before this one
            lane.intent = now.paused or bool(now.order)
            lane.weight = min(max(now.weight, 0), 1000)
            if lane.paused != now.paused:
                lane.paused = now.paused
                self._pause(lane, now.paused)
            if now.order != last.order:
                self._obey(last.order, now.order)
            if now.restart and now.restart != last.restart:
                self._restart()
            lane.version = now.version

    def _look_revoked(self, link: Link, lane: Lane) -> None:
        """Reads which tasks were cancelled, and ends those of them that are in hand."""
        ids, everything = lane.store.revoked(link)
        revoked = set(ids)
        if not everything:
            mine = [c.message.id for c in self._executors.in_hand(lane) if c.message.id]
            for i in range(0, len(mine), REVOKED_MOST):
                some = mine[i : i + REVOKED_MOST]
                revoked.update(id for id, yes in zip(some, lane.store.are_revoked(link, some)) if yes)
        with lane.mu:
            lane.revoked, lane.revoked_partly = revoked, not everything
        if revoked:
            self.cancel_running(lane)

    def note(self, lane: Lane, id: str) -> None:
        """Notes that a task was cancelled, as a signal says."""
        with lane.mu:
            lane.revoked.add(id)
        self.cancel_running(lane)

    def cancel_running(self, lane: Lane) -> None:
        """Tells running tasks to end if they were cancelled."""
        for c in self._executors.under_way():
            if c.lane is lane and lane.is_revoked(c.message.id):
                lane.cancel(c)

    def screen(self, link: Link, lane: Lane, claims: Sequence[Claim]) -> set[str]:
        """Returns the ids of those claims of a batch whose tasks were cancelled.

        It asks Redis only if something has changed.
        """
        if lane.version != claims[0].batch.version:
            self.look(link, lane)
        ids = [c.message.id for c in claims]
        if not lane.revoked_partly:
            return {id for id in ids if id and id in lane.revoked}
        return {id for id, yes in zip(ids, lane.store.are_revoked(link, ids)) if yes and id}
