"""Sends tasks that are enqueued at the same time on one queue together: while one call is under way, further tasks
gather and go with the next call.

No task waits for others: if no call is under way, a task is sent at once.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable

from .errors import UnknownError
from .producer import MAX_BATCH, MAX_CALL_BYTES


class _Bundle:
    __slots__ = ('done', 'error', 'messages', 'size', 'turn')

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.size = 0
        self.turn = threading.Event()  # set when the thread that has begun the bundle may send it
        self.done = threading.Event()
        self.error: BaseException | None = None


class Coalescer:
    """Enqueues messages for several threads. send makes messages pending, all of them or none."""

    def __init__(self, send: Callable[[list[bytes]], None]) -> None:
        self._send = send
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Bundle] = deque()
        self._busy = False
        self._process = os.getpid()

    def enqueue(self, message: bytes) -> None:
        """Makes a message pending. Returns once Redis has it."""
        if self._process != os.getpid():  # this is a forked process, in which none of the parent's threads exists
            self._reset()
        with self._lock:
            bundle, first = None, True
            if not self._busy:
                self._busy = True
            elif self._waiting and _fits(len(self._waiting[-1].messages), self._waiting[-1].size, message):
                bundle, first = self._waiting[-1], False
            else:
                bundle = _Bundle()
                self._waiting.append(bundle)
            if bundle is not None:
                bundle.messages.append(message)
                bundle.size += len(message)
        if bundle is None:  # no call is under way
            try:
                self._send([message])
            finally:
                self._pass_on()
            return
        if not first:
            bundle.done.wait()
        else:
            self._carry(bundle)
        if bundle.error is not None:
            raise _copy(bundle.error)

    def _pass_on(self) -> None:
        """Lets the next bundle be sent."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().turn.set()
            else:
                self._busy = False

    def _carry(self, bundle: _Bundle) -> None:
        """Sends a bundle when it is its turn.

        Other threads wait for this bundle, so an interrupt is raised only after the bundle was sent.
        """
        interrupt: BaseException | None = None
        try:
            bundle.turn.wait()
        except BaseException as e:
            interrupt = e
            bundle.turn.wait()
        try:
            self._send(bundle.messages)  # no thread adds to this bundle any more: it is not in _waiting
        except Exception as e:
            bundle.error = e
        except BaseException as e:
            interrupt = e
            bundle.error = UnknownError(f'enqueue: interrupted, and may or may not have run: {type(e).__name__}')
        finally:
            self._pass_on()
            bundle.done.set()
        if interrupt is not None:
            raise interrupt


class AsyncCoalescer:
    """Coalescer for asyncio."""

    def __init__(self, send: Callable[[list[bytes]], Awaitable[None]]) -> None:
        self._send = send
        self._waiting: deque[tuple[bytes, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def enqueue(self, message: bytes) -> None:
        """Makes a message pending.

        Returns once Redis has it. If the caller is cancelled before the message is sent, nothing is enqueued.
        """
        loop = asyncio.get_running_loop()
        if self._task is not None and self._task.get_loop() is not loop:
            self._task = None  # it belongs to a loop that has ended
            self._waiting.clear()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((message, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run())
        await future

    async def _run(self) -> None:
        while self._waiting:
            messages: list[bytes] = []
            futures: list[asyncio.Future[None]] = []
            size = 0
            while self._waiting and (not messages or _fits(len(messages), size, self._waiting[0][0])):
                message, future = self._waiting.popleft()
                if not future.done():
                    messages.append(message)
                    futures.append(future)
                    size += len(message)
            if not messages:
                continue
            error: BaseException | None = None
            try:
                await self._send(messages)
            except Exception as e:
                error = e
            except BaseException as e:
                error = UnknownError(f'enqueue: interrupted, and may or may not have run: {type(e).__name__}')
                raise
            finally:
                for future in futures:
                    if future.done():
                        continue
                    if error is None:
                        future.set_result(None)
                    else:
                        future.set_exception(_copy(error))


def _fits(n: int, size: int, message: bytes) -> bool:
    return n < MAX_BATCH and size + len(message) <= MAX_CALL_BYTES


def _copy(error: BaseException) -> BaseException:
    """Copies an error for one of several callers, because raising an exception adds to its traceback."""
    try:
        copy = type(error)(*error.args)
    except TypeError:
        return error
    copy.__cause__ = error.__cause__
    return copy
