"""A worker process: it runs one task after another, as the worker sends them over a socket, and reports how each ended.

A process for coroutines runs many tasks at once, on one event loop.

A frame is a length of four bytes and a MessagePack array. The worker sends [number, queue, message]. The process sends
[number, 0, ...] with the fields of Ended, [number, 1, done, total, note] for a report of progress, and [0, 2] once when
it is ready. Orders come over a second socket, together with a signal that makes this process read it: the number of the
task, and why it must end.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import operator
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgpack

from .. import middleware
from ..context import Context
from ..outcomes import INTERRUPTS, TaskInterrupted
from ..registry import Registry
from . import calling
from .coroutine import Coroutine
from .judge import Ended
from .message import Message

HEAD = struct.Struct('!I')
ORDER = struct.Struct('!Q8s')
MOST_FRAME = 64 << 20

_fields_of = operator.attrgetter(*(f.name for f in dataclasses.fields(Ended)))

registry: Registry | None = None  # the worker's, set before processes are forked


class _Child:
    def __init__(self, tasks: socket.socket, orders: socket.socket) -> None:
        self._tasks = tasks
        self._orders = orders
        orders.setblocking(False)
        self._file = tasks.makefile('rb')
        self._running = 0  # number of the running task; 0: none
        self._why: str | None = None
        self._order = (0, '')  # an order that came before its task, or while a frame was being sent
        self._sending = False
        self._writing = threading.Lock()

    def interrupt(self, _: int, frame: FrameType | None) -> None:
        """Handles the signal: raises in the running task if an order says that this task must end.

        Python may call it again while it runs. An order that nobody obeys because of that is obeyed at the next signal,
        which the worker sends until the task has ended.
        """
        while True:
            try:
                order = self._orders.recv(ORDER.size)
            except (BlockingIOError, InterruptedError):
                break
            if len(order) < ORDER.size:
                break
            number, why = ORDER.unpack(order)
            self._take(number, why.rstrip(b'\0').decode())
        if not self._sending:
            self._obey(frame)

    def _take(self, number: int, why: str) -> None:
        self._order = max(self._order, (number, why))  # tasks have rising numbers

    def _obey(self, frame: FrameType | None) -> None:
        number, why = self._order
        if number and number == self._running:
            self._order = (0, '')
            self._why = why
            raise INTERRUPTS[why](why)

    def run(self) -> int:
        while True:
            head = self._file.read(HEAD.size)
            if len(head) < HEAD.size:
                return 0  # the worker has closed the socket
            frame = self._file.read(HEAD.unpack(head)[0])
            number, queue, raw = msgpack.unpackb(frame, raw=False)
            self._end(number, self._task(number, queue, raw))

    def _end(self, number: int, ended: Ended) -> None:
        self._send([number, 0, *_fields_of(ended)])

    def _task(self, number: int, queue: str, raw: bytes) -> Ended:
        self._why = None
        ended: Ended | None = None
        try:
            message = Message(raw, None)  # the worker has checked its limits
            function = registry.get(message.path) if registry is not None else None
            if function is None:
                return Ended(ok=False, error=f'{message.path}: the function is gone from the registry')

            def report(done: int, total: int, note: str) -> None:
                self._send([number, 1, done, total, note])
                self._obey(sys._getframe())

            context = Context(queue, message.path, message.meta, report, lambda: self._why)
            self._running = number
            self._obey(None)
            ended = calling.call(function, message.args, message.kwargs, message.keep > 0, context)
            self._running = 0
        except TaskInterrupted as e:  # raised just before or after the call
            self._running = 0
            if ended is None:
                ended = Ended(ok=False, error=type(e).__name__)
        if not ended.ok and self._why is not None:
            ended.interrupted = self._why
        return ended

    def _send(self, frame: list[Any]) -> None:
        b = msgpack.packb(frame, use_bin_type=True, unicode_errors='replace')
        with self._writing:  # threads of a task may report its progress
            self._sending = True  # an interrupt in the middle of a frame would make all later frames unreadable
            try:
                self._tasks.sendall(HEAD.pack(len(b)) + b)
            finally:
                self._sending = False


class _Coroutines(_Child):
    """A process that runs coroutines, all of them on one event loop, which lives as long as the process."""

    def __init__(self, tasks: socket.socket, orders: socket.socket) -> None:
        super().__init__(tasks, orders)
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._buffer = bytearray()
        self._runs: dict[int, Coroutine] = {}
        self._read_but_not_run: set[int] = set()  # numbers of tasks that have come and do not run yet
        self._last = 0  # number of the task that came last
        self._tasks_kept: set[asyncio.Task[None]] = set()
        self._waiting: dict[int, str] = {}  # orders that came before their tasks, or while a frame was being sent
        self._obeying = False  # whether tasks are being told to end

    def _take(self, number: int, why: str) -> None:
        if number in self._runs or number in self._read_but_not_run or number > self._last:
            self._waiting[number] = why

    def _obey(self, frame: FrameType | None) -> None:
        if self._obeying:
            return  # a signal has interrupted the loop below, which goes on
        self._obeying, raised = True, None
        try:
            while ready := [n for n in list(self._waiting) if n in self._runs]:
                for number in ready:
                    try:
                        self._runs[number].interrupt(self._waiting.pop(number), frame)
                    except TaskInterrupted as e:
                        raised = e  # once the others have been told
        finally:
            self._obeying = False
        if raised is not None:
            raise raised

    def run(self) -> int:
        self._loop.add_reader(self._tasks.fileno(), self._read)
        self._loop.run_forever()
        return 0

    def _read(self) -> None:
        try:
            b = self._tasks.recv(1 << 16, socket.MSG_DONTWAIT)
        except (BlockingIOError, InterruptedError):
            return
        if not b:
            self._loop.stop()  # the worker has closed the socket
        self._buffer += b
        while len(self._buffer) >= HEAD.size:
            end = HEAD.size + HEAD.unpack_from(self._buffer)[0]
            if len(self._buffer) < end:
                return
            number, queue, raw = msgpack.unpackb(bytes(self._buffer[HEAD.size : end]), raw=False)
            del self._buffer[:end]
            self._read_but_not_run.add(number)
            self._last = number
            task = self._loop.create_task(self._coroutine(number, queue, raw))
            self._tasks_kept.add(task)  # the loop keeps only weak references
            task.add_done_callback(self._tasks_kept.discard)

    async def _coroutine(self, number: int, queue: str, raw: bytes) -> None:
        message = Message(raw, None)
        function = registry.get(message.path) if registry is not None else None
        if function is None:
            self._read_but_not_run.discard(number)
            self._end(number, Ended(ok=False, error=f'{message.path}: the function is gone from the registry'))
            return
        run = self._runs[number] = Coroutine(function.call)
        self._read_but_not_run.discard(number)

        def report(done: int, total: int, note: str) -> None:
            self._send([number, 1, done, total, note])
            self._obey(sys._getframe())

        context = Context(queue, message.path, message.meta, report, lambda: run.why)
        self._obey(None)
        ended = await calling.call_coroutine(function, message.args, message.kwargs, message.keep > 0, context, run)
        del self._runs[number]
        if not ended.ok and run.why is not None:
            ended.interrupted = run.why
        self._end(number, ended)
        self._obey(None)


def serve(
    tasks: socket.socket, orders: socket.socket, sig: int, start: Callable[[], None], coroutines: bool = False
) -> int:
    """Runs tasks until the socket is closed, and returns the exit code."""
    child = _Coroutines(tasks, orders) if coroutines else _Child(tasks, orders)
    signal.signal(sig, child.interrupt)
    start()
    with contextlib.suppress(BrokenPipeError):  # the worker has stopped meanwhile: run finds the socket closed
        child._send([0, 2])
    code = child.run()
    middleware.call_all(*middleware.process_ends)
    return code
