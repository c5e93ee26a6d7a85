"""Runs tasks in threads of the worker's own process. That is fast, but a task that does not end cannot be forced to."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

from ..context import Context
from . import calling
from .coroutine import Coroutine
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


class Coroutines:
    """Runs coroutines on one event loop, in a thread of its own. A coroutine that waits can be told to end."""

    def __init__(
        self,
        executors: Executors,
        prepare: Callable[[Claim, Callable[[str], None]], bool],
        conclude: Callable[[Claim, Ended], bool],
        progress: Callable[[Claim, int, int, str], None],
    ) -> None:
        self._executors = executors
        self._prepare = prepare
        self._conclude = conclude
        self._progress = progress
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name='godelayed-loop', daemon=True)
        executors.wake_loop = self._wake

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """Waits at most timeout seconds for the thread to end, and returns whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._assign)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._assign)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _assign(self) -> None:
        while True:
            c = self._executors.start(True)
            if c is None:
                break
            task = self._loop.create_task(self._task(c))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        if self._executors.stopped and not self._tasks:
            self._loop.stop()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._assign()

    async def _task(self, c: Claim) -> None:
        loop, m = self._loop, c.message
        run = Coroutine(c.function.call)

        def interrupt(why: str) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(run.interrupt, why)

        done, timer = False, None
        # It asks Redis first if the task has a lock that ends when it starts.
        if (
            await loop.run_in_executor(None, self._prepare, c, interrupt)
            if m.meta.get('us')
            else self._prepare(c, interrupt)
        ):
            c.started = time.monotonic()
            if c.limit:
                timer = loop.call_later(c.limit / 1000, run.interrupt, 'timeout')

            def report(done: int, total: int, note: str) -> None:
                self._progress(c, done, total, note)

            context = Context(c.lane.name, m.path, m.meta, report, lambda: run.why)
            keep = bool(m.meta) and m.keep > 0
            ended = await calling.call_coroutine(c.function, m.args, m.kwargs, keep, context, run)
            if timer is not None:
                timer.cancel()
            if not ended.ok and run.why is not None:
                ended.interrupted = run.why
            done = self._conclude(c, ended)
        self._executors.leave(c, done, time.monotonic() - c.started)
