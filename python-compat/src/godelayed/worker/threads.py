"""Runs tasks in threads of the worker's own process. That is fast, but a task that does not end cannot be forced to."""

from __future__ import annotations

import threading
import time
from typing import Callable

from ..context import Context
from . import calling
from .executors import Executors
from .judge import Ended
from .lane import Claim


class Threads:
    """Runs tasks in n threads."""

    def __init__(
        self,
        executors: Executors,
        n: int,
        prepare: Callable[[Claim, Callable[[str], None]], bool],
        conclude: Callable[[Claim, Ended], bool],
        progress: Callable[[Claim, int, int, str], None],
    ) -> None:
        self._executors = executors
        self._prepare = prepare
        self._conclude = conclude
        self._progress = progress
        # They are daemons, because a task that does not end must not keep the process alive.
        self._threads = [threading.Thread(target=self._run, name=f'godelayed-task-{i}', daemon=True) for i in range(n)]

    def start(self) -> None:
        for t in self._threads:
            t.start()

    def join(self, timeout: float) -> bool:
        """Waits at most timeout seconds for the threads to end, and returns whether they have."""
        end = time.monotonic() + timeout
        for t in self._threads:
            t.join(max(0.0, end - time.monotonic()))
        return not any(t.is_alive() for t in self._threads)

    def _run(self) -> None:
        executors, c, done, took = self._executors, None, False, 0.0
        while True:
            c = executors.next(c, done, took)
            if c is None:
                return
            done = self._task(c)
            took = time.monotonic() - c.started

    def _task(self, c: Claim) -> bool:
        """Runs one task and returns whether it is done and must be acknowledged."""
        why: list[str] = []
        if not self._prepare(c, why.append):
            return False
        m = c.message

        def report(done: int, total: int, note: str) -> None:
            self._progress(c, done, total, note)

        def interrupted() -> str | None:
            if not why and c.limit and time.monotonic() - c.started >= c.limit / 1000:
                why.append('timeout')
            return why[0] if why else None

        context = Context(c.lane.name, m.path, m.meta, report, interrupted)
        ended = calling.call(c.function, m.args, m.kwargs, bool(m.meta) and m.keep > 0, context)
        if not ended.ok:
            ended.interrupted = interrupted() or ''
        return self._conclude(c, ended)
