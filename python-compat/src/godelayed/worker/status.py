"""What a worker tells of itself with its heartbeats: its queues, its functions, and what it does."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from .. import __version__
from ..announce import announcement
from ..catalog import listing
from ..registry import Registry
from .executors import Executors
from .lane import Lane
from .link import Link, RefusedError
from .memory import ToldMemory, resident

LIBRARY = f'godelayed {__version__}'

_TOLD_RUN = 1.0  # seconds after which a running task is told of
_PAGE = 200  # queues that one command looks for
_MAX_TOLD = 100  # running tasks that are told of, for each queue


class Status:
    """Tells Redis what the worker is. Nothing depends on it, so it fails in silence and tries again with the next
    heartbeat. It belongs to the thread of the teller."""

    def __init__(
        self,
        executors: Executors,
        registry: Registry,
        legacy: bool,
        plan: str,
        state: Callable[[], str],
    ) -> None:
        self._executors = executors
        self._registry = registry
        self._legacy = legacy
        self._plan = plan
        self._state = state
        self._announced: dict[Lane, tuple[str, int]] = {}  # in a cluster: the registration and the connection then
        self._memory = ToldMemory()
        self._started = int(time.time() * 1000)
        # The registration, the connection, and what was told: another server may not know it.
        self._told: dict[tuple[Lane, str], tuple[str, int, bytes]] = {}
        self._began: dict[str, int] = {}  # when running tasks began, by their tokens
        self._listing = 0, b''  # of so many functions

    def tell(self, link: Link, lanes: Sequence[Lane]) -> None:
        """Tells of all lanes what has changed."""
        if self._listing[0] != len(self._registry):
            self._listing = len(self._registry), listing(self._registry)
        began: dict[str, int] = {}
        for lane in lanes:
            if lane.confirmed is None:
                continue
            self._publish(link, lane, '', self._listing[1])
            self._publish(link, lane, ' status', self._describe(lane, began))
        self._began = began
        with contextlib.suppress(RefusedError):
            self._announce(link, [lane for lane in lanes if lane.confirmed is not None])

    def _announce(self, link: Link, lanes: Sequence[Lane]) -> None:
        """Announces the queues that Redis does not know, or has lost."""
        for i in range(0, len(lanes), _PAGE):
            page = lanes[i : i + _PAGE]
            asks = [announcement(lane.store.prefix, lane.name, self._legacy) for lane in page]
            key = asks[0][1][0]  # all queues of a worker have one prefix
            source = page[0].store.source.of(key)
            if source is page[0].store.source:
                known = link.do('HMGET', key, *(lane.name for lane in page))
                for (script, keys, args), value in zip(asks, known):
                    if value is None or value < str(args[1]).encode():
                        link.run(script, keys, *args)
                continue
            # In a cluster, that key is on another node.
            news = [a for a, lane in zip(asks, page) if self._announced.get(lane) != (lane.pulse, link.dials)]
            if news:
                with contextlib.closing(Link(source)) as other:
                    for script, keys, args in news:
                        other.run(script, keys, *args)
                self._announced.update({lane: (lane.pulse, link.dials) for lane in page})

    def _publish(self, link: Link, lane: Lane, what: str, text: bytes) -> None:
        link.open()
        told = lane.pulse, link.dials, text  # read before: a registration meanwhile has Redis forget it
        if self._told.get((lane, what)) == told:
            return
        with contextlib.suppress(RefusedError):  # the next heartbeat tries again
            if lane.store.publish(link, what, text):
                self._told[lane, what] = told

    def _describe(self, lane: Lane, began: dict[str, int]) -> bytes:
        """Describes the worker and what it runs of a lane's tasks, as JSON, so that it stays the same for as long as
        there is nothing to tell."""
        now, wall = time.monotonic(), time.time()
        running: list[dict[str, Any]] = []
        for c in self._executors.under_way():
            if c.lane is lane and c.started and now - c.started >= _TOLD_RUN:
                # Kept, because it differs by a millisecond from call to call, which must not look like news.
                began[c.token] = self._began.get(c.token) or int((wall - now + c.started) * 1000)
                task = {'token': c.token, 'function': c.message.path, 'started': began[c.token]}
                running.append({**task, 'id': c.message.id} if c.message.id else task)
        running.sort(key=lambda r: (r['started'], r['token']))
        status: dict[str, Any] = {
            'version': 1,
            'started': self._started,
            'library': LIBRARY,
            'program': '',
            'concurrency': self._executors.n,
            'queues': self._plan,
            'state': self._state(),
        }
        if memory := self._memory.tell(resident(), now):
            status['memory'] = memory
        if running:
            status['running'] = running[:_MAX_TOLD]
        if len(running) > _MAX_TOLD:
            status['more'] = len(running) - _MAX_TOLD
        return json.dumps(status, ensure_ascii=True).encode()
