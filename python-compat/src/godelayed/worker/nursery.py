"""The process that forks worker processes. It has imported everything and has no threads, so it can fork safely at any
time.

The worker forks it before it starts threads. Over a socket, the worker sends commands of 16 bytes, and the process
answers in the same form:

    F number kind fork a process, for coroutines if kind is 1, which gets the two sockets that are sent along
    K number signal send a signal to it
    Q 0 ms          wait for the others to end by themselves, no longer than that, and end
    B number pid (answer) it has started
    D number status (answer) it has died, with the status of waitpid
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from .child import serve

_COMMAND = struct.Struct('!c3xIq')
_LINGER = 2000  # ms that processes have to end when the worker has no more tasks
SIGNAL = signal.SIGUSR1  # the signal that interrupts tasks

# The worker decides what these signals mean. They have handlers instead of being ignored, so that programs started by
# tasks do not ignore them either.
_QUIET = ('SIGINT', 'SIGTERM', 'SIGHUP', 'SIGTSTP', 'SIGUSR2', 'SIGUSR1', 'SIGPIPE')


class Nursery:
    """The worker's side of the process."""

    def __init__(self, start: Callable[[], None]) -> None:
        """Forks the process. It calls start in each of its children before the first task."""
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                ours.close()
                code = _Process(theirs, start).run()
            finally:
                os._exit(code)
        theirs.close()
        self.socket = ours

    def fork(self, number: int, tasks: socket.socket, orders: socket.socket, coroutines: bool = False) -> None:
        """Asks for a process that serves tasks and obeys orders. An OSError means that the nursery has died."""
        socket.send_fds(self.socket, [_COMMAND.pack(b'F', number, coroutines)], [tasks.fileno(), orders.fileno()])

    def kill(self, number: int, sig: int) -> None:
        """Sends a signal to a process if it lives. An OSError means that the nursery has died."""
        self.socket.sendall(_COMMAND.pack(b'K', number, sig))

    def read(self) -> tuple[bytes, int, int]:
        """Reads one answer. An OSError or struct.error means that the nursery has died."""
        b = b''
        while len(b) < _COMMAND.size:
            more = self.socket.recv(_COMMAND.size - len(b))
            if not more:
                raise ConnectionResetError('the process that forks worker processes is gone')
            b += more
        kind, number, value = _COMMAND.unpack(b)
        return kind, number, value

    def end(self) -> None:
        """Ends the process and all its children. The socket stays open, because another thread may be reading it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        self._bury()

    def close(self) -> None:
        """Is end for the thread that reads the answers."""
        with contextlib.suppress(OSError):
            self.socket.sendall(_COMMAND.pack(b'Q', 0, _LINGER))
        self.socket.close()
        self._bury()

    def _bury(self) -> None:
        with contextlib.suppress(ChildProcessError, InterruptedError):
            os.waitpid(self.pid, 0)


class _Process:
    """The code that runs in the forked process."""

    def __init__(self, sock: socket.socket, start: Callable[[], None]) -> None:
        self._socket = sock
        self._start = start
        self._children: dict[int, int] = {}  # number to pid
        self._woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        os.set_blocking(self._woken, False)
        for name in _QUIET:
            signal.signal(getattr(signal, name), _nothing)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        self._wakes = wakes
        die_with_parent()
        gc.collect()
        gc.freeze()  # objects that exist now stay in memory shared with the children

    def run(self) -> int:
        try:
            while self._obey():
                self._reap()
        finally:
            for pid in self._children.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return 0

    def _obey(self) -> bool:
        ready, _, _ = select.select([self._socket.fileno(), self._woken], [], [])
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4096)
        if self._socket.fileno() not in ready:
            return True
        try:
            b, fds, _, _ = socket.recv_fds(self._socket, _COMMAND.size, 2)
            while 0 < len(b) < _COMMAND.size:
                b += self._socket.recv(_COMMAND.size - len(b))
        except OSError:
            return False
        if not b:
            return False
        kind, number, value = _COMMAND.unpack(b)
        if kind == b'Q':
            end = time.monotonic() + value / 1000
            while self._children and time.monotonic() < end:
                select.select([self._woken], [], [], 0.05)
                self._reap()
            return False
        if kind == b'F':
            self._fork(number, fds, value == 1)
        elif number in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._children[number], value)
        return True

    def _fork(self, number: int, fds: list[int], coroutines: bool) -> None:
        pid = os.fork()
        if pid == 0:
            self._be_born(fds, coroutines)
        for fd in fds:
            os.close(fd)
        self._children[number] = pid
        self._answer(b'B', number, pid)

    def _be_born(self, fds: list[int], coroutines: bool) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            os.close(self._woken)
            os.close(self._wakes)
            self._socket.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent()
            tasks, orders = (socket.socket(fileno=fd) for fd in fds)
            code = serve(tasks, orders, SIGNAL, self._start, coroutines)
        except BaseException:
            traceback.print_exc()  # os._exit would hide it
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for number, child in list(self._children.items()):
                if child == pid:
                    del self._children[number]
                    self._answer(b'D', number, status)

    def _answer(self, kind: bytes, number: int, value: int) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(_COMMAND.pack(kind, number, value))


def _nothing(*_: object) -> None:
    pass


def die_with_parent() -> None:
    """Makes the kernel kill this process when its parent dies, where that is possible: a task must not outlive its
    worker's claim."""
    if sys.platform == 'linux':
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
