"""A worker without threads: it claims, calls and ends one task after the other, in the thread of its caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import redis

from ..registry import Registry
from ..worker import Worker
from ..worker.judge import Ended
from ..worker.lane import Claim, Lane
from ..worker.link import Link
from ..worker.threads import Threads


@dataclass
class Step:
    """What became of one claimed task."""

    queue: str
    message: bytes
    called: bool = False  # its function was called
    error: str = ''  # what it raised
    stack: str = ''
    outcome: str = ''  # the last word of what Go calls the event: done, retried, archived, snoozed, parked, …
    failed: bool = False  # the error counts as a failure


class _View(Registry):
    """The functions of a registry, none of which needs a process or an event loop of its own."""

    def __init__(self, of: Registry) -> None:
        self._functions = of._functions

    @property
    def coroutines(self) -> bool:
        return False

    @property
    def isolated(self) -> list[str]:
        return []


class Stepper:
    """Runs tasks of some queues with one prefix. A task may itself call step, which other threads may call too."""

    def __init__(self, client: redis.Redis, queues: Sequence[str], registry: Registry, **settings: Any) -> None:
        self._worker = w = Worker(
            client,
            list(queues),
            registry=_View(registry),
            concurrency=1,
            processes=False,
            prefetch=0,
            heartbeat_life=24 * 3600,
            periodic=False,
            **settings,
        )
        self._link = Link(w._source)
        self._threads = Threads(w._executors, 0, w._runs.prepare, self._conclude, w._reporter.report)
        w._runs._tell = w._intake._tell = self._hear
        self._steps: dict[Claim, Step] = {}
        self._mu = threading.RLock()  # for all but calls of functions

    def beat(self) -> None:
        """Must be called before the first step, and after Redis's time was moved."""
        with self._mu:
            self._worker._slots[0].heartbeat.beat()

    def step(self) -> Step | None:
        """Makes due tasks pending and runs the next pending task; returns None if there is none."""
        w = self._worker
        with self._mu:
            w._slots[0].mover.look()
            c = next(filter(None, map(self._claim, w._lanes)), None)
            if c is None:
                return None
            step = self._steps[c] = Step(c.lane.name, c.raw)
            w._intake.receive(self._link, [c])
            ready = w._executors.start()
        if ready is not None:
            w._executors.leave(ready, self._run(ready), 0.0)
        with self._mu:
            while c.lane.finisher.work()[0]:
                pass
            del self._steps[c]
        return step

    def close(self) -> None:
        """Ends the thread that sends reports of progress, if there is one."""
        self._worker._reporter.stop()

    def _claim(self, lane: Lane) -> Claim | None:
        parked = lane.take_parked(1)
        _, claims = lane.claim(self._link, 1, 0, False, [], parked=parked or None)
        return claims[0] if claims else None

    def _run(self, c: Claim) -> bool:
        if not c.function.coroutine or not _in_a_loop():
            return self._threads._task(c)
        with ThreadPoolExecutor(1) as thread:  # a coroutine cannot have a loop of its own within another one
            return thread.submit(self._threads._task, c).result()

    def _conclude(self, c: Claim, ended: Ended) -> bool:
        step = self._steps[c]
        step.called, step.error, step.stack = True, ended.error, ended.stack
        return self._worker._runs.conclude(c, ended)

    def _hear(self, kinds: Sequence[str], c: Claim, **_: Any) -> None:
        step = self._steps[c]
        step.failed = step.failed or 'task failed' in kinds
        step.outcome = kinds[-1].rpartition(' ')[2]


def _in_a_loop() -> bool:
    try:
        return asyncio.get_running_loop() is not None
    except RuntimeError:
        return False
