"""Publishes what happens to tasks, while somebody watches their queue."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from .lane import Claim, Lane
from .link import Link, Source

logger = logging.getLogger('godelayed.worker')

_EVERY = 0.1  # seconds for which events are gathered before they are published together
_MOST = 200  # events of a queue that are published together: the latest ones
_MAX_ERROR = 500  # bytes of an error
_MAX_WATCH = 60.0  # seconds for which one request holds


class _Watched:
    """A queue that somebody watches."""

    def __init__(self) -> None:
        self.since = int(time.time() * 1000)
        self.until = 0.0  # monotonic
        self.made = 0
        self.missed = 0  # events that were too many
        self.events: deque[dict[str, Any]] = deque()

    def add(self, event: dict[str, Any]) -> None:
        self.made += 1
        self.events.append(event)
        if len(self.events) > _MOST:
            self.events.popleft()
            self.missed += 1

    def take(self, worker: str) -> bytes:
        """Removes and returns what is to be published."""
        told = {
            'version': 1,
            'worker': worker,
            'missed': self.missed,
            'since': self.since,
            'before': self.made - len(self.events),
            'events': list(self.events),
        }
        self.events.clear()
        self.missed = 0
        return json.dumps(told).encode()


class Broadcast:
    """The thread that publishes events. Other threads may call watch, add and stop."""

    def __init__(self, source: Source, worker: str) -> None:
        self.on = False  # somebody watches a queue
        self._worker = worker
        self._link = Link(source)
        self._mu = threading.Lock()
        self._queues: dict[Lane, _Watched] = {}
        self._wake = threading.Event()
        self._stopped = False

    def watch(self, lane: Lane, ms: int) -> None:
        """Publishes the events of a queue for some time."""
        with self._mu:
            q = self._queues.setdefault(lane, _Watched())
            q.until = max(q.until, time.monotonic() + min(ms / 1000, _MAX_WATCH))
            self.on = True
        self._wake.set()

    def add(self, kinds: Sequence[str], c: Claim, **more: Any) -> None:
        """Adds events of a task."""
        if not self.on:
            return
        event = {'at': int(time.time() * 1000), 'id': c.message.id, 'function': c.message.path}
        event['attempt'] = c.message.retried + 1
        if 'error' in more:
            more['error'] = more['error'].encode()[:_MAX_ERROR].decode(errors='ignore')
        with self._mu:
            q = self._queues.get(c.lane)
            if q is not None:
                for kind in kinds:
                    q.add({'kind': kind, **event, **{k: v for k, v in more.items() if v}})

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()

    def run(self) -> None:
        while True:
            self._wake.wait()
            if self._stopped:
                break
            self._wake.clear()
            while self.on and not self._stopped:
                time.sleep(_EVERY)
                self.publish()
        self.publish()
        self._link.hang_up()

    def publish(self) -> None:
        """Publishes what was gathered."""
        with self._mu:
            ready = [(lane, q.take(self._worker)) for lane, q in self._queues.items() if q.events]
            now = time.monotonic()
            self._queues = {lane: q for lane, q in self._queues.items() if q.until >= now}
            self.on = bool(self._queues)
        for lane, text in ready:
            try:
                self._link.send('PUBLISH', lane.store.keys.events, text)
                self._link.receive()
            except Exception as e:  # nothing depends on it
                self._link.hang_up()
                logger.debug('queue %s: cannot publish events for those who watch: %s', lane.name, e)
