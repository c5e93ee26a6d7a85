"""A worker process: it runs one task after another, as the worker sends them over a socket, and reports how each ended.

A frame is a length of four bytes and a MessagePack array. The worker sends [number, queue, message]. The process sends
[number, 0, ...] with the fields of Ended, [number, 1, done, total, note] for a report of progress, and [0, 2] once when
it is ready. Orders come over a second socket, together with a signal that makes this process read it: the number of the
task, and why it must end.
"""

from __future__ import annotations

import signal
import socket
import struct
import sys
from types import FrameType
from typing import Any, Callable

import msgpack

from ..context import Context
from ..outcomes import INTERRUPTS, TaskInterrupted
from ..registry import Registry
from . import calling
from .judge import Ended
from .message import Message

HEAD = struct.Struct('!I')
ORDER = struct.Struct('!Q8s')
MOST_FRAME = 64 << 20

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
        self._context: Context | None = None  # of the running task

    def interrupt(self, _: int, frame: FrameType | None) -> None:
        """Handles the signal: raises in the running task if an order says that this task must end."""
        while True:
            try:
                order = self._orders.recv(ORDER.size)
            except (BlockingIOError, InterruptedError):
                return
            if len(order) < ORDER.size:
                return
            number, why = ORDER.unpack(order)
            self._order = (number, why.rstrip(b'\0').decode())
            if not self._sending:
                self._obey(frame)

    def _obey(self, frame: FrameType | None) -> None:
        number, why = self._order
        if number and number == self._running:
            self._order = (0, '')
            self._why = why
            if self._context is not None and self._context.tell is not None:
                self._context.tell(why, frame)
            else:
                raise INTERRUPTS[why](why)

    def run(self) -> int:
        while True:
            head = self._file.read(HEAD.size)
            if len(head) < HEAD.size:
                return 0  # the worker has closed the socket
            frame = self._file.read(HEAD.unpack(head)[0])
            number, queue, raw = msgpack.unpackb(frame, raw=False)
            ended = self._task(number, queue, raw)
            self._send(
                [
                    number,
                    0,
                    ended.ok,
                    ended.result,
                    ended.fault,
                    ended.says,
                    ended.wait,
                    ended.error,
                    ended.stack,
                    ended.arguments,
                    ended.interrupted,
                ]
            )

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

            context = self._context = Context(queue, message.path, message.meta, report, lambda: self._why)
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
        self._sending = True  # an interrupt in the middle of a frame would make all later frames unreadable
        try:
            self._tasks.sendall(HEAD.pack(len(b)) + b)
        finally:
            self._sending = False


def serve(tasks: socket.socket, orders: socket.socket, sig: int, start: Callable[[], None]) -> int:
    """Runs tasks until the socket is closed, and returns the exit code."""
    child = _Child(tasks, orders)
    signal.signal(sig, child.interrupt)
    start()
    child._send([0, 2])
    return child.run()
